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

/* Rows of the table run: seq, total (of the page before bytes cut it), then what
 * run_columns_add says; of an empty page one row with the seq alone. */
void pg_query_list(struct pg_query *query, const struct store_list *req);
void pg_query_walk(struct pg_query *query, const struct store_walk *req);

/* A COPY of what a start walks: the whole rest of it, whatever the limits, behind after. Rows of
 * rev, then what run_columns_add says. Its values are numbers, and stand in the text. */
void pg_query_copy_walk(struct pg_query *query, const char *schema,
                        const struct store_walk *req, uint64_t after);

/* Rows of seq, status, count; of no run one with the seq alone. */
void pg_query_count(struct pg_query *query, const struct store_count *req);

/* Rows of env and the columns; the first environment that has the run comes first. */
void pg_query_load_run(struct pg_query *query, const struct store_load *req);

/* Rows of env, version, name, body. */
void pg_query_load_document(struct pg_query *query, const struct store_load *req);
void pg_query_scan(struct pg_query *query, const struct store_scan *req);

/* A row of seq, length, piece. */
void pg_query_piece(struct pg_query *query, const struct store_piece *req);
