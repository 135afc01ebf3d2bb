/* pg_query.h - reads as statements: each is one, so that all it finds is of one moment, and says
 * beside it where the environment stood then.
 *
 * Values never become part of the text: each is a parameter, but for the numbers of a COPY. */
#pragma once

#include "runcast/store.h"
#include "store/pg/sql/pg_bind.h"

/* The zero value is empty. Texts are borrowed until it was sent. */
struct pg_query {
    struct buf sql;
    struct pg_params params;
    char from[ID_MAX], to[ID_MAX]; /* what ids are between; borrowed by params */
    struct pg_array envs;          /* the same */
};

void pg_query_finish(struct pg_query *query);

/* The statement of a read. Rows:
 *
 *   run       env, then what run_columns_add says; the first environment that has it comes first
 *   document  env, version, name, body; of a scan's page the total, too
 *   piece     seq, length, piece
 *   list      seq, total (of the page before bytes cut it), then what run_columns_add says; of an
 *             empty page one row with the seq alone
 *   walk      the same
 *   count     seq, status, count; of no run one with the seq alone */
void pg_query_read(struct pg_query *query, const struct store_read *read);

/* A COPY of what a start walks: the whole rest of it, whatever the limits, behind after. Rows of
 * rev, then what run_columns_add says. Its values are numbers, and stand in the text. */
void pg_query_copy_walk(struct pg_query *query, const char *schema,
                        const struct store_walk *req, uint64_t after);
