/* remote_words.h - the words behind a subcommand that asks a gateway by its API.
 *
 *   NOUN [ARGUMENT] [--option VALUE | --option]… */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct remote_words {
    const char *argument;    /* NULL: the command has none */
    const char *env;         /* NULL: not said */
    const char *branch;      /* the same */
    const char *external_id; /* the same */
    bool skip_promotion;
};

/* ERR_USAGE with the reason; the words are borrowed. argument: what has to be said, for people;
 * NULL: nothing. options: " --env --branch ", those that the command has. */
enum err remote_words_read(const char *const *words, size_t count, const char *argument,
                           const char *options, struct remote_words *read,
                           struct failure *why);

/* The key and the words mean the same environment, "prod", "staging" or "preview", where
 * something can be deployed. ERR_USAGE. */
enum err remote_words_check_key(const struct remote_words *words, const char *key,
                                const char **environment, struct failure *why);

/* "20261125.1" as two numbers. */
bool remote_version_read(const char *text, unsigned long long *day,
                         unsigned long long *number);
