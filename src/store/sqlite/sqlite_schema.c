/* sqlite_schema.c - upgrades the tables of a database to the version of this program. */
#include "store/sqlite/sqlite_schema.h"

#include <assert.h>
#include <inttypes.h>

#include "store/sqlite/sqlite_copy.h"

/* Generated from schema/sqlite.sql by the build. */
extern const char sqlite_tables_sql[];

/* Request keys of changes of metadata (CLAIM_REQUEST, run_commands.c) become brief. */
#define METADATA_REQUESTS                                                                  \
    " FROM claim WHERE kind = 1 AND substr(CAST(key AS BLOB), 1, 10) ="                    \
    " x'ff6d657461646174610a'"

static const char *const steps[] = {
    "ALTER TABLE run ADD COLUMN limits TEXT", /* 101 */
    /* 102: claims that are appended, and found by an index in memory (sqlite_claims.c) */
    "CREATE TABLE brief_claim ("
    " id INTEGER PRIMARY KEY, env INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " expires_at INTEGER NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL) STRICT;"
    "INSERT INTO brief_claim (env, kind, expires_at, owner, key)"
    " SELECT env, kind, expires_at, owner, key" METADATA_REQUESTS " ORDER BY expires_at;"
    "DELETE" METADATA_REQUESTS,
    NULL,
};
static_assert(SQLITE_FIRST_SCHEMA + sizeof(steps) / sizeof(steps[0]) - 1 ==
                  SQLITE_NEWEST_SCHEMA,
              "each step has its version");

const struct sqlite_schema sqlite_schema = { sqlite_tables_sql, steps };

/* Returns the version of a database after all steps. */
static int64_t newest(const struct sqlite_schema *schema)
{
    int64_t version = SQLITE_FIRST_SCHEMA;
    for (const char *const *step = schema->steps; *step; step++)
        version++;
    return version;
}

/* A row in meta while steps are left, so that the next start continues with them. */
#define STEPS_LEFT "INSERT OR REPLACE INTO meta VALUES ('steps_left', '1')"
#define NO_STEPS_LEFT "DELETE FROM meta WHERE name = 'steps_left'"

/* A step may write the whole database, so its log is truncated before the next step. */
static bool take_step(struct sqlite_db *db, const char *step, int64_t version, bool is_last)
{
    struct buf sql = { 0 };
    buf_print(&sql, "BEGIN IMMEDIATE;%s;%s;PRAGMA user_version = %" PRId64 ";COMMIT", step,
              is_last ? NO_STEPS_LEFT : STEPS_LEFT, version);
    buf_add_char(&sql, '\0');
    bool taken = sqlite_db_execute(db, sql.ptr);
    buf_finish(&sql);
    if (taken)
        sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return taken;
}

/* The copy shows the database before the first step, not after a killed upgrade. A new
 * database needs none. */
static bool wants_copy(struct sqlite_db *db, const struct sqlite_schema *schema,
                       int64_t version)
{
    return version > 0 && version < newest(schema) &&
           !sqlite_db_number(db, "SELECT count(*) FROM meta WHERE name = 'steps_left'", 0);
}

static const char *step_to(const struct sqlite_schema *schema, int64_t version)
{
    return version == SQLITE_FIRST_SCHEMA
               ? schema->tables
               : schema->steps[version - SQLITE_FIRST_SCHEMA - 1];
}

enum err sqlite_schema_upgrade(struct sqlite_db *db, const struct sqlite_schema *schema,
                               const char *path, struct failure *why)
{
    int64_t last = newest(schema);
    int64_t version = sqlite_db_number(db, "PRAGMA user_version", last);
    if (wants_copy(db, schema, version) && sqlite_keep_copy(db, path, version, why))
        return why->code;
    int64_t next = version ? version + 1 : SQLITE_FIRST_SCHEMA;
    for (; next <= last; next++) {
        if (!take_step(db, step_to(schema, next), next, next == last))
            return sqlite_db_explain(why, path, db->handle);
    }
    return OK;
}
