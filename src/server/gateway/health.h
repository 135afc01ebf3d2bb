/* health.h - `runcast health`: asks the gateway that runs on the data directory whether it is
 * ready, for supervisors that have no HTTP client at hand, as in a container without a shell. */
#pragma once

#include <stdio.h>

#include "server/config/config.h"

/* OK: it answered GET /readyz at admin-listen with 200, and out has its answer. ERR_INVALID: it
 * is not ready, nobody answers within five seconds, or admin-listen is no address to be asked at:
 * the reason says which. */
enum err health_ask(const struct config *config, FILE *out, struct failure *why);
