/* confinement.h - what the gateway's own process may still reach once it serves. */
#pragma once

#include "server/config/config.h"

/* Makes the data directory where there is none, since what is not there cannot be allowed, and begins
 * the sandbox, unless --sandbox off. No thread runs yet; there is no way back. What is in force, and
 * what the kernel lacks, is in the log. */
enum err confinement_begin(const struct config *config, char **environment,
                           struct failure *why);
