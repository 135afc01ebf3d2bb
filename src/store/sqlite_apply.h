/* sqlite_apply.h - what requests do to the tables, inside a transaction of the writer.
 *
 * Positions and run numbers are counted in memory and written once per transaction; a
 * request that fails gives back what it counted. */
#pragma once

#include "base/table.h"
#include "store/sqlite_db.h"

struct sqlite_apply {
    struct sqlite_db *db;
    struct table counters; /* seq of environments, run.number of their tasks */
    struct list changed;   /* counters that the transaction has moved */
    struct buf text;       /* of the row that is written */
    int64_t swept_at;      /* Unix ms, of the last look for expired claims */
    int trouble; /* extended result code that ends the transaction, or SQLITE_OK */
};

void sqlite_apply_init(struct sqlite_apply *apply, struct sqlite_db *db);
void sqlite_apply_finish(struct sqlite_apply *apply);

/* Forgets the counters; after a transaction that was not committed. */
void sqlite_apply_forget(struct sqlite_apply *apply);

/* Runs the request in a savepoint; the status says whether anything of it is left. When
 * apply->trouble is set afterwards the whole transaction is void. */
void sqlite_apply_commit(struct sqlite_apply *apply, struct store_commit *req);
void sqlite_apply_purge(struct sqlite_apply *apply, struct store_purge *req);

/* Writes the counters and removes a few expired claims, before COMMIT. */
void sqlite_apply_counters(struct sqlite_apply *apply);
void sqlite_apply_sweep(struct sqlite_apply *apply, int64_t now_ms);
