/* sqlite_query.h - a SELECT of run ids that is put together from conditions.
 *
 * Values never become part of the text: each condition brings its value as a parameter. */
#pragma once

#include "store/sqlite/sqlite_db.h"

struct sqlite_ids {
    char (*ids)[ID_MAX];
    size_t count, capacity;
};

/* The zero value is an empty query. Texts are borrowed until it has run. */
struct sqlite_query {
    struct buf sql;
    struct sqlite_value {
        int64_t number;
        struct slice text; /* absent: the number */
    } * values;
    size_t count, capacity;
};

void sqlite_query_finish(struct sqlite_query *query);

/* Each appends its text; the last three bring the values of its question marks. */
void sqlite_query_add(struct sqlite_query *query, const char *sql);
void sqlite_query_number(struct sqlite_query *query, const char *sql, int64_t number);
void sqlite_query_text(struct sqlite_query *query, const char *sql, struct slice text);
void sqlite_query_any(struct sqlite_query *query, const char *sql,
                      const struct slice *texts,
                      size_t count); /* sql "… IN", then the list; nothing for count 0 */

/* Appends the first column of each row to ids. */
enum store_status sqlite_query_collect(struct sqlite_query *query, struct sqlite_db *db,
                                       struct sqlite_ids *ids);

/* The number in the first row. */
enum store_status sqlite_query_ask(struct sqlite_query *query, struct sqlite_db *db,
                                   int64_t *number);

/* Adds the second column of each row to the count that the first one names, below size. */
enum store_status sqlite_query_tally(struct sqlite_query *query, struct sqlite_db *db,
                                     uint64_t *counts, size_t size);

void sqlite_ids_finish(struct sqlite_ids *ids);
