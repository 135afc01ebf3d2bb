/* sqlite_find.h - finds the ids of the runs of a list or a walk, or counts runs.
 *
 * Called on worker threads, inside a read transaction. */
#pragma once

#include "store/sqlite/sqlite_query.h"

/* Finds at most req->limit ids, newest first. Sets req->more. */
enum store_status sqlite_find_listed(struct sqlite_db *db, struct store_list *req,
                                     struct sqlite_ids *ids);

/* Adds the number of runs by status. */
enum store_status sqlite_find_counts(struct sqlite_db *db, struct store_count *req);

/* Finds ids in the order of the walk, one more than req->limit if there are more. */
enum store_status sqlite_find_walked(struct sqlite_db *db, const struct store_walk *req,
                                     struct sqlite_ids *ids);
