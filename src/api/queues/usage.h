/* usage.h - the runs and keys that use a concurrency limit or a queue, as clients see them.
 *
 *   {"running": [run…], "queued": [run…], "keys": [{"concurrencyKey": "ann", "running": 1…}…]}
 *
 * A run uses a queue that it is in, or that is its gate. */
#pragma once

#include "api/request/call.h"

/* Replies with the usage. Requires that the limit or queue is known. */
void usage_reply(struct api_call *call, bool is_limit, struct slice name);

/* Appends what the limit or queue allows for one key, and how much of that is in use. */
void usage_add_key(struct buf *out, const struct environment *env, bool is_limit,
                   struct slice name, struct slice key);

/* Appends the beginning of an object, with the limit that is in effect: at most that of the
 * environment. UINT32_MAX: none. */
void usage_add_current(struct buf *out, const struct queues *queues, uint32_t limit);

/* Append a member, null unless it is set. UINT32_MAX is null, too. */
void usage_add_number(struct buf *out, const char *member, bool is_set, uint32_t number);
void usage_add_moment(struct buf *out, const char *member, bool is_set, int64_t time);
