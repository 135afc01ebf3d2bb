/* remote_words.c - reads words, and of a key which environment it opens. */
#include "server/cli/remote_words.h"

#include "base/slice.h"
#include "base/text.h"

/* ---- words ---- */

static enum err take_option(struct remote_words *read, const char *const *words,
                            size_t count, size_t *at, struct failure *why)
{
    const char *name = words[*at];
    const char **value = strcmp(name, "--env") == 0           ? &read->env
                         : strcmp(name, "--branch") == 0      ? &read->branch
                         : strcmp(name, "--external-id") == 0 ? &read->external_id
                                                              : NULL;
    if (!value) {
        read->skip_promotion = true;
        return OK;
    }
    if (*at + 1 == count)
        return explain(why, ERR_USAGE, "%.60s: needs a value", name);
    *value = words[++*at];
    return OK;
}

enum err remote_words_read(const char *const *words, size_t count, const char *argument,
                           const char *options, struct remote_words *read,
                           struct failure *why)
{
    enum err refused = OK;
    *read = (struct remote_words){ 0 };
    for (size_t at = 1; !refused && at < count; at++) {
        char wanted[64];
        snprintf(wanted, sizeof(wanted), " %.60s ", words[at]);
        if (strncmp(words[at], "--", 2) != 0 && argument && !read->argument)
            read->argument = words[at];
        else if (strncmp(words[at], "--", 2) == 0 && strstr(options, wanted))
            refused = take_option(read, words, count, &at, why);
        else
            refused = explain(why, ERR_USAGE,
                              "%.60s: not for runcast %s; runcast help %s shows what is",
                              words[at], words[0], words[0]);
    }
    if (!refused && argument && !read->argument)
        refused = explain(why, ERR_USAGE, "say runcast %s %s; runcast help %s says more",
                          words[0], argument, words[0]);
    return refused;
}

/* ---- the environment ---- */

static const struct {
    const char *prefix, *name, *also; /* also: another word for the name */
} environments[] = {
    { "tr_prod_", "prod", "production" }, { "tr_stg_", "staging", "stg" },
    { "tr_staging_", "staging", "stg" },  { "tr_preview_", "preview", "preview" },
    { "tr_dev_", "dev", "development" },
};

enum { ENVIRONMENTS = sizeof(environments) / sizeof(environments[0]) };

static bool is_named(size_t which, const char *word)
{
    return strcmp(word, environments[which].name) == 0 ||
           strcmp(word, environments[which].also) == 0;
}

enum err remote_words_check_key(const struct remote_words *words, const char *key,
                                const char **environment, struct failure *why)
{
    size_t which = 0;
    while (which < ENVIRONMENTS && !slice_starts(slice_of(key), environments[which].prefix))
        which++;
    if (which == ENVIRONMENTS)
        return explain(why, ERR_USAGE,
                       "TRIGGER_SECRET_KEY has to be the secret key of an environment "
                       "(tr_prod_…, tr_stg_…, tr_preview_…): runcast keys shows them where "
                       "the gateway's data are");
    const char *name = environments[which].name;
    if (strcmp(name, "dev") == 0)
        return explain(why, ERR_USAGE,
                       "TRIGGER_SECRET_KEY is that of the development environment, where "
                       "nothing is deployed: set that of prod, staging or preview");
    if (words->env && !is_named(which, words->env))
        return explain(why, ERR_USAGE,
                       "--env %.40s, and TRIGGER_SECRET_KEY is the key of %s: set that of "
                       "the environment that is meant",
                       words->env, name);
    bool is_preview = strcmp(name, "preview") == 0;
    if (is_preview && !words->branch)
        return explain(why, ERR_USAGE, "a preview has branches: say --branch NAME");
    if (!is_preview && words->branch)
        return explain(why, ERR_USAGE, "--branch: only preview has branches, not %s", name);
    *environment = name;
    return OK;
}

bool remote_version_read(const char *text, unsigned long long *day,
                         unsigned long long *number)
{
    struct slice rest = slice_of(text), first;
    uint64_t left, right;
    if (!slice_split(&rest, '.', &first) || !rest.ptr || text_to_u64(first, &left) ||
        text_to_u64(rest, &right))
        return false;
    *day = left;
    *number = right;
    return true;
}
