/* bundle_file.h - what is done with whole files of deployments, off the loop.
 *
 * Each is a job that is freed by itself, or by its owner's done; the loop only begins it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/artifacts/file_job.h"
#include "base/bytes.h"

enum {
    FILE_HASH_TEXT = 65,
    DISK_LEAST_FREE = 1 << 30, /* bytes that bundles leave free on the disk */
};

/* Asks for the free room on the disk of a folder. */
struct disk_asking {
    struct file_job job;
    const char *folder; /* the owner's */
    uint64_t free;      /* out: bytes */
};

void disk_asking_begin(struct loop *loop, struct disk_asking *asking,
                       void (*done)(struct file_job *job));

/* A bundle that was uploaded becomes the archive of a deployment: synced, and by a second
 * name, so that the first one is still there if the deployment cannot be written. */
struct bundle_taking {
    struct file_job job;
    char *from, *to;           /* paths; the owner's; to NULL: it is only looked at */
    char hash[FILE_HASH_TEXT]; /* out: SHA-256 of the content, lower case */
    bool is_gzip;              /* out: false, nothing was done */
    bool lacks_room; /* out: the disk has less than a GiB free, nothing was done */
};

void bundle_taking_begin(struct loop *loop, struct bundle_taking *taking,
                         void (*done)(struct file_job *job));

/* A piece of a file. */
struct piece_reading {
    struct file_job job;
    char *path; /* the owner's */
    int64_t offset;
    size_t limit;
    struct bytes *piece; /* out: what is there, at most limit; NULL after an error */
    int64_t size;        /* out: of the whole file */
};

void piece_reading_begin(struct loop *loop, struct piece_reading *reading,
                         void (*done)(struct file_job *job));

/* A whole file, short: written beside, synced, and then there by its name. */
struct file_writing {
    struct file_job job;
    char *path; /* the owner's */
    struct bytes *content;
};

void file_writing_begin(struct loop *loop, struct file_writing *writing,
                        void (*done)(struct file_job *job));

/* Removes the file; nobody is told. */
void file_remove(struct loop *loop, const char *path);
