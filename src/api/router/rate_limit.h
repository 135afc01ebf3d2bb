/* rate_limit.h - how many requests an environment's key, or one token, may send a minute.
 *
 *   tokens: half a minute's worth at once, then evenly      over it ─► 429, come back at …
 *
 * Off unless a limit is set. Counts calls under /api but those that belong to a call that
 * was counted: packets, the items of a batch, claims for signing. */
#pragma once

#include "api/request/call.h"

struct rate_limit;

/* NULL: no limit. Its clocks are the loop's. */
struct rate_limit *rate_limit_create(struct loop *loop, int64_t per_minute);
/* NULL is fine. */
void rate_limit_destroy(struct rate_limit *limit);

struct rate_limit_answer {
    int64_t limit, remaining;
    int64_t reset_ms; /* Unix: all there again; over the limit: one request is let in */
};

/* Takes one request of who from its share. False: there is none left. */
bool rate_limit_take(struct rate_limit *limit, const struct identity *who,
                     struct rate_limit_answer *answer);

/* The same for a call, with the headers that clients read. False: it was answered. */
bool rate_limit_let_in(struct rate_limit *limit, struct api_call *call);
