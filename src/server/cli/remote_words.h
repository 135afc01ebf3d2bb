/* remote_words.h - checks words and key of subcommands that use a gateway's API. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/usage.h"

/* Sets *environment to "prod", "staging" or "preview" if key and words mean the same one,
 * to which something can be deployed. Otherwise ERR_USAGE. */
enum err remote_words_check_key(const struct said *said, const char *key,
                                const char **environment, struct failure *why);

/* Reads "20261125.1" as two numbers. */
bool remote_version_read(const char *text, unsigned long long *day,
                         unsigned long long *number);
