/* sqlite_query.c - builds a SELECT from conditions, and keeps its values apart. */
#include "store/sqlite/sqlite_query.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/sqlite/sqlite_rows.h"

void sqlite_query_finish(struct sqlite_query *query)
{
    buf_finish(&query->sql);
    free(query->values);
    *query = (struct sqlite_query){ 0 };
}

static void add_value(struct sqlite_query *query, struct sqlite_value value)
{
    if (query->count == query->capacity) {
        query->capacity = query->capacity ? query->capacity * 2 : 16;
        query->values =
            mem_resize(query->values, query->capacity * sizeof(query->values[0]));
    }
    query->values[query->count++] = value;
}

void sqlite_query_add(struct sqlite_query *query, const char *sql)
{
    buf_add_text(&query->sql, sql);
}

void sqlite_query_number(struct sqlite_query *query, const char *sql, int64_t number)
{
    buf_add_text(&query->sql, sql);
    add_value(query, (struct sqlite_value){ .number = number });
}

void sqlite_query_text(struct sqlite_query *query, const char *sql, struct slice text)
{
    buf_add_text(&query->sql, sql);
    add_value(query, (struct sqlite_value){ .text = text });
}

void sqlite_query_any(struct sqlite_query *query, const char *sql,
                      const struct slice *texts, size_t count)
{
    if (count == 0)
        return;
    buf_add_text(&query->sql, sql);
    for (size_t i = 0; i < count; i++)
        sqlite_query_text(query, i == 0 ? " (?" : ", ?", texts[i]);
    buf_add_char(&query->sql, ')');
}

static sqlite3_stmt *prepare(struct sqlite_query *query, struct sqlite_db *db)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_prepare_v2(db->handle, query->sql.ptr, (int)query->sql.len, &stmt, NULL);
    for (size_t i = 0; stmt && i < query->count; i++) {
        const struct sqlite_value *value = &query->values[i];
        if (value->text.ptr)
            sqlite_bind_text(stmt, (int)i + 1, value->text);
        else
            sqlite3_bind_int64(stmt, (int)i + 1, value->number);
    }
    return stmt;
}

static enum store_status sqlite_query_finalize(struct sqlite_db *db, sqlite3_stmt *stmt,
                                               int code)
{
    if (!stmt)
        return sqlite_status(sqlite3_extended_errcode(db->handle));
    sqlite3_finalize(stmt);
    return sqlite_status(code);
}

static void add_id(struct sqlite_ids *ids, const unsigned char *id)
{
    if (ids->count == ids->capacity) {
        ids->capacity = ids->capacity ? ids->capacity * 2 : 64;
        ids->ids = mem_resize(ids->ids, ids->capacity * sizeof(ids->ids[0]));
    }
    snprintf(ids->ids[ids->count++], sizeof(ids->ids[0]), "%s", id);
}

enum store_status sqlite_query_collect(struct sqlite_query *query, struct sqlite_db *db,
                                       struct sqlite_ids *ids)
{
    sqlite3_stmt *stmt = prepare(query, db);
    int code = SQLITE_OK;
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        add_id(ids, sqlite3_column_text(stmt, 0));
    return sqlite_query_finalize(db, stmt, code);
}

enum store_status sqlite_query_ask(struct sqlite_query *query, struct sqlite_db *db,
                                   int64_t *number)
{
    sqlite3_stmt *stmt = prepare(query, db);
    int code = stmt ? sqlite3_step(stmt) : SQLITE_OK;
    if (code == SQLITE_ROW)
        *number = sqlite3_column_int64(stmt, 0);
    return sqlite_query_finalize(db, stmt, code);
}

enum store_status sqlite_query_tally(struct sqlite_query *query, struct sqlite_db *db,
                                     uint64_t *counts, size_t size)
{
    sqlite3_stmt *stmt = prepare(query, db);
    int code = SQLITE_OK;
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        uint64_t which = (uint64_t)sqlite3_column_int64(stmt, 0);
        if (which < size)
            counts[which] += (uint64_t)sqlite3_column_int64(stmt, 1);
    }
    return sqlite_query_finalize(db, stmt, code);
}

void sqlite_ids_finish(struct sqlite_ids *ids)
{
    free(ids->ids);
    *ids = (struct sqlite_ids){ 0 };
}
