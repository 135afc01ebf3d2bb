/* parts.c - returns each part of the API, so that callers need not know the others. */
#include "api/request/parts.h"

#include "api/request/route.h"
#include "base/log.h"

struct bytes *api_document(const struct api *api)
{
    return api->document;
}

struct bytes *api_timezones(const struct api *api)
{
    return api->timezones;
}

struct rate_limit *api_rate_limit(const struct api *api)
{
    return api->rate_limit;
}

struct quotas *api_quotas(struct api *api)
{
    return &api->quotas;
}

struct long_polls *api_long_polls(const struct api *api)
{
    return api->long_polls;
}

struct limit_expiry *api_limit_expiry(const struct api *api)
{
    return api->limit_expiry;
}

struct events *api_events(const struct api *api)
{
    return api->events;
}

struct run_notifications *api_run_notifications(const struct api *api)
{
    return api->run_notifications;
}

struct traces *api_traces(const struct api *api)
{
    return api->traces;
}

struct envvars *api_envvars(const struct api *api)
{
    return api->envvars;
}

struct streams *api_streams(const struct api *api)
{
    return api->streams;
}

struct list *api_held(struct api *api)
{
    return &api->held;
}

struct list *api_calls(struct api *api)
{
    return &api->calls;
}

struct sockets *api_sockets(const struct api *api)
{
    return api->sockets;
}

struct open_batches *api_open_batches(const struct api *api)
{
    return api->open_batches;
}

struct logins *api_logins(const struct api *api)
{
    return api->logins;
}

struct bulks *api_bulks(const struct api *api)
{
    return api->bulks;
}

struct artifacts *api_artifacts(const struct api *api)
{
    return api->artifacts;
}

struct deployments *api_deployments(const struct api *api)
{
    return api->deployments;
}

void api_skip(struct api *api, unsigned bit, const char *what)
{
    if (!(api->skipped & 1u << bit))
        log_info("worker sends an unsupported request", "what", what, NULL);
    api->skipped |= 1u << bit;
}

const char *api_doubt(const struct api *api)
{
    const struct api_options *options = &api->options;
    return options->why_not ? options->why_not(options->owner) : NULL;
}

const char *api_not_ready(const struct api *api)
{
    return api->not_ready ? api->not_ready : api_doubt(api);
}

enum err api_check_fresh(struct api_call *call)
{
    const struct secret *secret = call->identity->secret;
    struct loop *loop = engine_loop(call->api->engine);
    if (secret->signed_in && secret_is_fresh(secret, loop_now_ms(loop), loop_wall_ms(loop)))
        return OK;
    return explain(&call->why, ERR_FORBIDDEN,
                   "This needs a sign-in that is younger than 10 minutes: %s",
                   secret->signed_in ? "confirm yours with POST /api/v1/sign-in/confirm"
                                     : "POST /api/v1/sign-in makes one of this token");
}

enum err api_check_not_stale(struct api_call *call)
{
    return call->identity->secret->signed_in ? api_check_fresh(call) : OK;
}

bool api_follows(const struct api *api)
{
    return api->follows && api->may_lead_soon;
}

/* Returns true if only a doubt keeps the gateway from serving the call. A follower refuses
 * calls without a route itself, if it cannot forward them. */
static bool is_served(const struct api_call *call)
{
    const struct api *api = call->api;
    if (!api->follows)
        return api->serves_on;
    return (api->may_lead_soon || api->serves_on) && (!call->route || call->route->follows);
}

const char *api_why_refused(const struct api_call *call)
{
    if (call->is_unconfirmed)
        return "it cannot confirm that its data is current";
    return is_served(call) ? api_doubt(call->api) : api_not_ready(call->api);
}

enum err api_check_ready(struct api_call *call)
{
    const char *reason = api_why_refused(call);
    if (!reason)
        return OK;
    return explain(&call->why, ERR_DRAINING, "The gateway is not ready: %s", reason);
}

enum err api_check_current(struct api_call *call)
{
    if (!environment_is_late(call->env))
        return OK;
    return explain(
        &call->why, ERR_DRAINING,
        "The gateway cannot confirm that its data of this environment is current");
}

enum err api_check_lead(const struct api *api, struct failure *why)
{
    const char *reason = api->follows ? api_not_ready(api) : api_doubt(api);
    return reason ? explain(why, ERR_DRAINING, "The gateway is not ready: %s", reason) : OK;
}

struct engine *api_engine(const struct api *api)
{
    return api->engine;
}

struct schedules *api_schedules(const struct api *api)
{
    return api->schedules;
}

struct auth *api_auth(const struct api *api)
{
    return api->auth;
}

struct unknown_credentials *api_unknown_credentials(struct api *api)
{
    return &api->unknown_credentials;
}

struct accounts *api_accounts(const struct api *api)
{
    return api->accounts;
}

const struct api_options *api_options(const struct api *api)
{
    return &api->options;
}
