/* sqlite_copy.h - keeps a copy of a database before its schema is upgraded. */
#pragma once

#include "store/sqlite/sqlite_db.h"

/* Copies the database to "<path>.schema-<version>", readable only by us, and syncs it.
 *
 * Replaces an existing file. ERR_STORE: there is no copy, and nothing was changed. */
enum err sqlite_keep_copy(struct sqlite_db *db, const char *path, int64_t version,
                          struct failure *why);
