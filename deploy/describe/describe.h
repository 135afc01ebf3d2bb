/* describe.h - the parts that templates of man pages and completions ask for, each a function
 * that appends lines. */
#pragma once

#include "base/buf.h"

typedef void part_fn(struct buf *out);

/* man.c, in scdoc(5) */
part_fn man_version, man_commands, man_options, man_actions, man_settings, man_of_options,
    man_of_keys, man_limits, man_close_codes;

/* shells.c; the first two are those of bash and zsh */
part_fn shell_forms, shell_values, bash_settings, zsh_settings, bash_commands, zsh_commands,
    fish_lines;
