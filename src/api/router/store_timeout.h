/* store_timeout.h - replies 503 to calls whose write waits for an unresponsive database.
 *
 * The write continues without its call. */
#pragma once

struct api;
struct store_timeout;

/* Returns NULL for a store that completes every write. */
struct store_timeout *store_timeout_create(struct api *api);
/* Ignores NULL. */
void store_timeout_destroy(struct store_timeout *store_timeout);
