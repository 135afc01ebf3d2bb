/* sqlite_stats.c - reads sizes and counts of a database, with one statement for each. */
#include "store/sqlite/snapshot/sqlite_stats.h"

#include <stdio.h>
#include <sys/stat.h>

#include "store/sqlite/sqlite_db.h"

/* Returns false at the end, with *code SQLITE_DONE, or with the code of an error. */
static bool next(sqlite3_stmt *stmt, int *code)
{
    *code = stmt ? sqlite3_step(stmt) : SQLITE_ERROR;
    return *code == SQLITE_ROW;
}

static sqlite3_stmt *prepare(struct sqlite_look *look, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_prepare_v2(sqlite_look_db(look)->handle, sql, -1, &stmt, NULL);
    return stmt;
}

static enum err end(struct sqlite_look *look, sqlite3_stmt *stmt, int code,
                    struct failure *why)
{
    enum err err = code == SQLITE_DONE ? OK : sqlite_look_explain(look, why);
    sqlite3_finalize(stmt);
    return err;
}

/* ---- the file ---- */

enum err sqlite_stats_file(struct sqlite_look *look, struct sqlite_file_stats *stats,
                           struct failure *why)
{
    struct sqlite_db *db = sqlite_look_db(look);
    struct buf log = { 0 };
    struct stat found;
    int64_t page = sqlite_db_number(db, "PRAGMA page_size", -1);
    int64_t pages = sqlite_db_number(db, "PRAGMA page_count", -1);
    int64_t free_pages = sqlite_db_number(db, "PRAGMA freelist_count", -1);
    if (page < 0 || pages < 0 || free_pages < 0)
        return sqlite_look_explain(look, why);
    buf_print(&log, "%s-wal", sqlite_look_path(look));
    buf_add_char(&log, '\0');
    *stats = (struct sqlite_file_stats){ .bytes = page * pages,
                                         .free_bytes = page * free_pages,
                                         .log_bytes =
                                             stat(log.ptr, &found) ? 0 : found.st_size };
    buf_finish(&log);
    return OK;
}

/* ---- tables ---- */

static int64_t count_rows(struct sqlite_look *look, const char *table)
{
    char *sql = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table);
    int64_t rows = sql ? sqlite_db_number(sqlite_look_db(look), sql, -1) : -1;
    sqlite3_free(sql);
    return rows;
}

enum err sqlite_stats_tables(struct sqlite_look *look,
                             void (*take)(void *owner,
                                          const struct sqlite_table_stats *table),
                             void *owner, struct failure *why)
{
    int code;
    sqlite3_stmt *stmt =
        prepare(look, "SELECT m.tbl_name, sum(s.pgsize) FROM sqlite_schema AS m"
                      " JOIN dbstat AS s ON s.name = m.name AND s.aggregate = TRUE"
                      " GROUP BY m.tbl_name ORDER BY 2 DESC, 1");
    if (!stmt) /* not every SQLite has dbstat */
        stmt = prepare(look, "SELECT name, -1 FROM sqlite_schema WHERE type = 'table'"
                             " ORDER BY name");
    while (next(stmt, &code)) {
        struct sqlite_table_stats table = {
            .name = (const char *)sqlite3_column_text(stmt, 0),
            .bytes = sqlite3_column_int64(stmt, 1),
        };
        table.rows = count_rows(look, table.name);
        if (table.rows < 0)
            break;
        take(owner, &table);
    }
    return end(look, stmt, code, why);
}

/* ---- environments ---- */

static int64_t stored_of(struct sqlite_look *look, uint32_t env)
{
    char sql[80];
    snprintf(sql, sizeof(sql), "SELECT stored FROM environment WHERE env = %u", env);
    return sqlite_db_number(sqlite_look_db(look), sql, 0);
}

enum err sqlite_stats_environments(struct sqlite_look *look,
                                   void (*take)(void *owner,
                                                const struct sqlite_env_stats *env),
                                   void *owner, struct failure *why)
{
    struct sqlite_env_stats stats = { 0 };
    int code;
    bool any = false;
    sqlite3_stmt *stmt =
        prepare(look, "SELECT env, -1 AS status, 0 FROM environment UNION ALL"
                      " SELECT env, status, count(*) FROM run GROUP BY env, status"
                      " ORDER BY 1, 2");
    while (next(stmt, &code)) {
        uint32_t env = (uint32_t)sqlite3_column_int64(stmt, 0);
        int status = sqlite3_column_int(stmt, 1);
        if (any && env != stats.env)
            take(owner, &stats);
        if (!any || env != stats.env)
            stats = (struct sqlite_env_stats){ .env = env, .stored = stored_of(look, env) };
        if (status >= 0 && status < RUN_STATUS_COUNT)
            stats.runs[status] = (uint64_t)sqlite3_column_int64(stmt, 2);
        any = true;
    }
    if (any && code == SQLITE_DONE)
        take(owner, &stats);
    return end(look, stmt, code, why);
}

/* ---- retention ---- */

#define BYTES_OF(table, sum)                                                               \
    " + ifnull((SELECT " sum " FROM " table " WHERE env = r.env AND id = r.id), 0)"

enum err sqlite_stats_retained(struct sqlite_look *look, int64_t before_ms,
                               struct sqlite_retained_stats *stats, struct failure *why)
{
    int code;
    struct buf sql = { 0 };
    buf_print(
        &sql,
        "SELECT count(*), ifnull(sum(%d" BYTES_OF("run_payload", "ifnull(length(body), 0)")
            BYTES_OF("run_metadata", "ifnull(length(body), 0)")
                BYTES_OF("run_output", "ifnull(length(body), 0) + ifnull(length(error), "
                                       "0)") "), 0) FROM run AS r WHERE status >= %d AND "
                                             "updated_at < ?1",
        (int)STORED_RUN, (int)RUN_CANCELED);
    buf_add_char(&sql, '\0');
    sqlite3_stmt *stmt = prepare(look, sql.ptr);
    sqlite3_bind_int64(stmt, 1, before_ms);
    buf_finish(&sql);
    while (next(stmt, &code))
        *stats = (struct sqlite_retained_stats){ .runs = sqlite3_column_int64(stmt, 0),
                                                 .bytes = sqlite3_column_int64(stmt, 1) };
    return end(look, stmt, code, why);
}
