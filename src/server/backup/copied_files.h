/* copied_files.h - a source of files for pg_copy: those named by the SQLite database.
 *
 * stored_files.h lists them; this opens and reads them one by one. */
#pragma once

#include "server/backup/stored_files.h"
#include "store/pg/pg_copy.h"

struct copied_files {
    struct pg_copy_files source;
    size_t missing; /* named, but missing; the copy lacks them, too */

    struct stored_files named; /* private, like the rest */
    size_t next;
    int folder; /* -1: none; nothing was deployed, or all files are missing */
    int fd;     /* the open file; -1: none */
};

/* data: path of the data directory. ERR_STORE, ERR_INVALID with the reason. The caller
 * calls copied_files_finish in any case. */
enum err copied_files_open(struct copied_files *files, const char *data,
                           struct sqlite_look *look, struct failure *why);

void copied_files_finish(struct copied_files *files);
