/* unready.c - finds the reasons for not being ready in the gateway and its store. */
#include "api/ops/unready.h"

size_t unready_reasons(const struct api *api, const char *words[UNREADY_REASONS_MAX])
{
    const struct store *store = engine_store(api_engine(api));
    size_t count = 0;
    if (api_not_ready(api))
        words[count++] = api_not_ready(api);
    if (store->failing)
        words[count++] = "storage_unavailable";
    if (store->full)
        words[count++] = "storage_full";
    return count;
}
