/* remote_words.c - checks that --env and --branch fit the environment of the secret key. */
#include "server/cli/remote_words.h"

#include "base/slice.h"
#include "base/text.h"

static const struct {
    const char *prefix, *name, *also; /* also: another word for name */
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

enum err remote_words_check_key(const struct said *said, const char *key,
                                const char **environment, struct failure *why)
{
    const char *env = said_option(said, "--env"), *branch = said_option(said, "--branch");
    size_t which = 0;
    while (which < ENVIRONMENTS && !slice_starts(slice_of(key), environments[which].prefix))
        which++;
    if (which == ENVIRONMENTS)
        return explain(
            why, ERR_USAGE,
            "TRIGGER_SECRET_KEY is not the secret key of an environment (tr_prod_…, "
            "tr_stg_…, tr_preview_…); runcast keys lists them on the gateway's machine");
    const char *name = environments[which].name;
    if (strcmp(name, "dev") == 0)
        return explain(why, ERR_USAGE,
                       "TRIGGER_SECRET_KEY is the key of the development environment, "
                       "which has no deployments; use the key of prod, staging or preview");
    if (env && !is_named(which, env))
        return explain(why, ERR_USAGE,
                       "--env is %.40s, but TRIGGER_SECRET_KEY is the key of %s; set the "
                       "key of the environment you mean",
                       env, name);
    bool is_preview = strcmp(name, "preview") == 0;
    if (is_preview && !branch)
        return explain(why, ERR_USAGE,
                       "--branch is missing: the key is that of preview, which has "
                       "branches; add --branch NAME");
    if (!is_preview && branch)
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
