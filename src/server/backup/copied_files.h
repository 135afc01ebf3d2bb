/* copied_files.h - the files that a database names, as pg_copy asks for them. */
#pragma once

#include "server/backup/stored_files.h"
#include "store/pg/pg_copy.h"

struct copied_files {
    struct pg_copy_files source;
    size_t missing; /* named, and not there: what is copied has them as little */

    struct stored_files named; /* the rest is ours */
    size_t next;
    int folder; /* -1: there is none, so nothing was deployed, or all of it is missing */
    int fd;     /* of the file that is read; -1: none is */
};

/* data: path of the data directory. ERR_STORE, ERR_INVALID with the reason. Finished by the caller in
 * any case. */
enum err copied_files_open(struct copied_files *files, const char *data,
                           struct sqlite_look *look, struct failure *why);

void copied_files_finish(struct copied_files *files);
