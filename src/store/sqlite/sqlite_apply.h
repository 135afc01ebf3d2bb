/* sqlite_apply.h - what requests do to the tables, inside a transaction of the writer.
 *
 * Positions and run numbers are counted in memory and written once per transaction; a
 * request that fails gives back what it counted. */
#pragma once

#include "base/table.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_growth.h"

struct sqlite_apply {
    struct sqlite_db *db;
    struct table counters;         /* seq of environments, run.number of their tasks */
    struct list changed;           /* counters that the transaction has moved */
    struct sqlite_growths growths; /* of the transaction; whoever commits takes them */
    struct buf text;               /* of the row that is written */
    bool keeps_apart;              /* each request has a savepoint of its own */
    int64_t swept_at;              /* Unix ms, of the last look for expired claims */
    int taken;   /* claims since then: as many and some more are removed at the next look */
    int trouble; /* extended result code that ends the transaction, or SQLITE_OK */
};

void sqlite_apply_init(struct sqlite_apply *apply, struct sqlite_db *db);
void sqlite_apply_finish(struct sqlite_apply *apply);

/* Forgets the counters; after a transaction that was not committed. */
void sqlite_apply_forget(struct sqlite_apply *apply);

/* Runs the request; the status says whether it was done. False: it was not, but something of it is
 * left, which goes with the transaction alone; never while requests are kept apart. When
 * apply->trouble is set afterwards the whole transaction is void. */
bool sqlite_apply_commit(struct sqlite_apply *apply, struct store_commit *req);
void sqlite_apply_purge(struct sqlite_apply *apply, struct store_purge *req);

/* Removes a few expired claims. */
void sqlite_apply_sweep(struct sqlite_apply *apply, int64_t now_ms);

/* Writes the counters and what environments have grown, before COMMIT. */
void sqlite_apply_counters(struct sqlite_apply *apply);

/* ---- for sqlite_purge.c ---- */

/* What an (extended) result code means to a request; into trouble, if it ends more. */
enum store_status sqlite_apply_outcome(struct sqlite_apply *apply, int code);

/* Runs SQL_INSERT_TAG or SQL_DELETE_TAG for each of the tags. */
enum store_status sqlite_apply_tags(struct sqlite_apply *apply, const struct change *change,
                                    struct slice tags, enum sqlite_statement which);
