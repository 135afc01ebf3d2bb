/* bundle_file.h - jobs on whole files of deployments, off the loop thread.
 *
 * Each job is embedded by its owner, whose done may free it. The loop thread only begins
 * it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/artifacts/file_job.h"
#include "base/bytes.h"

enum {
    FILE_HASH_TEXT = 65,
    DISK_LEAST_FREE = 1 << 30, /* bytes that bundles leave free on the disk */
};

/* Finds the free space on the disk of a folder. */
struct disk_asking {
    struct file_job job;
    const char *folder; /* the owner's */
    uint64_t free;      /* out: bytes */
};

void disk_asking_begin(struct loop *loop, struct disk_asking *asking,
                       void (*done)(struct file_job *job));

/* Turns an uploaded bundle into a deployment's archive: syncs it and gives it a second
 * name. The first name stays, in case the deployment cannot be written. */
struct bundle_taking {
    struct file_job job;
    char *from, *to;           /* paths; the owner's; to is NULL: only check and hash it */
    char hash[FILE_HASH_TEXT]; /* out: SHA-256 of the content, lower case */
    bool is_gzip;              /* out: if false, nothing was done */
    bool lacks_room; /* out: less than DISK_LEAST_FREE bytes are free; nothing was done */
};

void bundle_taking_begin(struct loop *loop, struct bundle_taking *taking,
                         void (*done)(struct file_job *job));

/* Reads a piece of a file. */
struct piece_reading {
    struct file_job job;
    char *path; /* the owner's */
    int64_t offset;
    size_t limit;
    struct bytes *piece; /* out: up to limit bytes; NULL after an error */
    int64_t size;        /* out: size of the whole file */
};

void piece_reading_begin(struct loop *loop, struct piece_reading *reading,
                         void (*done)(struct file_job *job));

/* Writes a short file: under a temporary name, synced, then renamed. */
struct file_writing {
    struct file_job job;
    char *path; /* the owner's */
    struct bytes *content;
};

void file_writing_begin(struct loop *loop, struct file_writing *writing,
                        void (*done)(struct file_job *job));

/* Removes a file; an error is not reported. */
void file_remove(struct loop *loop, const char *path);
