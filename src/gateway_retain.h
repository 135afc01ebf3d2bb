/* gateway_retain.h - retention: final runs are removed when they are old enough. */
#pragma once

#include "api/api.h"
#include "auth/accounts.h"

struct retain;

/* retain_ms 0: nothing is ever removed, and NULL is returned. */
struct retain *retain_create(struct api *api, struct accounts *accounts, int64_t retain_ms);

/* Before the api goes. NULL is fine. A purge on its way ends by itself. */
void retain_destroy(struct retain *retain);
