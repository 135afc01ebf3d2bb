/* sqlite_store.h - the embedded database: one file, one process. */
#pragma once

#include "runcast/store.h"

struct uv_loop_s;

struct sqlite_options {
    const char *path;   /* of the file; created with mode 0600 if it does not exist */
    int readers;        /* connections for reads, besides the writer's; 0: 2 */
    size_t cache_bytes; /* page cache of the writer; each reader has a quarter; 0: 16 MiB */
};

/* Opens, upgrades and checks the database, and starts the writer thread.
 *
 * Returns ERR_STORE with the reason: not a database, written by a newer runcast, or in use
 * by another process. */
enum err sqlite_store_open(struct uv_loop_s *loop, const struct sqlite_options *options,
                           struct store **store, struct failure *why);

/* Gives the database a new random epoch, so that it continues as a separate database.
 *
 * Use it for a copy. No process may have it open. Returns ERR_STORE with the reason. */
enum err sqlite_store_renew_epoch(const char *path, char epoch[17], struct failure *why);

/* Locks the database for this process and upgrades it, as a start does.
 *
 * For reading all of it while no process writes. Returns ERR_STORE with the reason. Close
 * *fd to unlock. */
enum err sqlite_store_hold(const char *path, int *fd, struct failure *why);

/* Creates the lock file and locks it for this process.
 *
 * Returns ERR_STORE if another process has locked it. Close *fd to unlock. */
enum err sqlite_lock_file(const char *path, int *fd, struct failure *why);
