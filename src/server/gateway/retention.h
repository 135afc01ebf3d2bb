/* retention.h - retention: final runs are removed when they are old enough, and all of a
 * deleted project at once. */
#pragma once

#include "accounts/accounts.h"
#include "api/request/call.h"

struct retain;

/* retain_ms 0: nothing is removed but what deleted projects have left. */
struct retain *retain_create(struct api *api, struct accounts *accounts, int64_t retain_ms);

/* An environment has ended: looks soon. NULL is fine. */
void retain_soon(struct retain *retain);

/* Before the api goes. NULL is fine. A purge on its way ends by itself. */
void retain_destroy(struct retain *retain);
