/* reported_uses.h - the last uses of keys and tokens that a follower reports to the leader,
 * which stores them (api/router/stored_uses.h).
 *
 *   every 10 s: a walk over all keys and tokens, in pieces ─► those used since the walk before
 *                                                             the last one
 *
 * So each use is reported twice, in case that a walk has missed one of a table that grew, or
 * that a report was lost with its connection. */
#pragma once

#include "accounts/accounts.h"
#include "core/replication/frames.h"

/* Zeroed, it reports all uses that are not stored. */
struct reported_uses {
    size_t at;         /* of the walk in progress; 0: none is */
    int64_t due_ms;    /* when the next one begins; monotonic */
    int64_t began_ms;  /* of the walk in progress, or of the last one; Unix ms, as below */
    int64_t before_ms; /* of the walk before it */
    int64_t since_ms;  /* it reports later uses only */
};

/* Continues the walk if one is due, and copies up to `most` uses. Returns their number. */
size_t reported_uses_collect(struct reported_uses *reported,
                             const struct accounts *accounts, int64_t now_ms,
                             int64_t wall_ms, struct repl_use *list, size_t most);
