/* config_words.c - the lists of words. */
#include "server/config/config_words.h"

#include <string.h>

static bool is_among(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

bool config_words_are_of_accounts(const char *word)
{
    static const char *const nouns[] = { "org",   "project",      "user",
                                         "token", "worker-token", "dashboard" };
    return is_among(nouns, sizeof(nouns) / sizeof(nouns[0]), word);
}

bool config_words_are_of_data(const char *word)
{
    static const char *const nouns[] = { "backup", "restore", "db", "copy" };
    return is_among(nouns, sizeof(nouns) / sizeof(nouns[0]), word);
}

const char *config_words_option(struct slice name)
{
    static const char *const options[] = { "--org",     "--name",   "--email",
                                           "--slug",    "--ref",    "--user",
                                           "--project", "--grace",  "--env",
                                           "--confirm", "--branch", "--external-id",
                                           "--to" };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (slice_is(name, options[i] + 2))
            return options[i];
    return NULL;
}

bool config_words_are_switch(const char *argument)
{
    static const char *const switches[] = { "--new-personal-token", "--skip-promotion",
                                            "--json" };
    return is_among(switches, sizeof(switches) / sizeof(switches[0]), argument);
}
