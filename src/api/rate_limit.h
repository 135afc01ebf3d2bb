/* rate_limit.h - how many requests an environment's key, or one token, may send a minute.
 *
 *   tokens: half a minute's worth at once, then evenly      over it ─► 429, come back at …
 *
 * Off unless a limit is set. Counts calls under /api but those that belong to a call that
 * was counted: packets, the items of a batch, claims for signing (management-api §4.3). */
#pragma once

#include "call/call.h"

struct rate;

/* NULL: no limit. Its clocks are the loop's. */
struct rate *rate_create(struct loop *loop, int64_t per_minute);
/* NULL is fine. */
void rate_destroy(struct rate *rate);

struct rate_answer {
    int64_t limit, remaining;
    int64_t reset_ms; /* Unix: all there again; over the limit: one request is let in */
};

/* Takes one request of who from its share. False: there is none left. */
bool rate_take(struct rate *rate, const struct identity *who, struct rate_answer *answer);

/* The same for a call, with the headers that clients read. False: it was answered. */
bool rate_let_in(struct rate *rate, struct api_call *call);
