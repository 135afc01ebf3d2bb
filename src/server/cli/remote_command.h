/* remote_command.h - subcommands that call a gateway's API with a secret key. */
#pragma once

#include <stdio.h>

#include "base/error.h"

struct config;

/* The function `run` of their rows in subcommands.def (server/config/subcommand.h).
 *
 * ERR_USAGE: the words or the settings are invalid. Any other error was printed already,
 * and why is unchanged. */
enum err remote_command(const struct config *config, FILE *out, struct failure *why);
