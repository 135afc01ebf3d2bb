/* sqlite_store.h - the embedded database: one file, one process. */
#pragma once

#include "runcast/store.h"

struct uv_loop_s;

struct sqlite_options {
    const char *path;   /* of the file; created when missing, mode 0600 */
    int readers;        /* connections for reads beside the writer; 0: 2 */
    size_t cache_bytes; /* page cache of the writer; a reader has a quarter; 0: 16 MiB */
};

/* Opens, migrates forward, checks, and starts the writer thread. ERR_STORE with the reason:
 * not a database, made by a newer runcast, in use by another process. */
enum err sqlite_store_open(struct uv_loop_s *loop, const struct sqlite_options *options,
                           struct store **store, struct failure *why);

/* Gives the database another epoch, drawn like the first: it goes on as another one than the
 * one that it is a copy of. Nobody has it open. ERR_STORE with the reason. */
enum err sqlite_store_renew_epoch(const char *path, char epoch[17], struct failure *why);

/* Locks the database for this process and brings it forward, as a start does, for who reads all of
 * it while nobody writes. ERR_STORE with the reason. Close fd to unlock. */
enum err sqlite_store_hold(const char *path, int *fd, struct failure *why);

/* Creates the file beside the database and locks it for this process: ERR_STORE when
 * another one has it. Close fd to unlock. */
enum err sqlite_lock_file(const char *path, int *fd, struct failure *why);
