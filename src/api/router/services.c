/* services.c - creates, starts, drains and stops the services that all clients' calls
 * share.
 *
 *   created ─► not ready: calls are refused ─► ready ─► draining: held calls are answered
 *                                                          └► stopped ─► destroyed */
#include "api/router/services.h"

#include "accounts/auth/logins.h"
#include "accounts/variables.h"
#include "api/artifacts/artifacts.h"
#include "api/batches/open_batches.h"
#include "api/bulk/bulk.h"
#include "api/deployments/deployments.h"
#include "api/envvars/envvars.h"
#include "api/queues/limit_expiry.h"
#include "api/queues/limit_settings.h"
#include "api/queues/queue_settings.h"
#include "api/realtime/events.h"
#include "api/realtime/long_polls.h"
#include "api/realtime/sockets.h"
#include "api/registration/promotion.h"
#include "api/registration/registration.h"
#include "api/request/early_calls.h"
#include "api/request/parts.h"
#include "api/request/rate_limit.h"
#include "api/request/routes.h"
#include "api/router/dispatch.h"
#include "api/router/forwarding.h"
#include "api/router/openapi.h"
#include "api/router/retired.h"
#include "api/router/revocation.h"
#include "api/router/store_timeout.h"
#include "api/router/stored_activity.h"
#include "api/router/stored_uses.h"
#include "api/schedules/schedules.h"
#include "api/schedules/timezones.h"
#include "api/streams/streams.h"
#include "api/telemetry/trace_shares.h"
#include "api/telemetry/traces.h"
#include "api/worker_notices/run_notifications.h"
#include "base/mem.h"

enum { HELD_AT_ONCE = 8 };

struct services {
    struct api api; /* first: what the calls use */
    struct revocation *revocation;
    struct trace_shares *trace_shares;
    struct store_timeout *store_timeout;
    struct retired *retired;
    struct stored_activity *stored_activity;
    struct stored_uses *stored_uses;
    struct deferred draining, doubting;
    struct list doubted;   // api_call::held; held when a doubt began, not checked yet
    size_t traces_written; /* of the drain: its place among the traces */
};

static struct services *services_of(struct api *api)
{
    return container_of(api, struct services, api);
}

static void drain_some(struct deferred *draining);
static void doubt_some(struct deferred *doubting);

struct api *api_create(struct engine *engine, struct schedules *schedules,
                       struct auth *auth, struct accounts *accounts,
                       const struct api_options *options)
{
    struct services *services = mem_new(struct services);
    struct api *api = &services->api;
    api->engine = engine;
    api->schedules = schedules;
    api->auth = auth;
    api->accounts = accounts;
    api->options = *options;
    api->sockets = sockets_create(engine_loop(engine));
    api->long_polls = long_polls_create(engine_loop(engine));
    api->limit_expiry = limit_expiry_create(api);
    api->events = events_create(engine_loop(engine));
    api->run_notifications = run_notifications_create(api);
    const struct trace_limits limits = { .rows = options->trace_rows,
                                         .bytes = options->trace_bytes };
    api->traces = traces_create(engine, accounts, &limits);
    api->envvars = envvars_create(engine_loop(engine), accounts_vault(accounts));
    quotas_init(&api->quotas);
    api->streams =
        streams_create(engine_loop(engine), &api->quotas, (size_t)options->stream_memory,
                       (size_t)options->stream_bytes);
    api->open_batches = open_batches_create(engine_loop(engine), &api->quotas);
    api->bulks = bulks_create(engine);
    api->logins = logins_create();
    api->artifacts =
        artifacts_create(engine_loop(engine), options->data, options->deploy_bundle);
    const struct deployment_options deployments = { .data = options->data,
                                                    .hold_ms = options->deploy_hold_ms,
                                                    .timeout_ms =
                                                        options->deploy_timeout_ms,
                                                    .keep = options->keep_versions,
                                                    .executes = options->executes };
    api->deployments = deployments_create(api, &deployments);
    api->areas = api_areas(&api->area_count);
    api->routes = routes_create(api->areas, api->area_count);
    api->document = openapi_write(api->areas, api->area_count);
    api->timezones = timezones_list_installed();
    list_init(&api->held);
    list_init(&api->calls);
    list_init(&services->draining.link);
    services->draining.fn = drain_some;
    list_init(&services->doubting.link);
    list_init(&services->doubted);
    services->doubting.fn = doubt_some;
    services->revocation = revocation_create(api);
    const struct trace_share_limits shares = { .environment = options->trace_share,
                                               .project = options->project_trace_share };
    services->trace_shares = trace_shares_create(engine, accounts, api->traces, &shares);
    services->store_timeout = store_timeout_create(api);
    services->retired = retired_create(api);
    services->stored_activity = stored_activity_create(api);
    services->stored_uses = stored_uses_create(api);
    api->early_calls =
        early_calls_create(engine_loop(engine), engine_certainty(engine), api_enter_early);
    api->forwarding = forwarding_create(api, api_enter_kept);
    api->rate_limit = rate_limit_create(engine_loop(engine), options->rate_limit);
    api->not_ready = "starting";
    return api;
}

void api_destroy(struct api *api)
{
    if (!api)
        return;
    struct services *services = services_of(api);
    loop_cancel_deferred(&services->draining);
    loop_cancel_deferred(&services->doubting);
    revocation_destroy(services->revocation);
    store_timeout_destroy(services->store_timeout);
    retired_destroy(services->retired);
    stored_activity_destroy(services->stored_activity);
    stored_uses_destroy(services->stored_uses);
    limit_expiry_destroy(api->limit_expiry);
    rate_limit_destroy(api->rate_limit);
    early_calls_destroy(api->early_calls);
    forwarding_destroy(api->forwarding);
    routes_destroy(api->routes);
    open_batches_destroy(api->open_batches);
    deployments_destroy(api->deployments);
    artifacts_destroy(api->artifacts);
    bulks_stop(api->bulks, NULL);
    bulks_destroy(api->bulks);
    logins_destroy(api->logins);
    streams_destroy(api->streams);
    bytes_unref(api->document);
    bytes_unref(api->timezones);
    long_polls_stop(api->long_polls, NULL);
    free(api->long_polls);
    free(api->events);
    run_notifications_destroy(api->run_notifications);
    trace_shares_destroy(services->trace_shares);
    traces_destroy(api->traces);
    envvars_destroy(api->envvars);
    free(api->sockets);
    quotas_finish(&api->quotas);
    free(services);
}

void api_add_environment(struct api *api, struct account *account)
{
    struct environment *env = engine_add_environment(
        api->engine, account->number, account->id, account->type == ENVIRONMENT_DEV);
    engine_count_with(api->engine, env, account_of_keys(account)->number);
    quotas_put_inside(&api->quotas, env, account, &api->options);
    engine_join_stored(api->engine, account->number, &account->project->stored);
    engine_join_finished(
        env, &account->project->finished,
        account->type == ENVIRONMENT_PREVIEW ? &account->project->branches_finished : NULL);
}

void api_retire_environment(struct api *api, const struct account *account)
{
    struct engine *engine = api_engine(api);
    struct environment *env = engine_environment(engine, account->number);
    if (!env || engine_is_retired(env))
        return;
    schedules_retire(api->schedules, env);
    deployments_retire(api->deployments, env);
    engine_retire_environment(engine, env);
    retired_add(services_of(api)->retired, account->number);
}

/* Answers one held call. Calls leave the list when they get their response, or earlier. */
static void answer_held(struct api *api)
{
    struct api_call *call = container_of(list_take(&api->held), struct api_call, held);
    call->on_drain(call);
}

void api_stop(struct api *api)
{
    struct services *services = services_of(api);
    early_calls_end(api->early_calls);
    forwarding_stop(api->forwarding);
    loop_cancel_deferred(&services->draining);
    loop_cancel_deferred(&services->doubting);
    trace_shares_stop(services->trace_shares);
    list_move_all(&api->held, &services->doubted);
    while (!list_empty(&api->held))
        answer_held(api);
    bulks_stop(api->bulks, NULL);
    long_polls_stop(api->long_polls, NULL);
    traces_write_all(api->traces);
    api_stores_last(api);
    limit_expiry_stop(api->limit_expiry);
}

/* Drains in time slices: thousands of calls may be held, or have a view kept for their next
 * poll (kept_view.h), and 64 MiB of traces may be unwritten. */
static void drain_some(struct deferred *draining)
{
    struct services *services = container_of(draining, struct services, draining);
    struct api *api = &services->api;
    struct timeslice timeslice = loop_timeslice(engine_loop(api->engine));
    bool all = bulks_stop(api->bulks, &timeslice);
    while (all && !list_empty(&api->held) && timeslice_left_every(&timeslice, HELD_AT_ONCE))
        answer_held(api);
    if (!all || !list_empty(&api->held) ||
        traces_write_some(api->traces, &services->traces_written, &timeslice) ||
        !long_polls_stop(api->long_polls, &timeslice))
        loop_defer(engine_loop(api->engine), draining);
}

/* Ends calls that were held when a doubt began, in time slices. Such a call is a waiting
 * read, and gets 503 (reply.c), or has nothing for its client. */
static void doubt_some(struct deferred *doubting)
{
    struct services *services = container_of(doubting, struct services, doubting);
    struct api *api = &services->api;
    struct timeslice timeslice = loop_timeslice(engine_loop(api->engine));
    if (!api_doubt(api))
        list_move_all(&api->held, &services->doubted);
    while (!list_empty(&services->doubted) &&
           timeslice_left_every(&timeslice, HELD_AT_ONCE)) {
        struct api_call *call =
            container_of(list_take(&services->doubted), struct api_call, held);
        if (call->bears_doubt)
            list_append(&api->held, &call->held);
        else
            call->on_drain(call);
    }
    if (!list_empty(&services->doubted))
        loop_defer(engine_loop(api->engine), doubting);
}

void api_begin_doubt(struct api *api)
{
    struct services *services = services_of(api);
    list_move_all(&services->doubted, &api->held);
    loop_defer(engine_loop(api->engine), &services->doubting);
}

void api_end_doubt(struct api *api)
{
    certainty_return(engine_certainty(api->engine));
    if (api->follows)
        early_calls_enter(api->early_calls);
    forwarding_look(api->forwarding);
}

void api_hand_over(struct api *api)
{
    api->hands_over = api->options.leader;
}

void api_end_hand_over(struct api *api)
{
    api->hands_over = false;
    forwarding_refuse(api->forwarding, "draining");
}

void api_has_handed_over(struct api *api)
{
    const struct api_options *options = &api->options;
    if (options->leader && options->leader(options->owner))
        forwarding_look(api->forwarding);
    else
        api_end_hand_over(api);
}

void api_move(struct api *api)
{
    sockets_move(api->sockets);
    run_notifications_move(api->run_notifications);
    api_drain(api);
}

bool api_has_drained(const struct api *api)
{
    const struct services *services = container_of(api, const struct services, api);
    return list_empty(&services->draining.link) && list_empty(&services->doubted) &&
           list_empty(&api->held);
}

bool api_stores_last(struct api *api)
{
    struct services *services = services_of(api);
    stored_activity_stop(services->stored_activity);
    stored_uses_stop(services->stored_uses);
    return !stored_activity_has_ended(services->stored_activity) ||
           !stored_uses_has_ended(services->stored_uses);
}

void api_serve_on(struct api *api)
{
    api->serves_on = true;
}

void api_drain_sockets(struct api *api, int64_t timeout_ms, bool has_next)
{
    sockets_drain(api->sockets, timeout_ms, has_next);
    run_notifications_drain(api->run_notifications,
                            has_next ? DRAIN_LINGER_MS : timeout_ms / 3);
}

void api_drain(struct api *api)
{
    drain_some(&services_of(api)->draining);
}

void api_drain_held(struct api *api)
{
    if (!list_empty(&api->held))
        drain_some(&services_of(api)->draining);
}

/* Deployments start first: from them, artifacts_start knows which files were already
 * taken. */
enum err api_start(struct api *api, struct failure *why)
{
    enum err err = deployments_start(api->deployments, why);
    return err ? err : artifacts_start(api->artifacts, why);
}

bool api_may_end(struct api *api)
{
    artifacts_stop(api->artifacts);
    return deployments_stop(api->deployments) &&
           stored_activity_has_ended(services_of(api)->stored_activity) &&
           stored_uses_has_ended(services_of(api)->stored_uses);
}

void api_reload(struct api *api, const struct api_options *options)
{
    bool rate_is_same = api->options.rate_limit == options->rate_limit;
    api->options = *options;
    for (struct account *account = NULL;
         (account = accounts_next(api->accounts, account));) {
        struct environment *env = engine_environment(api->engine, account->number);
        if (env)
            quotas_put_inside(&api->quotas, env, account, options);
    }
    engine_check_full_quotas(api->engine);
    if (rate_is_same)
        return;
    rate_limit_destroy(api->rate_limit);
    api->rate_limit = rate_limit_create(engine_loop(api->engine), options->rate_limit);
}

static void end_following(struct api *api)
{
    api->follows = false;
    certainty_follow(engine_certainty(api->engine), false);
}

void api_set_ready(struct api *api, const char *reason)
{
    api->not_ready = reason;
    api->serves_on = api->may_lead_soon = false;
    early_calls_enter(api->early_calls);
    forwarding_look(api->forwarding);
    if (reason)
        return; /* a gateway that followed does not lead while it drains */
    end_following(api);
    bulks_start(api->bulks);
    stored_activity_start(services_of(api)->stored_activity);
    stored_uses_start(services_of(api)->stored_uses);
    limit_expiry_look(api->limit_expiry);
}

void api_send_floor(struct api *api, const struct environment *env)
{
    sockets_send_floor(api->sockets, env);
    events_send_floor(api->events, env);
}

void api_leave_leader(struct api *api)
{
    forwarding_look(api->forwarding);
}

void api_refuse_early(struct api *api)
{
    early_calls_enter(api->early_calls);
    forwarding_look(api->forwarding);
}

void api_stand_by(struct api *api, const char *reason)
{
    api->not_ready = reason;
    api->may_lead_soon = engine_store(api->engine)->ops->lead; /* another may lead */
    end_following(api);
}

void api_follow(struct api *api)
{
    api->follows = api->may_lead_soon = true;
    certainty_follow(engine_certainty(api->engine), true);
    if (!api_doubt(api))
        api_end_doubt(api);
}

/* ---- documents at start ---- */

static enum err restore_queue(struct environment *env, const struct document *document,
                              struct failure *why)
{
    struct queue_settings settings;
    enum err err = queue_settings_read(bytes_slice(document->body), &settings, why);
    if (err)
        return err;
    settings.version = document->version;
    engine_configure_queue(env, bytes_slice(document->name), &settings);
    return OK;
}

enum err api_restore(struct api *api, const struct document *document, struct failure *why)
{
    struct environment *env = engine_environment(api_engine(api), document->env);
    if (!env || !document->body)
        return OK;
    switch (document->kind) {
    case DOC_WORKER: return registration_restore_document(env, document, why);
    case DOC_CURRENT: return promotion_restore(env, document, why);
    case DOC_DEPLOYMENT:
    case DOC_BUILD_VARIABLES:
        return deployments_restore(api_deployments(api), env, document, why);
    case DOC_QUEUE: return restore_queue(env, document, why);
    case DOC_VARIABLE: return variables_restore(api_accounts(api), document, why);
    case DOC_SCHEDULE: return schedules_restore(api_schedules(api), document, why);
    case DOC_BULK: return bulks_restore(api_bulks(api), env, document, why);
    case DOC_ACTIVITY: stored_activity_restore(env, document); return OK;
    case DOC_LIMIT: return limit_settings_restore(env, document, why);
    default: return OK;
    }
}
