/* gateway_retain.h - retention: final runs are removed when they are old enough. */
#pragma once

#include "auth/accounts.h"
#include "engine/engine.h"

struct retain;

/* retain_ms 0: nothing is ever removed, and NULL is returned. */
struct retain *retain_create(struct engine *engine, struct accounts *accounts,
                             int64_t retain_ms);

/* NULL is fine. A purge on its way ends by itself. */
void retain_destroy(struct retain *retain);
