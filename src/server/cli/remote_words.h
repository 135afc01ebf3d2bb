/* remote_words.h - what the words and the key of a command mean that asks a gateway by its API. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/usage.h"

/* The key and the words mean the same environment, "prod", "staging" or "preview", where
 * something can be deployed. ERR_USAGE. */
enum err remote_words_check_key(const struct said *said, const char *key,
                                const char **environment, struct failure *why);

/* "20261125.1" as two numbers. */
bool remote_version_read(const char *text, unsigned long long *day,
                         unsigned long long *number);
