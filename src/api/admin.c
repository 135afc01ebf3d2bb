/* admin.c - what operators ask: does the process answer, may it be sent work, what does it
 * count. */
#include "api/api.h"
#include "api/routes.h"
#include "base/metrics.h"

static enum err healthz(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"status\":\"ok\"}"));
    return OK;
}

/* What stands against sending work here; nothing: ready. A drain never turns back. */
static enum err readyz(struct api_call *call)
{
    const struct store *store = engine_store(api_engine(call->api));
    const char *reason = api_not_ready(call->api);
    json_t *reasons = json_array();

    if (reason)
        json_array_append_new(reasons, json_string(reason));
    if (store->failing)
        json_array_append_new(reasons, json_string("storage_unavailable"));
    if (store->full)
        json_array_append_new(reasons, json_string("storage_full"));
    bool ready = json_array_size(reasons) == 0;
    json_t *body = json_pack("{s:s, s:o}", "status", ready ? "ready" : "not ready",
                             "reasons", reasons);
    api_reply_value(call, ready ? 200 : 503, body);
    return OK;
}

/* Compared without telling by its time how much of the token was right. */
static bool same_secret(struct slice given, struct slice wanted)
{
    unsigned char different = given.len != wanted.len;
    for (size_t i = 0; i < given.len && i < wanted.len; i++)
        different |= (unsigned char)(given.ptr[i] ^ wanted.ptr[i]);
    return !different;
}

/* What a proxy on this machine passes on comes from somewhere else. */
static bool comes_from_this_machine(const struct api_call *call)
{
    return call->x->peer_is_loopback && !http_header(call->x, "x-forwarded-for").ptr;
}

static bool may_see_metrics(const struct api_call *call)
{
    struct slice wanted = slice_of(api_options(call->api)->metrics_token);
    struct slice given = http_header(call->x, "authorization");
    if (!wanted.len)
        return comes_from_this_machine(call);
    if (slice_starts(given, "Bearer "))
        given = slice_from(given, 7);
    return same_secret(given, wanted);
}

static enum err show_metrics(struct api_call *call)
{
    struct buf text = { 0 };
    if (!may_see_metrics(call))
        return explain(&call->why, ERR_FORBIDDEN,
                       "Metrics are for this machine only: start the gateway with "
                       "--metrics-token and send it as a bearer token");
    metrics_print(&text);
    api_reply_text(call, 200, "text/plain; version=0.0.4; charset=utf-8", buf_slice(&text));
    buf_finish(&text);
    return OK;
}

static enum err show_openapi(struct api_call *call)
{
    api_add_header(call, "content-type", SLICE("application/json; charset=utf-8"));
    api_reply_shared(call, 200, api_document(call->api));
    return OK;
}

const struct route admin_routes[] = {
    { .method = HTTP_GET_, .pattern = "/healthz", .handle = healthz },
    { .method = HTTP_GET_, .pattern = "/readyz", .handle = readyz },
    { .method = HTTP_GET_, .pattern = "/metrics", .handle = show_metrics },
    { .method = HTTP_GET_, .pattern = "/openapi.json", .handle = show_openapi },
    { 0 },
};
