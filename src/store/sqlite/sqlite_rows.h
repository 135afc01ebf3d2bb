/* sqlite_rows.h - makes SQL for rows of runs, and binds and reads them. */
#pragma once

#include <sqlite3.h>

#include "store/run_sql.h"

/* Append statements; the functions below bind their parameters. */
void sqlite_rows_add_insert(struct buf *sql);
void sqlite_rows_add_update(struct buf *sql);
void sqlite_rows_add_select(struct buf *sql, enum store_parts parts); /* ?1 env, ?2 id */

/* Append SQL, without tags and packets.
 *
 * The first appends an expression for the bytes of a row's texts. The second appends the
 * text columns that an update writes. */
void sqlite_rows_add_size(struct buf *sql);
void sqlite_rows_add_changing(struct buf *sql);

/* Binds a new run and its tags. The bytes are borrowed until the statement is reset. */
void sqlite_rows_bind_insert(sqlite3_stmt *stmt, const struct change *change,
                             struct slice tags);

/* Binds the columns of a run that may change, its key and the expected version. */
void sqlite_rows_bind_update(sqlite3_stmt *stmt, const struct change *change);

/* Reads the row of a select. run is overwritten. */
void sqlite_rows_read(sqlite3_stmt *stmt, struct run *run, enum store_parts parts);

/* ---- values ---- */

/* Bind NULL for an absent value. */
void sqlite_bind_text(sqlite3_stmt *stmt, int parameter, struct slice text);
void sqlite_bind_blob(sqlite3_stmt *stmt, int parameter, const struct bytes *bytes);

/* Borrowed until the statement is stepped or reset. */
struct slice sqlite_column(sqlite3_stmt *stmt, int column);

/* Returns a copy with one reference, owned by the caller. */
struct bytes *sqlite_column_copy(sqlite3_stmt *stmt, int column);
