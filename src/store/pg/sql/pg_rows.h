/* pg_rows.h - answers of reads as runs and documents. Functions may be called on any thread. */
#pragma once

#include <libpq-fe.h>

#include "base/buf.h"
#include "runcast/store.h"

/* Appends the columns of run_columns_add as one. */
void pg_rows_add_run(struct buf *sql, enum store_parts parts);

/* Of that one column; run holds nothing before. */
void pg_rows_read_run(const PGresult *answer, int row, int column, enum store_parts parts,
                      struct run *run);

/* Of the columns with all packets, which a row of COPY in binary has behind a rev of its own. */
void pg_rows_read_copied(struct slice row, struct run *run);

/* That rev. False: it is no row, but where COPY ends. */
bool pg_rows_read_copied_rev(struct slice row, uint64_t *rev);

/* Of a row of env, version, name, body. */
struct document pg_rows_read_document(const PGresult *answer, int row,
                                      enum document_kind kind);

int64_t pg_rows_number(const PGresult *answer, int row, int column);

/* Borrowed; absent for NULL. */
struct slice pg_rows_bytes(const PGresult *answer, int row, int column);
