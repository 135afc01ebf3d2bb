/* health.h - `runcast health`: reports whether the data directory's gateway is ready.
 *
 * For service managers without an HTTP client, such as containers without a shell. */
#pragma once

#include <stdio.h>

#include "server/config/config.h"

/* OK: GET /readyz at admin-listen returned 200, and out has its body. ERR_INVALID with the
 * reason: not ready, no response within five seconds, or admin-listen cannot be connected
 * to. */
enum err health_ask(const struct config *config, FILE *out, struct failure *why);

/* Returns true if a gateway responds at admin-listen, whether it is ready or not. Waits for
 * up to five seconds. */
bool health_responds(const struct config *config);
