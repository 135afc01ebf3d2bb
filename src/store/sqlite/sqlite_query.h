/* sqlite_query.h - builds and runs a SELECT of run ids from conditions.
 *
 * Values never become part of the text: each condition adds its value as a parameter. */
#pragma once

#include "store/sqlite/sqlite_db.h"

struct sqlite_ids {
    char (*ids)[ID_MAX];
    size_t count, capacity;
};

/* A zeroed struct is an empty query. Texts are borrowed until it has run. */
struct sqlite_query {
    struct buf sql;
    struct sqlite_value {
        int64_t number;
        struct slice text; /* absent: use number */
    } * values;
    size_t count, capacity;
};

void sqlite_query_finish(struct sqlite_query *query);

/* Append text; the last three also add the values of its question marks.
 *
 * The last one adds sql "… IN" and the list; nothing if count is 0. */
void sqlite_query_add(struct sqlite_query *query, const char *sql);
void sqlite_query_number(struct sqlite_query *query, const char *sql, int64_t number);
void sqlite_query_text(struct sqlite_query *query, const char *sql, struct slice text);
void sqlite_query_any(struct sqlite_query *query, const char *sql,
                      const struct slice *texts, size_t count);

/* Appends the first column of each row to ids. */
enum store_status sqlite_query_collect(struct sqlite_query *query, struct sqlite_db *db,
                                       struct sqlite_ids *ids);

/* Reads the number in the first row. */
enum store_status sqlite_query_ask(struct sqlite_query *query, struct sqlite_db *db,
                                   int64_t *number);

/* Adds the second column of each row to counts[first column], if that is below size. */
enum store_status sqlite_query_tally(struct sqlite_query *query, struct sqlite_db *db,
                                     uint64_t *counts, size_t size);

void sqlite_ids_finish(struct sqlite_ids *ids);
