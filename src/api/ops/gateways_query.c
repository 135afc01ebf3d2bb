/* gateways_query.c - replies to a call with the list of gateways. */
#include "api/ops/gateways_query.h"

#include "base/mem.h"

struct listing {
    struct gateways_query query;
    struct api_call *call;
};

static void on_listed(struct gateways_query *query, struct slice json, const char *why)
{
    struct listing *listing = container_of(query, struct listing, query);
    struct api_call *call = listing->call;
    free(listing);
    if (!why) {
        api_reply_json(call, 200, json);
        return;
    }
    explain(&call->why, ERR_DRAINING, "Cannot list the gateways: %s", why);
    api_reply_error(call, ERR_DRAINING);
}

enum err gateways_list(struct api_call *call, bool has_addresses)
{
    const struct api_options *options = api_options(call->api);
    if (!options->list_gateways)
        return explain(&call->why, ERR_NOT_FOUND, "This gateway does not know others");
    struct listing *listing = mem_new(struct listing);
    listing->query =
        (struct gateways_query){ .has_addresses = has_addresses, .done = on_listed };
    listing->call = call;
    call->busy = true;
    options->list_gateways(options->owner, &listing->query);
    return OK;
}
