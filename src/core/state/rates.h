/* rates.h - the tokens of a lease: taken at once, and stored in the commit of the dequeue.
 *
 *   lease ─► rates_take ─► decide: rates_refresh ─► commit: the run, and when each of its
 *                                                   buckets will be full
 *              ▲                                      │
 *              └── rates_end: given back, unless the run was leased
 *
 * A bucket is stored as a claim (CLAIM_RATE) that expires when the bucket is full. Its key is
 * a JSON array: "queue" or "limit", the name, and the concurrencyKey if the bucket is that of
 * one key. So a start finds exactly the buckets that are not full, and full ones are swept
 * like other claims.
 *
 * Claims expire by the wall clock, while buckets in memory use the monotonic clock. So steps
 * of the clock do not matter until a restart. Then a clock that was set back makes a bucket
 * at most empty, and one that was set forward counts as time that has passed. */
#pragma once

#include "core/queues/queue_rates.h"
#include "core/state/state.h"

/* The buckets that a dequeue has taken tokens of. */
struct rate_claims {
    size_t count;
    struct claim claims[RATE_BUCKETS_MAX];
};

/* Takes the tokens that a run needs which was given its slots just now. Returns NULL if it
 * needs none. */
struct rate_claims *rates_take(struct engine *engine, struct environment *env,
                               const struct queue_item *item);

/* Call it when the commit is decided. Other runs may have taken tokens of the same buckets
 * since then, and their commits may be earlier. Accepts NULL. */
void rates_refresh(struct engine *engine, const struct environment *env,
                   struct rate_claims *rates);

/* Frees the claims. returns: gives the tokens back. Accepts NULL. */
void rates_end(struct engine *engine, struct environment *env, struct rate_claims *rates,
               bool returns);

/* Handler of engine_share::refill. */
void rates_on_refill(struct timer *timer);

/* Brings the buckets of rates up to date, and offers runs whose buckets have a token. Call it
 * after changing a rate. */
void engine_refill(struct engine *engine, struct environment *env);

/* Brings a bucket back that was stored as a claim of CLAIM_RATE (store_scan::of_claims). Call
 * it when settings of queues and limits are in memory. */
void engine_restore_rate(struct engine *engine, const struct document *claim);
