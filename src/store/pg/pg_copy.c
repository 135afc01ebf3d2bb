/* pg_copy.c - copies table by table: SELECT from SQLite, and COPY in binary to PostgreSQL.
 *
 *   BEGIN ─► make tables ─► empty? ─► copy tables ─► files, in pieces ─► epoch ─► COMMIT
 *
 * Tables and columns have the same names in both databases. The target determines the
 * columns and their types, and the source must have exactly these. */
#include "store/pg/pg_copy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "store/pg/pg_schema.h"
#include "store/pg/sql/pg_bind.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_rows.h"

enum {
    SEND_BYTES = 256 * 1024, /* rows are sent when this much has been gathered */
    BUSY_SERVER_MS = 60 * 1000,
};

/* Header of a binary COPY: the signature, no flags, no extension. */
static const char copy_header[19] = "PGCOPY\n\377\r\n\0";

struct copied_table {
    const char *name;
    const char *source; /* the FROM clause of its SELECT */
};

/* PostgreSQL has two more columns, realm and term. The next leader writes another term. */
static const struct copied_table tables[] = {
    { "environment", "(SELECT *, 0 AS realm, 0 AS term FROM environment ORDER BY env)" },
    { "task_number", "task_number" },
    { "run", "run" },
    { "run_tag", "run_tag" },
    { "run_payload", "run_payload" },
    { "run_metadata", "run_metadata" },
    { "run_output", "run_output" },
    { "document", "document" },
    /* A key that was taken again after it expired has several rows in brief_claim. */
    { "claim", "(SELECT env, kind, key, owner, expires_at FROM claim UNION ALL"
               " SELECT env, kind, key, owner, max(expires_at) FROM brief_claim"
               " GROUP BY env, kind, key)" },
};

enum { TABLE_COUNT = sizeof(tables) / sizeof(tables[0]) };

struct copying {
    PGconn *conn;
    struct sqlite_look *look;
    struct pg_copy_files *files;
    const volatile sig_atomic_t *stopped;
    struct failure *why;
    const struct copied_table *table; /* the current one */
    PGresult *columns;  /* a result without rows, for the names and types of its columns */
    sqlite3_stmt *stmt; /* selects its rows */
    struct buf rows;    /* not sent yet */
    int64_t bytes;
};

static enum err lost(struct copying *copying)
{
    char reason[PG_REASON_MAX];
    pg_reason(reason, PQerrorMessage(copying->conn));
    return explain(copying->why, ERR_STORE, "cannot copy to the database: %s", reason);
}

static enum err run(struct copying *copying, const char *sql)
{
    PGresult *result = pg_run(copying->conn, sql, 0, NULL, copying->why);
    PQclear(result);
    return result ? OK : copying->why->code;
}

/* ---- a row ---- */

static bool fits(int64_t number, int size)
{
    return size == 8 || (size == 4 ? (int32_t)number == number : (int16_t)number == number);
}

static enum err refuse_value(struct copying *copying, int which)
{
    return explain(copying->why, ERR_STORE,
                   "a value of %s in %s does not fit into the database; please report this "
                   "as a bug of runcast",
                   PQfname(copying->columns, which), copying->table->name);
}

static enum err add_number(struct copying *copying, int which, int size)
{
    int64_t number = sqlite3_column_int64(copying->stmt, which);
    if (!fits(number, size))
        return refuse_value(copying, which);
    pg_add_int4(&copying->rows, size);
    if (size == 2)
        pg_add_int2(&copying->rows, (int16_t)number);
    else if (size == 4)
        pg_add_int4(&copying->rows, (int32_t)number);
    else
        pg_add_int8(&copying->rows, number);
    return OK;
}

static enum err add_real(struct copying *copying, int which)
{
    double value = sqlite3_column_double(copying->stmt, which);
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    pg_add_int4(&copying->rows, 8);
    pg_add_int8(&copying->rows, bits);
    return OK;
}

static void add_slice(struct copying *copying, struct slice value)
{
    pg_add_int4(&copying->rows, (int32_t)value.len);
    buf_add(&copying->rows, value);
}

static enum err add_bytes(struct copying *copying, int which)
{
    add_slice(copying, sqlite_column(copying->stmt, which));
    return OK;
}

static enum err add_value(struct copying *copying, int which)
{
    if (sqlite3_column_type(copying->stmt, which) == SQLITE_NULL) {
        pg_add_int4(&copying->rows, -1);
        return OK;
    }
    switch (PQftype(copying->columns, which)) {
    case PG_INT2: return add_number(copying, which, 2);
    case PG_INT4: return add_number(copying, which, 4);
    case PG_INT8: return add_number(copying, which, 8);
    case PG_FLOAT8: return add_real(copying, which);
    case PG_BYTEA: return add_bytes(copying, which);
    default: return refuse_value(copying, which);
    }
}

static enum err send_rows(struct copying *copying)
{
    struct buf *rows = &copying->rows;
    if (PQputCopyData(copying->conn, rows->ptr, (int)rows->len) != 1)
        return lost(copying);
    copying->bytes += (int64_t)rows->len;
    buf_clear(rows);
    return OK;
}

static enum err add_row(struct copying *copying)
{
    int count = PQnfields(copying->columns);
    enum err err = OK;
    pg_add_int2(&copying->rows, (int16_t)count);
    for (int i = 0; !err && i < count; i++)
        err = add_value(copying, i);
    if (!err && copying->rows.len >= SEND_BYTES)
        err = send_rows(copying);
    return err;
}

/* ---- a table ---- */

/* Adds "a", "b": column names, which need no escaping because they are ours. */
static void add_names(const PGresult *columns, struct buf *out)
{
    for (int i = 0; i < PQnfields(columns); i++)
        buf_print(out, "%s\"%s\"", i ? ", " : "", PQfname(columns, i));
}

/* Returns the number of columns of SQLite's table; -1 if it cannot be read. */
static int count_columns(struct copying *copying, sqlite3 *from)
{
    struct buf sql = { 0 };
    sqlite3_stmt *stmt = NULL;
    buf_print(&sql, "SELECT * FROM %s", copying->table->source);
    sqlite3_prepare_v2(from, sql.ptr, (int)sql.len, &stmt, NULL);
    int count = stmt ? sqlite3_column_count(stmt) : -1;
    sqlite3_finalize(stmt);
    buf_finish(&sql);
    return count;
}

/* Gets the columns, and prepares the SELECT. */
static enum err open_table(struct copying *copying)
{
    sqlite3 *from = sqlite_look_db(copying->look)->handle;
    struct buf sql = { 0 };
    buf_print(&sql, "SELECT * FROM %s LIMIT 0", copying->table->name);
    buf_add_char(&sql, '\0');
    copying->columns = pg_run(copying->conn, sql.ptr, 0, NULL, copying->why);
    buf_clear(&sql);
    if (!copying->columns) {
        buf_finish(&sql);
        return copying->why->code;
    }
    buf_add_text(&sql, "SELECT ");
    add_names(copying->columns, &sql);
    buf_print(&sql, " FROM %s", copying->table->source);
    sqlite3_prepare_v2(from, sql.ptr, (int)sql.len, &copying->stmt, NULL);
    buf_finish(&sql);
    if (!copying->stmt)
        return sqlite_look_explain(copying->look, copying->why);
    if (count_columns(copying, from) == PQnfields(copying->columns))
        return OK;
    return explain(
        copying->why, ERR_STORE,
        "%s has columns that the database lacks; please report this as a bug of runcast",
        copying->table->name);
}

/* Ends a COPY, and waits for the server's result. reason: makes the server discard the
 * rows. */
static enum err end_rows(struct copying *copying, const char *reason)
{
    bool ended = PQputCopyEnd(copying->conn, reason) == 1;
    enum err err = OK;
    for (PGresult *result; (result = PQgetResult(copying->conn));) {
        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            err = ERR_STORE;
        PQclear(result);
    }
    return reason || (ended && !err) ? OK : lost(copying);
}

static void begin_rows(struct copying *copying)
{
    buf_clear(&copying->rows);
    buf_add(&copying->rows, (struct slice){ copy_header, sizeof(copy_header) });
}

static enum err send_all(struct copying *copying, int64_t *count)
{
    int code = SQLITE_ROW;
    enum err err = OK;
    begin_rows(copying);
    while (!err && (code = sqlite3_step(copying->stmt)) == SQLITE_ROW) {
        err = *copying->stopped ? explain(copying->why, ERR_CANCELED, "stopped")
                                : add_row(copying);
        *count += !err;
    }
    if (!err && code != SQLITE_DONE)
        err = sqlite_look_explain(copying->look, copying->why);
    pg_add_int2(&copying->rows, -1); /* the end marker */
    return err ? err : send_rows(copying);
}

typedef enum err send_fn(struct copying *copying, int64_t *count);

/* Runs a COPY: begins it, sends its rows, and ends it. */
static enum err copy_by(struct copying *copying, const char *sql, send_fn *send_rows_of,
                        int64_t *count)
{
    PGresult *begun = PQexec(copying->conn, sql);
    bool takes = PQresultStatus(begun) == PGRES_COPY_IN;
    PQclear(begun);
    if (!takes)
        return lost(copying);
    enum err err = send_rows_of(copying, count);
    enum err end = end_rows(copying, err ? "the source ends too early" : NULL);
    return err ? err : end;
}

static enum err copy_rows(struct copying *copying, int64_t *count)
{
    struct buf sql = { 0 };
    buf_print(&sql, "COPY %s (", copying->table->name);
    add_names(copying->columns, &sql);
    buf_add_text(&sql, ") FROM STDIN (FORMAT binary)");
    buf_add_char(&sql, '\0');
    enum err err = copy_by(copying, sql.ptr, send_all, count);
    buf_finish(&sql);
    return err;
}

/* Collects statistics, so that the first queries get good plans. */
static enum err analyze(struct copying *copying)
{
    char sql[64];
    snprintf(sql, sizeof(sql), "ANALYZE %s", copying->table->name);
    return run(copying, sql);
}

static enum err copy_table(struct copying *copying, const struct copied_table *table,
                           int64_t *count)
{
    copying->table = table;
    enum err err = open_table(copying);
    if (!err)
        err = copy_rows(copying, count);
    if (!err)
        err = analyze(copying);
    sqlite3_finalize(copying->stmt);
    PQclear(copying->columns);
    copying->stmt = NULL;
    copying->columns = NULL;
    return err;
}

/* ---- files ---- */

static void add_int4(struct copying *copying, int32_t number)
{
    pg_add_int4(&copying->rows, 4);
    pg_add_int4(&copying->rows, number);
}

/* Sends one row of deployed_file. */
static enum err send_piece(struct copying *copying, const struct store_file_name *name,
                           int64_t size, uint32_t which)
{
    struct buf *rows = &copying->rows;
    int64_t offset = (int64_t)which * FILE_PIECE_BYTES, left = size - offset;
    size_t len = left < FILE_PIECE_BYTES ? (size_t)left : FILE_PIECE_BYTES;
    if (*copying->stopped)
        return explain(copying->why, ERR_CANCELED, "stopped");
    pg_add_int2(rows, 5);
    add_int4(copying, (int32_t)name->env);
    add_int4(copying, (int32_t)which);
    pg_add_int4(rows, 8);
    pg_add_int8(rows, size);
    add_slice(copying, slice_of(name->text));
    pg_add_int4(rows, (int32_t)len);
    char *piece = buf_reserve(rows, len);
    if (copying->files->read(copying->files, offset, piece, len, copying->why))
        return copying->why->code;
    rows->len += len;
    return send_rows(copying);
}

static enum err send_files(struct copying *copying, int64_t *count)
{
    struct store_file_name name;
    int64_t size;
    enum err err;
    begin_rows(copying);
    while (!(err = copying->files->next(copying->files, &name, &size, copying->why))) {
        for (uint32_t i = 0; !err && i < store_file_pieces(size); i++)
            err = send_piece(copying, &name, size, i);
        if (err)
            return err;
        ++*count;
    }
    pg_add_int2(&copying->rows, -1); /* the end marker */
    return err == ERR_NOT_FOUND ? send_rows(copying) : err;
}

static enum err copy_files(struct copying *copying, int64_t *count)
{
    return copy_by(copying,
                   "COPY deployed_file (env, piece, size, name, body) FROM STDIN"
                   " (FORMAT binary)",
                   send_files, count);
}

/* ---- the target ---- */

static bool is_true(const PGresult *answer, int column)
{
    return *PQgetvalue(answer, 0, column) == 't';
}

/* Takes a lock that keeps any gateway from joining. */
static enum err check_empty(struct copying *copying, const char *schema)
{
    struct failure *why = copying->why;
    if (run(copying, "LOCK TABLE gateway IN SHARE ROW EXCLUSIVE MODE"))
        return why->code;
    PGresult *found =
        pg_run(copying->conn,
               "SELECT EXISTS (SELECT 1 FROM run) OR EXISTS (SELECT 1 FROM document)"
               " OR EXISTS (SELECT 1 FROM environment), EXISTS (SELECT 1 FROM gateway)",
               0, NULL, why);
    if (!found)
        return why->code;
    bool has_data = is_true(found, 0), has_gateway = is_true(found, 1);
    PQclear(found);
    if (has_data)
        return explain(why, ERR_INVALID,
                       "the schema %s of that database already has data of runcast; choose "
                       "another with --database-schema, or stop its gateways and, to "
                       "discard the data, DROP SCHEMA %s CASCADE",
                       schema, schema);
    if (has_gateway)
        return explain(why, ERR_INVALID,
                       "a gateway is starting on the schema %s of that database; stop it, "
                       "and DROP SCHEMA %s CASCADE",
                       schema, schema);
    return OK;
}

/* Lifts the server's own time limits, which are for statements that clients wait for. */
static enum err lift_limits(struct copying *copying, const char *durability)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
             "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '10s';"
             "SET LOCAL idle_in_transaction_session_timeout = 0;"
             "SET LOCAL synchronous_commit = %s",
             durability ? durability : "on");
    return run(copying, sql);
}

/* Gives a busy server more time to read than requests usually get. Has no effect on a UNIX
 * socket. */
static void allow_long_statements(PGconn *conn)
{
    int ms = BUSY_SERVER_MS;
    setsockopt(PQsocket(conn), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

static enum err give_epoch(struct copying *copying)
{
    const char *values[] = { sqlite_look_epoch(copying->look) };
    PGresult *result =
        pg_run(copying->conn, "UPDATE meta SET value = $1 WHERE name = 'epoch'", 1, values,
               copying->why);
    PQclear(result);
    return result ? OK : copying->why->code;
}

static enum err commit(struct copying *copying)
{
    if (*copying->stopped)
        return explain(copying->why, ERR_CANCELED, "stopped");
    if (!run(copying, "COMMIT"))
        return OK;
    if (PQstatus(copying->conn) == CONNECTION_OK)
        return copying->why->code;
    return explain(copying->why, ERR_STORE,
                   "the connection was lost while the copy was committed; repeat the "
                   "command: if it reports existing data, the copy is complete");
}

/* Runs in the transaction begun by pg_schema_begin. */
static enum err copy_all(struct copying *copying, const struct pg_options *options,
                         struct pg_copied *copied)
{
    int64_t counts[TABLE_COUNT] = { 0 };
    enum err err = lift_limits(copying, options->durability);
    if (!err)
        err = check_empty(copying, pg_schema_name(options));
    for (size_t i = 0; !err && i < TABLE_COUNT; i++)
        err = copy_table(copying, &tables[i], &counts[i]);
    if (!err)
        err = copy_files(copying, &copied->files);
    if (!err)
        err = give_epoch(copying);
    if (!err)
        err = commit(copying);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (!strcmp(tables[i].name, "run"))
            copied->runs = counts[i];
        else if (!strcmp(tables[i].name, "document"))
            copied->documents = counts[i];
        else if (!strcmp(tables[i].name, "claim"))
            copied->claims = counts[i];
    }
    copied->bytes = copying->bytes;
    return err;
}

enum err pg_copy(const struct pg_options *options, struct sqlite_look *look,
                 struct pg_copy_files *files, const volatile sig_atomic_t *stopped,
                 struct pg_copied *copied, struct failure *why)
{
    struct copying copying = {
        .look = look, .files = files, .stopped = stopped, .why = why
    };
    struct pg_hello hello;
    char epoch[17];
    copying.conn = pg_connect(options, NULL, &hello, why);
    if (!copying.conn)
        return why->code;
    allow_long_statements(copying.conn);
    *copied = (struct pg_copied){ 0 };
    enum err err = pg_schema_begin(copying.conn, options, &hello, epoch, why);
    if (!err && (err = copy_all(&copying, options, copied))) {
        struct failure ignored;
        PQclear(pg_run(copying.conn, "ROLLBACK", 0, NULL, &ignored));
    }
    PQfinish(copying.conn);
    buf_finish(&copying.rows);
    return err;
}
