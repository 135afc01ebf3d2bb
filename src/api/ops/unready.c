/* unready.c - finds the reasons for not being ready in the gateway and its store. */
#include "api/ops/unready.h"

/* Returns true if another gateway leads, and this one follows it and can pass on calls. */
static bool forwards(const struct api *api)
{
    const struct api_options *options = api_options(api);
    return api_follows(api) && options->leader && options->leader(options->owner);
}

size_t unready_reasons(const struct api *api, const char *words[UNREADY_REASONS_MAX])
{
    const struct store *store = engine_store(api_engine(api));
    const char *why_not = forwards(api) ? api_doubt(api) : api_not_ready(api);
    size_t count = 0;
    if (why_not)
        words[count++] = why_not;
    if (store->failing)
        words[count++] = "storage_unavailable";
    if (store->full)
        words[count++] = "storage_full";
    return count;
}
