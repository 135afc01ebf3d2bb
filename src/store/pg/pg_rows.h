/* pg_rows.h - answers of reads as runs and documents. Functions may be called on any thread. */
#pragma once

#include <libpq-fe.h>

#include "base/buf.h"
#include "runcast/store.h"

/* Appends a run (r) with its packets (m, p, o) as one column, and the joins that they take. */
void pg_rows_add_run(struct buf *sql, enum store_parts parts);
void pg_rows_add_joins(struct buf *sql, enum store_parts parts);

/* Of that column; run holds nothing before. */
void pg_rows_read_run(const PGresult *answer, int row, int column, enum store_parts parts,
                      struct run *run);

/* Of a row of env, version, name, body. */
struct document pg_rows_read_document(const PGresult *answer, int row,
                                      enum document_kind kind);

int64_t pg_rows_number(const PGresult *answer, int row, int column);

/* Borrowed; absent for NULL. */
struct slice pg_rows_bytes(const PGresult *answer, int row, int column);
