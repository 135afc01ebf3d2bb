/* config_help.h - the texts of --help: for everything, or for one command. */
#pragma once

#include "base/buf.h"
#include "server/config/subcommand.h"

/* Appends the help of the command that begins with the row first; or of everything, if
 * first is NULL or the first row of the table. */
void config_print_help(const struct subcommand *table, const struct subcommand *first,
                       struct buf *out);
