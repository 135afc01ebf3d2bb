/* sqlite_apply.h - applies requests to the tables, inside a transaction of the writer.
 *
 * Positions and run numbers are counted in memory and written once per transaction. A
 * request that fails undoes its counting. */
#pragma once

#include "base/table.h"
#include "store/sqlite/sqlite_claim_index.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_growth.h"

struct sqlite_apply {
    struct sqlite_db *db;
    /* struct counter: seq of environments, and run numbers of tasks */
    struct table counters;
    struct list changed; /* counters changed by the transaction */
    /* of the transaction; the writer takes them after the commit */
    struct sqlite_growths growths;
    struct claim_index brief; /* the rows of brief claims, if they were loaded */
    struct buf text;          /* scratch memory for the row being written */
    bool keeps_apart;         /* each request gets its own savepoint */
    int64_t swept_at;         /* Unix ms of the last sweep of expired claims */
    /* claims taken since then; the next sweep removes that many and some more */
    int taken;
    int trouble; /* extended result code that ends the transaction, or SQLITE_OK */
};

void sqlite_apply_init(struct sqlite_apply *apply, struct sqlite_db *db);
void sqlite_apply_finish(struct sqlite_apply *apply);

/* Reads the brief claims. Call it before the first transaction, and after a transaction
 * whose outcome is unknown. Returns false on failure. */
bool sqlite_apply_load_claims(struct sqlite_apply *apply);

/* Keeps what was counted and claimed. Call it after a transaction that was committed. */
void sqlite_apply_keep(struct sqlite_apply *apply);

/* Discards the counters, and claims of the transaction. Call it after a transaction that
 * was not committed. */
void sqlite_apply_forget(struct sqlite_apply *apply);

/* Applies the request, and sets its status.
 *
 * Returns false if it failed but has changed something, which only a rollback of the
 * transaction undoes; never if keeps_apart is set. If apply->trouble is set afterwards, the
 * whole transaction is void. */
bool sqlite_apply_commit(struct sqlite_apply *apply, struct store_commit *req);
void sqlite_apply_purge(struct sqlite_apply *apply, struct store_purge *req);

/* Removes some expired claims. */
void sqlite_apply_sweep(struct sqlite_apply *apply, int64_t now_ms);

/* Writes the counters and the growth of environments. Call it before COMMIT. */
void sqlite_apply_counters(struct sqlite_apply *apply);

/* ---- shared with sqlite_purge.c and sqlite_claims.c ---- */

/* Maps a result code (extended) to a status.
 *
 * Stores the code in trouble if it ends the transaction. */
static inline enum store_status sqlite_apply_outcome(struct sqlite_apply *apply, int code)
{
    if (code == SQLITE_TOOBIG || (code & 0xff) == SQLITE_CONSTRAINT)
        return STORE_FAILED;
    if (code != SQLITE_OK && apply->trouble == SQLITE_OK)
        apply->trouble = code;
    return sqlite_status(code);
}

/* Executes SQL_INSERT_TAG or SQL_DELETE_TAG for each of the tags. */
enum store_status sqlite_apply_tags(struct sqlite_apply *apply, const struct change *change,
                                    struct slice tags, enum sqlite_statement which);

/* Tries all claims of the request. Returns STORE_TAKEN if another owner has one. */
enum store_status sqlite_apply_claims(struct sqlite_apply *apply, struct store_commit *req);
