/* confinement.h - restricts what the gateway's own process may access while it serves. */
#pragma once

#include "server/config/config.h"

/* Creates the data directory if it is missing, because access to a missing one cannot be
 * granted, and enters the sandbox for good, unless --sandbox off. No thread may be running
 * yet. Logs the restrictions, and what the kernel lacks. */
enum err confinement_begin(const struct config *config, char **environment,
                           struct failure *why);
