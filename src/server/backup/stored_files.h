/* stored_files.h - files that a database names: archives, indexes and logs of deployments.
 *
 * The gateway creates a file before a row names it, and removes it after the row. So all
 * files that a database names at one moment existed at that moment. Every deployment names
 * a log, which may be missing, because its row does not wait for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/backup/backup_manifest.h"
#include "store/sqlite/snapshot/sqlite_look.h"

struct stored_file {
    uint32_t env;               /* number of the environment */
    char name[BACKUP_NAME_MAX]; /* "deployments/deployment_….tar.gz" */
    bool may_be_missing;
    int64_t bytes;               /* -1: unknown */
    char sha256[FILE_PASS_HASH]; /* "": unknown */
};

struct stored_files {
    struct stored_file *all; /* sorted by name */
    size_t count, capacity;
    struct failure damaged; /* a row that cannot be read; code OK: none */
};

/* files must be zeroed before; the caller calls stored_files_finish in any case. ERR_STORE:
 * the database cannot be read. */
enum err stored_files_read(struct sqlite_look *look, struct stored_files *files,
                           struct failure *why);

/* Accepts a zeroed struct. */
void stored_files_finish(struct stored_files *files);

/* Returns NULL if the database does not name it. */
const struct stored_file *stored_files_find(const struct stored_files *files,
                                            const char *name);
