/* subcommands.h - the table of subcommands. */
#pragma once

#include "server/config/subcommand.h"

/* The rows of subcommands.def. */
extern const struct subcommand subcommands[];
