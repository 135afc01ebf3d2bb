/* retention.h - removes expired final runs, and the data of deleted projects at once. */
#pragma once

#include "accounts/accounts.h"
#include "api/request/call.h"

struct retain;

/* retain_ms: how long final runs are kept; 0: forever, so that only the data of deleted
 * projects is removed. */
struct retain *retain_create(struct api *api, struct accounts *accounts, int64_t retain_ms);

/* Call it when an environment has ended, to check it soon. Ignores NULL. */
void retain_soon(struct retain *retain);

/* Calls fn when the store has removed runs, before they leave memory. One listener. */
void retain_on_purged(struct retain *retain,
                      void (*fn)(void *owner, const struct store_position *position),
                      void *owner);

/* Removes nothing more. Returns true once no purge is in flight: call it until then. */
bool retain_stop(struct retain *retain);

/* Call it before the api is destroyed. A purge in flight ends by itself. Ignores NULL. */
void retain_destroy(struct retain *retain);
