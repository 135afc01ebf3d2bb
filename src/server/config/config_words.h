/* config_words.h - which words and options of the command line belong to subcommands with words of
 * their own, and are handed to them; what they mean is for these to judge. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* "org", "project" …: the first word of a command on accounts. */
bool config_words_are_of_accounts(const char *word);

/* "backup", "restore", "db", "copy": the first word of a command on the data directory. */
bool config_words_are_of_data(const char *word);

/* "--name" of the name, which has a value; NULL: no command has such an option. */
const char *config_words_option(struct slice name);

/* "--skip-promotion": an option of a command that has no value. */
bool config_words_are_switch(const char *argument);
