/* remote_command.h - the subcommands that ask a gateway anywhere, by its API and the secret key of
 * one environment, which says which one is meant. */
#pragma once

#include <stdio.h>

#include "base/error.h"

struct config;

/* run of their rows (server/config/subcommand.h). ERR_USAGE: the words or the settings are wrong. Of
 * other errors the reason was told, and why is left alone. */
enum err remote_command(const struct config *config, FILE *out, struct failure *why);
