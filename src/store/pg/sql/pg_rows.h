/* pg_rows.h - decodes rows of results into runs and documents; for any thread. */
#pragma once

#include <libpq-fe.h>

#include "base/buf.h"
#include "runcast/store.h"

/* Appends the columns of run_columns_add as a single composite column. */
void pg_rows_add_run(struct buf *sql, enum store_parts parts);

/* Decodes that column. run is overwritten. */
void pg_rows_read_run(const PGresult *answer, int row, int column, enum store_parts parts,
                      struct run *run);

/* Decodes a binary COPY row.
 *
 * It is a rev, then the columns of run_columns_add with all packets. */
void pg_rows_read_copied(struct slice row, struct run *run);

/* Reads that rev. Returns false for the end marker or a malformed row. */
bool pg_rows_read_copied_rev(struct slice row, uint64_t *rev);

/* Decodes a row of env, version, name, body. */
struct document pg_rows_read_document(const PGresult *answer, int row,
                                      enum document_kind kind);

int64_t pg_rows_number(const PGresult *answer, int row, int column);

/* Borrowed; absent for NULL. */
struct slice pg_rows_bytes(const PGresult *answer, int row, int column);
