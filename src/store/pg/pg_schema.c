/* pg_schema.c - creates and upgrades the tables and functions, in one transaction.
 *
 * Steps only add. A lock makes other starting gateways wait. A database stores two
 * versions: `schema`, its own, which may be newer than this program; and `least`, the
 * oldest program version that may run on it. */
#include "store/pg/pg_schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generated from schema/ by the build. */
extern const char postgres_tables_sql[];
extern const char postgres_functions_sql[];
extern const char postgres_102_sql[];

/* Development versions had lower numbers; their databases can no longer be opened. */
enum { FIRST_SCHEMA = 100 };

/* The version whose functions postgres_functions_sql makes; their names end with it. An
 * upgrade leaves those of earlier versions to the gateways that still call them. */
enum { FUNCTIONS_SCHEMA = 101 };

/* SQL of each version after the first, in order; NULL ends it. */
static const char *const steps[] = {
    "ALTER TABLE run ADD COLUMN limits bytea", /* 101 */
    postgres_102_sql,
    NULL,
};

enum { SCHEMA_VERSION = FIRST_SCHEMA + sizeof(steps) / sizeof(steps[0]) - 1 };

static enum err check_name(const char *name, struct failure *why)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (!len || name[len] || len > 63 || (name[0] >= '0' && name[0] <= '9'))
        return explain(why, ERR_INVALID,
                       "\"%s\" is not a valid schema name; use at most 63 lower case "
                       "letters, digits and _",
                       name);
    return OK;
}

static bool run(PGconn *conn, const char *sql, struct failure *why)
{
    PGresult *result = pg_run(conn, sql, 0, NULL, why);
    PQclear(result);
    return result;
}

/* Runs the three texts, joined, as SQL. */
static bool run_on_schema(PGconn *conn, struct failure *why, const char *before,
                          const char *schema, const char *after)
{
    char sql[256];
    snprintf(sql, sizeof(sql), "%s%s%s", before, schema, after);
    return run(conn, sql, why);
}

/* The owner of an existing schema need not have the right to create one. */
static bool make_schema(PGconn *conn, const char *schema, struct failure *why)
{
    char sql[160];
    snprintf(sql, sizeof(sql), "SELECT count(to_regnamespace('%s'))", schema);
    return pg_run_number(conn, sql, 0) ||
           run_on_schema(conn, why, "CREATE SCHEMA IF NOT EXISTS ", schema, "");
}

static int64_t number_in_meta(PGconn *conn, const char *name)
{
    char sql[80];
    snprintf(sql, sizeof(sql), "SELECT value FROM meta WHERE name = '%s'", name);
    return pg_run_number(conn, sql, 0);
}

static enum err check_versions(PGconn *conn, struct failure *why)
{
    int64_t least = number_in_meta(conn, "least");
    if (number_in_meta(conn, "schema") < FIRST_SCHEMA)
        return explain(why, ERR_STORE,
                       "the database was made by a development version of runcast; this "
                       "version cannot open it");
    if (least > SCHEMA_VERSION)
        return explain(why, ERR_STORE,
                       "the database is for newer versions of runcast (%" PRId64
                       ", this one knows %d); run one of those",
                       least, SCHEMA_VERSION);
    return OK;
}

static bool note_version(PGconn *conn, int64_t version, struct failure *why)
{
    char sql[96];
    snprintf(sql, sizeof(sql),
             "UPDATE meta SET value = '%" PRId64 "' WHERE name = 'schema'", version);
    return run(conn, sql, why);
}

static bool make_first(PGconn *conn, struct failure *why)
{
    return run(conn, postgres_tables_sql, why) && note_version(conn, FIRST_SCHEMA, why);
}

enum err pg_schema_upgrade(PGconn *conn, const char *const *later, struct failure *why)
{
    int64_t version = FIRST_SCHEMA, found = number_in_meta(conn, "schema");
    for (; *later; later++)
        if (++version > found &&
            (!run(conn, *later, why) || !note_version(conn, version, why)))
            return why->code;
    return OK;
}

/* Runs inside the transaction, with the lock held. */
static enum err bring_forward(PGconn *conn, struct failure *why)
{
    bool is_there = pg_run_number(conn, "SELECT count(to_regclass('meta'))", 0);
    int64_t found = is_there ? number_in_meta(conn, "schema") : 0;
    if (is_there ? check_versions(conn, why) : !make_first(conn, why))
        return why->code;
    if (pg_schema_upgrade(conn, steps, why))
        return why->code;
    if (found < FUNCTIONS_SCHEMA && !run(conn, postgres_functions_sql, why))
        return why->code;
    return OK;
}

/* Stores value under name in meta.
 *
 * If another value was stored before and is_history is true, the database has a different
 * history and gets a new epoch. */
static bool note(PGconn *conn, const char *name, const char *value, bool is_history,
                 struct failure *why)
{
    static const char renew[] =
        "UPDATE meta SET value = left(replace(gen_random_uuid()::text, '-', ''), 16)"
        " WHERE name = 'epoch' AND EXISTS (SELECT 1 FROM meta WHERE name = $1"
        " AND value <> '' AND value <> $2)";
    static const char keep[] = "UPDATE meta SET value = $2 WHERE name = $1 AND value <> $2";
    const char *values[] = { name, value };
    PGresult *result = is_history ? pg_run(conn, renew, 2, values, why) : NULL;
    PQclear(result);
    if (is_history && !result)
        return false;
    result = pg_run(conn, keep, 2, values, why);
    PQclear(result);
    return result;
}

/* A new timeline begins where another primary was promoted. */
static bool note_timeline(PGconn *conn, const struct pg_hello *hello, bool lossless,
                          struct failure *why)
{
    return note(conn, "timeline", hello->timeline, !lossless, why);
}

/* Identifies the server, if it permits that, and the tables.
 *
 * The OIDs of the tables change when a dump is restored. */
static bool take_identity(PGconn *conn, char identity[64], struct failure *why)
{
    PGresult *result = pg_run(conn,
                              "SELECT d.oid || '.' || 'meta'::regclass::oid,"
                              " has_function_privilege('pg_control_system()', 'EXECUTE')"
                              " FROM pg_database d WHERE d.datname = current_database()",
                              0, NULL, why);
    if (!result || !PQntuples(result)) {
        PQclear(result);
        return false;
    }
    int64_t server = 0;
    if (*PQgetvalue(result, 0, 1) == 't')
        server =
            pg_run_number(conn, "SELECT system_identifier FROM pg_control_system()", 0);
    snprintf(identity, 64, "%" PRId64 ".%s", server, PQgetvalue(result, 0, 0));
    PQclear(result);
    return true;
}

/* A restored dump lacks writes that were acknowledged after it was made. Other changes then
 * get positions that clients already know, so its history is a different one. */
static bool note_identity(PGconn *conn, struct failure *why)
{
    char identity[64];
    if (!take_identity(conn, identity, why))
        return false;
    return note(conn, "identity", identity, true, why);
}

static bool take_epoch(PGconn *conn, char epoch[17], struct failure *why)
{
    PGresult *result =
        pg_run(conn, "SELECT value FROM meta WHERE name = 'epoch'", 0, NULL, why);
    if (result && PQntuples(result))
        snprintf(epoch, 17, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return result;
}

enum err pg_schema_begin(PGconn *conn, const struct pg_options *options,
                         const struct pg_hello *hello, char epoch[17], struct failure *why)
{
    const char *schema = pg_schema_name(options);
    struct failure ignored;
    if (check_name(schema, why) || !run(conn, "BEGIN", why))
        return why->code;
    if (run_on_schema(conn, why,
                      "SELECT pg_advisory_xact_lock(hashtext('runcast'), hashtext('",
                      schema, "'))") &&
        make_schema(conn, schema, why) &&
        run_on_schema(conn, why, "SET LOCAL search_path = ", schema, "") &&
        !bring_forward(conn, why) && note_timeline(conn, hello, options->lossless, why) &&
        note_identity(conn, why) && take_epoch(conn, epoch, why))
        return OK;
    run(conn, "ROLLBACK", &ignored);
    return why->code;
}

enum err pg_schema_prepare(PGconn *conn, const struct pg_options *options,
                           const struct pg_hello *hello, char epoch[17],
                           struct failure *why)
{
    enum err err = pg_schema_begin(conn, options, hello, epoch, why);
    return err || run(conn, "COMMIT", why) ? err : why->code;
}
