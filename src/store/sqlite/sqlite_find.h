/* sqlite_find.h - which runs a list or a walk means, as ids in their order; how many they are.
 *
 * Called on worker threads, inside a read transaction. */
#pragma once

#include "store/sqlite/sqlite_query.h"

/* Newest first, at most req->limit; sets req->more. */
enum store_status sqlite_find_listed(struct sqlite_db *db, struct store_list *req,
                                     struct sqlite_ids *ids);

/* Adds how many runs there are of each status. */
enum store_status sqlite_find_counts(struct sqlite_db *db, struct store_count *req);

/* In the order of the walk; one more than req->limit when there are more. */
enum store_status sqlite_find_walked(struct sqlite_db *db, const struct store_walk *req,
                                     struct sqlite_ids *ids);
