/* stored_files.h - the files that a database names: archives, indexes and logs of deployments.
 *
 * A file is there before a row names it, and goes after no row does. So all that a database names
 * at one moment were there at that moment. A log is named by every deployment, and may be
 * missing: its row does not wait for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/backup/backup_manifest.h"
#include "store/sqlite/snapshot/sqlite_look.h"

struct stored_file {
    uint32_t env;               /* number of the environment */
    char name[BACKUP_NAME_MAX]; /* "deployments/deployment_….tar.gz" */
    bool may_be_missing;
    int64_t bytes;               /* -1: the row does not say it */
    char sha256[FILE_PASS_HASH]; /* ""; the same */
};

struct stored_files {
    struct stored_file *all; /* by their name */
    size_t count, room;
    struct failure damaged; /* a row that cannot be read; its code is OK: there is none */
};

/* files is zeroed before, and finished by the caller in any case. ERR_STORE: the database cannot
 * be read. */
enum err stored_files_read(struct sqlite_look *look, struct stored_files *files,
                           struct failure *why);

/* A zeroed one is fine. */
void stored_files_finish(struct stored_files *files);

/* NULL: the database does not name it. */
const struct stored_file *stored_files_find(const struct stored_files *files,
                                            const char *name);
