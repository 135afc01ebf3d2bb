/* config_help.h - the texts of help, and the tables that they are made of, from which man pages
 * and completions are made, too (deploy/describe). Private to config.c, these and its tests. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "server/config/config_value.h"

/* A form of a command is "runcast NAME" and what may stand behind it: a second word in lower
 * case, an argument in capitals, options (in brackets those that may be left out). Forms stand
 * in lines of their own, or behind " | "; what stands behind two spaces, or in a line that is
 * neither, says what the command does. */
struct help_command {
    const char *name, *usage, *about; /* lines; usage is in the overview too */
};

extern const struct help_command config_commands[];
extern const size_t config_command_count;

/* Options that are no settings. */
struct help_row {
    const char *name, *help; /* the name with what stands behind it: "--config FILE" */
};

extern const struct help_row config_actions[];
extern const size_t config_action_count;

/* Paragraphs of lines. */
extern const char config_help_of_commands[], config_help_of_options[],
    config_help_of_keys[];

/* What stands behind the flag of a setting: "NUMBER"; "": nothing. Not for secrets, which have
 * no flag. */
const char *config_help_value(const struct setting *setting);

bool config_help_knows(const char *command);

/* command NULL: everything. */
void config_print_help(const char *command, struct buf *out);
