/* sqlite_rows.h - runs as rows: the columns of run_columns.h make the SQL, are bound and read. */
#pragma once

#include <sqlite3.h>

#include "store/run_columns.h"

/* Append the statements, whose parameters the functions below bind. */
void sqlite_rows_add_insert(struct buf *sql);
void sqlite_rows_add_update(struct buf *sql);
void sqlite_rows_add_select(struct buf *sql, enum store_parts parts); /* ?1 env, ?2 id */

/* Appends an expression: how many bytes the texts of a row have. Then: the columns of those
 * that an update writes. Tags and packets are not among them. */
void sqlite_rows_add_size(struct buf *sql);
void sqlite_rows_add_changing(struct buf *sql);

/* Binds a new run, tags included; the bytes are borrowed until the statement is reset. */
void sqlite_rows_bind_insert(sqlite3_stmt *stmt, const struct change *change,
                             struct slice tags);

/* Binds what may change of a run, its key and the expected version. */
void sqlite_rows_bind_update(sqlite3_stmt *stmt, const struct change *change);

/* The row of a select; run holds nothing before. */
void sqlite_rows_read(sqlite3_stmt *stmt, struct run *run, enum store_parts parts);

/* ---- values ---- */

/* NULL for the absent value. */
void sqlite_bind_text(sqlite3_stmt *stmt, int parameter, struct slice text);
void sqlite_bind_blob(sqlite3_stmt *stmt, int parameter, const struct bytes *bytes);

/* Borrowed until the statement moves. */
struct slice sqlite_column(sqlite3_stmt *stmt, int column);

/* A copy, one reference, the caller's. */
struct bytes *sqlite_column_copy(sqlite3_stmt *stmt, int column);
