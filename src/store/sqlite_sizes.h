/* sqlite_sizes.h - how many bytes more, or less, an environment stores after a change.
 *
 * Counted are the rows that grow with what clients send: payload, metadata, output and error
 * of runs, and packets. The sum is written in the transaction that writes the rows
 * (environment.stored), so that it is never another than theirs. */
#pragma once

#include "store/sqlite_db.h"
#include "store/sqlite_sql.h"

/* Adds up the first column of a statement that reads or removes rows, and counts them.
 * Like the next two it returns a code of SQLite, SQLITE_OK if all went well. */
int sqlite_add_sizes(struct sqlite_db *db, sqlite3_stmt *stmt, int64_t *bytes,
                     unsigned *rows);

/* Of the packet of a run that SQL_PUT_PAYLOAD, _METADATA or _OUTPUT is about to write, into
 * change->stored; what is there before it does not count any more. */
int sqlite_count_packet(struct sqlite_db *db, struct change *change,
                        enum sqlite_statement which);

/* Of a document that is about to be written or removed; only packets count. */
int sqlite_count_document(struct sqlite_db *db, struct change *change);
