/* sqlite_schema.h - the tables of the database, and the steps that upgrade older ones.
 *
 *   no tables ── tables ──► version 100 ── steps[0] ──► 101 ── steps[1] ──► 102 … */
#pragma once

#include "store/sqlite/sqlite_db.h"

struct sqlite_schema {
    const char *tables; /* SQL that makes version SQLITE_FIRST_SCHEMA out of nothing */
    const char *const *steps; /* SQL of each later version, in order; NULL ends them */
};

/* The schema of this program. */
extern const struct sqlite_schema sqlite_schema;

/* Makes the tables, or upgrades those of an older version after keeping a copy of the file beside
 * it. A killed upgrade goes on where it stopped. ERR_STORE with the reason. */
enum err sqlite_schema_upgrade(struct sqlite_db *db, const struct sqlite_schema *schema,
                               const char *path, struct failure *why);
