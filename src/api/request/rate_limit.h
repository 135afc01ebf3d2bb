/* rate_limit.h - limits the requests per minute of an environment's key, or of one token.
 *
 *   tokens: half a minute's worth at once, then evenly      above that ─► 429, retry at …
 *
 * Off unless a limit is set. Counts uses of lasting sign-ins, and calls under /api except those
 * that belong to a counted call: packets, the items of a batch, claims for signing. */
#pragma once

#include "api/request/call.h"

struct rate_limit;

/* Returns NULL if per_minute is 0: no limit. Uses the clocks of the loop. */
struct rate_limit *rate_limit_create(struct loop *loop, int64_t per_minute);
/* Ignores NULL. */
void rate_limit_destroy(struct rate_limit *limit);

struct rate_limit_answer {
    int64_t limit, remaining;
    int64_t reset_ms; /* Unix; when all are available, or, if none is left, when one is */
};

/* Takes one request from the share of `who`. Returns false if none is left. */
bool rate_limit_take(struct rate_limit *limit, const struct identity *who,
                     struct rate_limit_answer *answer);

/* The same for a call, with the headers that clients read. On false, it has replied. */
bool rate_limit_allows(struct rate_limit *limit, struct api_call *call);
/* The same for a call without a credential that uses this lasting sign-in. */
bool rate_limit_allows_use(struct rate_limit *limit, struct api_call *call,
                           const struct secret *secret);
