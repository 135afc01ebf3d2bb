/* config_help.h - the texts of help; private to config.c and its tests. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

bool config_help_knows(const char *command);

/* command NULL: everything. */
void config_print_help(const char *command, struct buf *out);
