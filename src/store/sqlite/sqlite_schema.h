/* sqlite_schema.h - the tables of the database, and the steps that upgrade older ones.
 *
 *   no tables ── tables ──► version 100 ── steps[0] ──► 101 ── steps[1] ──► 102 … */
#pragma once

#include "store/sqlite/sqlite_db.h"

struct sqlite_schema {
    /* SQL that turns an empty database into version SQLITE_FIRST_SCHEMA */
    const char *tables;
    const char *const *steps; /* SQL of each later version, in order; ends with NULL */
};

/* The schema of this program. */
extern const struct sqlite_schema sqlite_schema;

/* Creates the tables, or upgrades an older version after copying the file.
 *
 * A killed upgrade is continued by the next call. Returns ERR_STORE with the reason. */
enum err sqlite_schema_upgrade(struct sqlite_db *db, const struct sqlite_schema *schema,
                               const char *path, struct failure *why);
