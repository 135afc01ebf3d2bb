/* sqlite_copy.h - the copy that is kept of a database before its schema is brought forward. */
#pragma once

#include "store/sqlite/sqlite_db.h"

/* Writes the database into "<path>.schema-<version>", which only we can read, and has it
 * synced when it returns. One of that name that is there already is replaced. ERR_STORE:
 * there is no copy, and nothing was changed. */
enum err sqlite_keep_copy(struct sqlite_db *db, const char *path, int64_t version,
                          struct failure *why);
