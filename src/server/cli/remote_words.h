/* remote_words.h - determines the environment of a remote subcommand by its key. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/usage.h"

/* Sets *environment to "prod", "staging" or "preview", by the prefix of the key.
 *
 * ERR_USAGE: it is the key of another environment than --env names, of dev, which nothing
 * can be deployed to, or of none; or --branch is missing (preview), or given (others). */
enum err remote_words_check_key(const struct said *said, const char *key,
                                const char **environment, struct failure *why);

/* Reads "20261125.1" as two numbers. */
bool remote_version_read(const char *text, unsigned long long *day,
                         unsigned long long *number);
