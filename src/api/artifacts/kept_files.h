/* kept_files.h - stores files of deployments: archives, indexes and logs.
 *
 *   a single gateway                 a folder of its data directory   bundle_file.h
 *   gateways that share a database   the database                     kept_putting.h
 *
 * A gateway that becomes the leader thus has the files that another one received. A file
 * exists completely or not at all. Each request is embedded by its owner; done is called
 * once, later. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/artifacts/bundle_file.h"
#include "api/artifacts/kept_putting.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"

struct kept_files;
struct loop;
struct store;

struct kept_files *kept_files_create(struct loop *loop, struct store *store,
                                     const char *data);
/* Requires that no request is in flight. Ignores NULL. */
void kept_files_destroy(struct kept_files *files);

/* Stops the sweep. Returns false while requests to the store are in flight: call it
 * again. */
bool kept_files_stop(struct kept_files *files);

/* Returns the name of a deployment's file. ending: ".tar.gz", ".index.json" or ".log". */
struct store_file_name kept_file_name(uint32_t env, const char *id, const char *ending);

/* Turns an uploaded bundle into a deployment's archive. Keeps the uploaded file. */
struct kept_taking {
    struct store_file_name name;
    char *from;   /* path; the owner's */
    int64_t size; /* bytes of it */
    void (*done)(struct kept_taking *taking);
    char hash[FILE_HASH_TEXT]; /* out: SHA-256 of the content, lower case */
    struct failure why;        /* out; code OK: taken; ERR_RULE: not an archive */

    struct kept_files *files; /* private from here on */
    bool canceled;
    struct bundle_taking bundle;
    struct piece_reading piece;
    struct kept_putting putting;
};

void kept_taking_begin(struct kept_files *files, struct kept_taking *taking);

/* Ends a taking whose deployment needs no bundle any more; done is called as usual, with an
 * error unless the bundle is taken already. */
void kept_taking_cancel(struct kept_taking *taking);

/* Writes a short file from memory. */
struct kept_writing {
    struct store_file_name name;
    struct bytes *content; /* the owner's */
    void (*done)(struct kept_writing *writing, enum err status);

    struct kept_files *files; /* private from here on */
    struct file_writing file;
    struct kept_putting putting;
};

void kept_writing_begin(struct kept_files *files, struct kept_writing *writing);

/* The same without a callback: an error is logged. Takes a reference to content. A read
 * that begins from now on gets the new content. */
void kept_files_write(struct kept_files *files, struct store_file_name name,
                      struct bytes *content);

/* Reads a file, starting at offset. done gets ERR_NOT_FOUND if there is no such file. */
struct kept_reading {
    struct store_file_name name;
    int64_t offset; /* a multiple of FILE_PIECE_BYTES */
    size_t limit;   /* bytes */
    void (*done)(struct kept_reading *reading, enum err status);
    struct bytes *piece; /* out: at most limit bytes; NULL after an error */
    int64_t size;        /* out: of the whole file */

    struct kept_files *files; /* private from here on */
    struct list link;         // unasked_writing::readers, until the file is written
    struct piece_reading file;
    struct store_file request;
    struct buf found;
};

void kept_reading_begin(struct kept_files *files, struct kept_reading *reading);

/* Ends a reading whose result is not needed any more, if it reads a file; done is called as
 * usual. */
void kept_reading_cancel(struct kept_reading *reading);

/* Removes a file, without a callback. If that fails, a later sweep removes it. */
void kept_files_remove(struct kept_files *files, struct store_file_name name);

/* Removes files that are not needed. Call it at startup. In the folder they are removed at
 * once, in the database over time. A name's env is ENV_EVERY if it is unknown. Returns
 * ERR_INTERNAL with why if the folder cannot be created. */
typedef bool kept_needed_fn(void *owner, const struct store_file_name *name);

enum err kept_files_sweep(struct kept_files *files, kept_needed_fn *is_needed, void *owner,
                          struct failure *why);
