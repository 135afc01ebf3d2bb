/* config_help.h - the texts of help: of everything, or of one command. */
#pragma once

#include "base/buf.h"
#include "server/config/subcommand.h"

/* Appends the help of the command that begins with the row first. For the first row of the table, and
 * for NULL, appends the help of everything. */
void config_print_help(const struct subcommand *table, const struct subcommand *first,
                       struct buf *out);
