/* sqlite_rows.c - makes SQL for rows of runs, and binds and reads them.
 *
 * A row begins with env, id and tags (a select omits env, which is its parameter), followed
 * by the columns of run_columns.h in order. A select adds the packets from their own
 * tables. Updates leave out columns that never change, so that SQLite does not touch their
 * indexes. */
#include "store/sqlite/sqlite_rows.h"

enum { KEY_COLUMNS = 3 /* env, id, tags */ };

/* ---- SQL ---- */

void sqlite_rows_add_insert(struct buf *sql)
{
    buf_add_text(sql, "INSERT INTO run (env, id, tags");
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        buf_print(sql, ", %s", run_columns[i].name);
    buf_add_text(sql, ") VALUES (?1, ?2, ?3");
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        buf_print(sql, ", ?%d", KEY_COLUMNS + 1 + i);
    buf_add_text(sql, ") ON CONFLICT (env, id) DO NOTHING");
}

void sqlite_rows_add_update(struct buf *sql)
{
    const char *before = "UPDATE run SET";
    for (int i = 0; i < RUN_COLUMN_COUNT; i++) {
        if (run_columns[i].life == COLUMN_FIXED)
            continue;
        buf_print(sql, "%s %s = ?%d", before, run_columns[i].name, KEY_COLUMNS + 1 + i);
        before = ",";
    }
    buf_add_text(sql, " WHERE env = ?1 AND id = ?2 AND version = ?3");
}

void sqlite_rows_add_select(struct buf *sql, enum store_parts parts)
{
    buf_add_text(sql, "SELECT ");
    run_columns_add(sql, parts);
    buf_add_text(sql, " FROM run r");
    run_columns_add_joins(sql, parts);
    buf_add_text(sql, " WHERE r.env = ?1 AND r.id = ?2");
}

/* Adds the size of a row's texts. length(text) would count characters and stop at a NUL. */
void sqlite_rows_add_size(struct buf *sql)
{
    const char *before = "length(CAST(";
    for (int i = 0; i < RUN_COLUMN_COUNT; i++) {
        if (!run_column_is_asked(&run_columns[i], COLUMN_TEXTS_ALL))
            continue;
        buf_print(sql, "%sifnull(%s, '')", before, run_columns[i].name);
        before = " || ";
    }
    buf_add_text(sql, " AS BLOB))");
}

void sqlite_rows_add_changing(struct buf *sql)
{
    const char *before = "";
    for (int i = 0; i < RUN_COLUMN_COUNT; i++) {
        if (!run_column_is_asked(&run_columns[i], COLUMN_TEXTS_CHANGING))
            continue;
        buf_print(sql, "%s%s", before, run_columns[i].name);
        before = ", ";
    }
}

/* ---- values ---- */

void sqlite_bind_text(sqlite3_stmt *stmt, int parameter, struct slice text)
{
    sqlite3_bind_text64(stmt, parameter, text.ptr, text.len, SQLITE_STATIC, SQLITE_UTF8);
}

void sqlite_bind_blob(sqlite3_stmt *stmt, int parameter, const struct bytes *bytes)
{
    if (bytes)
        sqlite3_bind_blob64(stmt, parameter, bytes->data, bytes->len, SQLITE_STATIC);
    else
        sqlite3_bind_null(stmt, parameter);
}

/* SQLite returns NULL for a blob of length 0, which is empty, not absent. */
struct slice sqlite_column(sqlite3_stmt *stmt, int column)
{
    if (sqlite3_column_type(stmt, column) == SQLITE_NULL)
        return (struct slice){ 0 };
    const char *ptr = sqlite3_column_blob(stmt, column);
    return (struct slice){ ptr ? ptr : "", (size_t)sqlite3_column_bytes(stmt, column) };
}

struct bytes *sqlite_column_copy(sqlite3_stmt *stmt, int column)
{
    return bytes_create(sqlite_column(stmt, column));
}

static void bind_column(sqlite3_stmt *stmt, int parameter, const struct run_column *column,
                        const struct run *run)
{
    const void *field = run_field(run, column->offset);
    switch (column->type) {
    case COLUMN_U8: sqlite3_bind_int(stmt, parameter, *(const uint8_t *)field); break;
    case COLUMN_U16: sqlite3_bind_int(stmt, parameter, *(const uint16_t *)field); break;
    case COLUMN_U32: sqlite3_bind_int64(stmt, parameter, *(const uint32_t *)field); break;
    case COLUMN_I32: sqlite3_bind_int(stmt, parameter, *(const int32_t *)field); break;
    case COLUMN_I64: sqlite3_bind_int64(stmt, parameter, *(const int64_t *)field); break;
    case COLUMN_U64:
        sqlite3_bind_int64(stmt, parameter, (int64_t) * (const uint64_t *)field);
        break;
    case COLUMN_REAL: sqlite3_bind_double(stmt, parameter, *(const double *)field); break;
    case COLUMN_TEXT:
        sqlite_bind_text(stmt, parameter, run_column_text(column, run));
        break;
    case COLUMN_FLAGS: sqlite3_bind_int(stmt, parameter, run_flags(run)); break;
    }
}

static bool is_set(sqlite3_stmt *stmt, int at, enum column_type type)
{
    return type == COLUMN_TEXT ? sqlite3_column_type(stmt, at) != SQLITE_NULL
                               : sqlite3_column_double(stmt, at) != 0;
}

static void read_column(sqlite3_stmt *stmt, int at, const struct run_column *column,
                        struct run *run)
{
    void *field = run_column_place(column, run, is_set(stmt, at, column->type));
    if (!field)
        return;
    switch (column->type) {
    case COLUMN_U8: *(uint8_t *)field = (uint8_t)sqlite3_column_int(stmt, at); break;
    case COLUMN_U16: *(uint16_t *)field = (uint16_t)sqlite3_column_int(stmt, at); break;
    case COLUMN_U32: *(uint32_t *)field = (uint32_t)sqlite3_column_int64(stmt, at); break;
    case COLUMN_I32: *(int32_t *)field = sqlite3_column_int(stmt, at); break;
    case COLUMN_I64: *(int64_t *)field = sqlite3_column_int64(stmt, at); break;
    case COLUMN_U64: *(uint64_t *)field = (uint64_t)sqlite3_column_int64(stmt, at); break;
    case COLUMN_REAL: *(double *)field = sqlite3_column_double(stmt, at); break;
    case COLUMN_TEXT: *(struct bytes **)field = sqlite_column_copy(stmt, at); break;
    case COLUMN_FLAGS: run_set_flags(run, sqlite3_column_int(stmt, at)); break;
    }
}

/* ---- rows ---- */

static void bind_key(sqlite3_stmt *stmt, const struct change *change)
{
    sqlite3_bind_int64(stmt, 1, change->env);
    sqlite_bind_text(stmt, 2, slice_of(change->run.id));
}

void sqlite_rows_bind_insert(sqlite3_stmt *stmt, const struct change *change,
                             struct slice tags)
{
    bind_key(stmt, change);
    sqlite_bind_text(stmt, 3, tags);
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        bind_column(stmt, KEY_COLUMNS + 1 + i, &run_columns[i], &change->run);
}

void sqlite_rows_bind_update(sqlite3_stmt *stmt, const struct change *change)
{
    bind_key(stmt, change);
    sqlite3_bind_int64(stmt, 3, change->expected);
    for (int i = 0; i < RUN_COLUMN_COUNT; i++) {
        if (run_columns[i].life == COLUMN_CHANGES)
            bind_column(stmt, KEY_COLUMNS + 1 + i, &run_columns[i], &change->run);
    }
}

void sqlite_rows_read(sqlite3_stmt *stmt, struct run *run, enum store_parts parts)
{
    *run = (struct run){ 0 };
    struct slice id = sqlite_column(stmt, 0);
    memcpy(run->id, id.ptr, id.len < sizeof(run->id) ? id.len : sizeof(run->id) - 1);
    run->tags = run_tags_read(sqlite_column(stmt, 1));

    int at = 2;
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        read_column(stmt, at++, &run_columns[i], run);
    if (parts == STORE_FACTS_ALONE)
        return;
    run->metadata = run_packet_create(sqlite_column(stmt, at++));
    run->metadata_seed = sqlite_column_copy(stmt, at++);
    if (parts == STORE_METADATA)
        return;
    run->payload = run_packet_create(sqlite_column(stmt, at++));
    struct bytes *payload_type = sqlite_column_copy(stmt, at++);
    run->output = run_packet_create(sqlite_column(stmt, at++));
    struct bytes *output_type = sqlite_column_copy(stmt, at++);
    if (payload_type || output_type) {
        run_rare_edit(run)->payload_type = payload_type;
        run_rare_edit(run)->output_type = output_type;
    }
    run->error = sqlite_column_copy(stmt, at++);
}
