/* kept_files.h - the files of deployments: archives, indexes and logs, wherever they are kept.
 *
 *   a gateway by itself                      a folder of its data directory   bundle_file.h
 *   gateways that share a database           the database                     kept_putting.h
 *
 * So whichever gateway leads has what another one took. A file is there whole or not at all.
 * Each request is embedded by its owner; done comes once, later. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/artifacts/bundle_file.h"
#include "api/artifacts/kept_putting.h"
#include "base/buf.h"
#include "base/error.h"

struct kept_files;
struct loop;
struct store;

struct kept_files *kept_files_create(struct loop *loop, struct store *store,
                                     const char *data);
/* NULL is fine. Nothing is under way. */
void kept_files_destroy(struct kept_files *files);

/* Nothing is begun by itself any more. False: something is under way; to be asked again. */
bool kept_files_stop(struct kept_files *files);

/* ending: ".tar.gz", ".index.json", ".log". */
struct store_file_name kept_file_name(uint32_t env, const char *id, const char *ending);

/* A bundle that was uploaded becomes the archive of a deployment. Its own file stays. */
struct kept_taking {
    struct store_file_name name;
    char *from;   /* path; the owner's */
    int64_t size; /* bytes of it */
    void (*done)(struct kept_taking *taking);
    char hash[FILE_HASH_TEXT]; /* out: SHA-256 of the content, lower case */
    struct failure why; /* out; its code OK: it was taken; ERR_RULE: it is no archive */

    struct kept_files *files; /* the rest is ours */
    struct bundle_taking bundle;
    struct piece_reading piece;
    struct kept_putting putting;
};

void kept_taking_begin(struct kept_files *files, struct kept_taking *taking);

/* A short file, from memory. */
struct kept_writing {
    struct store_file_name name;
    struct bytes *content; /* the owner's */
    void (*done)(struct kept_writing *writing, enum err status);

    struct kept_files *files; /* the rest is ours */
    struct file_writing file;
    struct kept_putting putting;
};

void kept_writing_begin(struct kept_files *files, struct kept_writing *writing);

/* The same; nobody is told. Takes a reference. */
void kept_files_write(struct kept_files *files, struct store_file_name name,
                      struct bytes *content);

/* What there is of a file behind offset. ERR_NOT_FOUND: there is no such file. */
struct kept_reading {
    struct store_file_name name;
    int64_t offset; /* a multiple of FILE_PIECE_BYTES */
    size_t limit;   /* bytes */
    void (*done)(struct kept_reading *reading, enum err status);
    struct bytes *piece; /* out: at most limit; NULL after an error */
    int64_t size;        /* out: of the whole file */

    struct kept_files *files; /* the rest is ours */
    struct piece_reading file;
    struct store_file request;
    struct buf found;
};

void kept_reading_begin(struct kept_files *files, struct kept_reading *reading);

/* Nobody is told. What is left in spite of it is swept later. */
void kept_files_remove(struct kept_files *files, struct store_file_name name);

/* At start: removes what is not needed, in the folder at once, in the database from now on. env of a
 * name is ENV_EVERY when it is not known. ERR_INTERNAL with the reason: there can be no folder. */
typedef bool kept_needed_fn(void *owner, const struct store_file_name *name);

enum err kept_files_sweep(struct kept_files *files, kept_needed_fn *is_needed, void *owner,
                          struct failure *why);
