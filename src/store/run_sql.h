/* run_sql.h - SQL and sizes that all databases derive from the columns of a run; its packets.
 *
 * A row has env, id and tags, too. The packets have separate tables. */
#pragma once

#include "base/contract/run_columns.h"
#include "runcast/store.h"

/* Which texts of a run to include: all, or those that an update writes. */
enum column_texts { COLUMN_TEXTS_ALL, COLUMN_TEXTS_CHANGING };

bool run_column_is_asked(const struct run_column *column, enum column_texts which);

/* Returns the bytes of these texts of a run, without tags and packets. */
int64_t run_columns_size(const struct run *run, enum column_texts which);

/* Append SQL for both databases: the columns of a run r, and the joins for its packets.
 *
 * parts chooses the packets, from run_metadata m, run_payload p and run_output o. */
void run_columns_add(struct buf *sql, enum store_parts parts);
void run_columns_add_joins(struct buf *sql, enum store_parts parts);

/* Makes a packet from bytes that were read from the database.
 *
 * For a long value it also determines whether it is JSON and how long it is when escaped.
 * Both require reading the whole value, which costs the loop nothing if rows are read on
 * another thread. */
struct bytes *run_packet_create(struct slice value);
