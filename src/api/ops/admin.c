/* admin.c - the routes for operators: health, readiness, metrics, gateways and
 * /openapi.json. */
#include "api/ops/admin_access.h"
#include "api/ops/gateways_query.h"
#include "api/ops/scrape.h"
#include "api/ops/unready.h"
#include "api/request/call.h"
#include "api/request/route.h"
#include "base/metrics.h"

static enum err healthz(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"status\":\"ok\"}"));
    return OK;
}

/* HAProxy keeps the connections of a server that returns 404, and sends it no others
 * (http-check disable-on-404). */
static int unready_status(const struct api_call *call)
{
    return slice_is(api_query(call, "unready"), "404") ? 404 : 503;
}

/* As runcast_leads and runcast_follows report it. */
static const char *role(void)
{
    return metrics[M_LEADS] ? "leads" : metrics[M_FOLLOWS] ? "follows" : "stands by";
}

static enum err readyz(struct api_call *call)
{
    const char *words[UNREADY_REASONS_MAX];
    size_t count = unready_reasons(call->api, words);
    json_t *reasons = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(reasons, json_string(words[i]));
    bool ready = count == 0;
    json_t *body = json_pack("{s:s, s:o, s:s}", "status", ready ? "ready" : "not ready",
                             "reasons", reasons, "role", role());
    api_reply_value(call, ready ? 200 : unready_status(call), body);
    return OK;
}

static enum err show_metrics(struct api_call *call)
{
    if (!call->x->admin && !admin_has_metrics_token(call))
        return explain(
            &call->why, ERR_UNAUTHORIZED,
            "Metrics are served at --admin-listen (by default metrics.sock in the data "
            "directory); this address needs RUNCAST_METRICS_TOKEN as bearer token");
    scrape_begin(call);
    return OK;
}

static enum err show_gateways(struct api_call *call)
{
    if (!call->x->admin && !admin_has_metrics_token(call))
        return explain(&call->why, ERR_UNAUTHORIZED,
                       "The gateways and their addresses are listed at --admin-listen (by "
                       "default metrics.sock in the data directory); this address needs "
                       "RUNCAST_METRICS_TOKEN as bearer token");
    return gateways_list(call, true);
}

static enum err show_openapi(struct api_call *call)
{
    api_add_header(call, "content-type", SLICE("application/json; charset=utf-8"));
    api_reply_shared(call, 200, api_document(call->api));
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/healthz",
      .handle = healthz,
      .id = "health", .summary = "Check that the process responds",
      .reply = "{status: 'ok'}" },
    { .method = HTTP_GET_, .path = "/readyz",
      .awaited = { 503, 404 }, .handle = readyz,
      .id = "readiness", .summary = "Check whether calls are accepted; if not, 503 with the reasons",
      .query = "unready?: '404'",
      .reply = "{status: string, reasons: string[], "
               "role: 'leads' | 'follows' | 'stands by'}" },
    { .method = HTTP_GET_, .path = "/metrics",
      .handle = show_metrics,
      .id = "metrics",
      .summary = "Metrics in the text form of Prometheus, for the metrics token",
      .gives = "text/plain",
      .reply = "string",
      .also = "401" },
    { .method = HTTP_GET_, .path = "/gateways",
      .handle = show_gateways,
      .id = "gateways",
      .summary = "The gateways on the database with their addresses, for the metrics token",
      .reply = "Gateways",
      .also = "401" },
    { .method = HTTP_GET_, .path = "/openapi.json",
      .handle = show_openapi,
      .id = "openapi", .summary = "This document",
      .reply = "{openapi: string, ...}" },
    { 0 },
};
/* clang-format on */

const struct area admin_area = { .tag = "admin", .routes = routes };
