/* pg_query.h - reads as SQL statements with parameters.
 *
 * Each read is one statement, so that all of its result shows one moment. The result
 * includes the environment's position at that moment. Values are parameters and never part
 * of the text, except for the numbers in a COPY. */
#pragma once

#include "runcast/store.h"
#include "store/pg/sql/pg_bind.h"

/* A zeroed struct is empty. Strings are borrowed until the query was sent. */
struct pg_query {
    struct buf sql;
    struct pg_params params;
    char from[ID_MAX], to[ID_MAX]; /* bounds of ids; borrowed by params */
    struct pg_array envs;          /* borrowed by params, too */
};

void pg_query_finish(struct pg_query *query);

/* Builds the statement of a read. Its rows:
 *
 *   run       env, then run_columns_add; the first environment that has the run comes first
 *   document  env, version, name, body; for a page of a scan also the total
 *   piece     seq, length, piece
 *   list      seq, total (of the page before its byte limit), run_columns_add; an empty
 *   walk      the same
 *   count     seq, status, count; without runs one row with only the seq */
void pg_query_read(struct pg_query *query, const struct store_read *read);

/* Builds the COPY for the walk at startup: all runs whose rev is above `after`, without a
 * limit.
 *
 * Rows are rev, then run_columns_add. Its values are numbers, and part of the text. */
void pg_query_copy_walk(struct pg_query *query, const char *schema,
                        const struct store_walk *req, uint64_t after);
