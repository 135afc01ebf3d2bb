/* queue_rates.h - how many items of a queue, or of a limit, may start per period.
 *
 * A queue or limit may have a rate for all of its keys together, and one for each key. An
 * item is offered only if each bucket that it needs has a token: those of its queue, of its
 * limits, and of its gates. An item that resumes needs none, and takes none.
 *
 *   queues_take_tokens ─► bucket ── has a token ──► heads stay
 *                           │
 *                           └───── is dry ────────► its heads are removed, until
 *                                                   queues_refill at the time of its next
 *                                                   token
 *
 * A bucket exists only while it is not full, so keys that are not used cost nothing. If an
 * environment has RATE_KEYS_MAX buckets of keys, queues and limits with a rate for each key
 * offer nothing until an eighth of them is full.
 *
 * Pure: the caller passes the time in, monotonic ms. */
#pragma once

#include "core/queues/queue.h"

enum {
    RATE_BUCKETS_MAX = 2 * (1 + SLOT_SET_MAX), /* of an item: two of each queue and limit */
    RATE_KEYS_MAX = 100000,                    /* buckets of keys of an environment */
};

/* Which bucket: that of a queue or a limit, and of a key of it. */
struct rate_place {
    bool is_limit;
    struct slice name;
    struct slice key; /* absent: of all keys together */
};

/* A bucket that is not full. The texts are borrowed from the queues. */
struct rate_figures {
    struct rate_place place;
    struct rate rate;
    int64_t full_at; /* monotonic ns */
};

/* Takes a token of each bucket that the item needs, which was given its slots just now. */
void queues_take_tokens(struct queues *queues, const struct queue_item *item,
                        int64_t now_ms);

/* Gives back a token that was taken for an item that did not start. */
void queues_return_token(struct queues *queues, struct rate_place place, int64_t now_ms);

/* Offers items whose buckets have a token again, and drops full buckets: so many that it takes
 * well below 1 ms. Call it before queues_next, and when settings have changed. Returns when
 * the next bucket changes, monotonic ms; not after now_ms: more of them have changed already;
 * INT64_MAX: never. */
int64_t queues_refill(struct queues *queues, int64_t now_ms);

/* Writes the buckets that an item with slots needs and that are not full; returns how
 * many. */
size_t queues_buckets(const struct queues *queues, const struct queue_item *item,
                      struct rate_figures out[RATE_BUCKETS_MAX]);

/* Returns the rate of this bucket (starts 0: none), and when it is full (0: it is). */
struct rate_figures queues_bucket(const struct queues *queues, struct rate_place place);

/* Brings a bucket back that will be full in left_ms. A time that is too long for the rate is
 * shortened: the clock may have been set back. Does nothing if there is no such rate. */
void queues_restore_bucket(struct queues *queues, struct rate_place place, int64_t left_ms,
                           int64_t now_ms);

/* Returns true if a waiting item needs a token that is not there. Then out is the bucket that
 * has one last, and opens_ms when it has; monotonic ms. */
bool queues_lacks_token(const struct queues *queues, const struct queue_item *item,
                        struct rate_figures *out, int64_t *opens_ms);
