/* api.c - match, authenticate, dispatch.
 *
 *   on_head:    target ─► route ─► credential ─► body limit      refusals are sent here
 *   on_body:    pieces for the routes that take them
 *   on_request: the handler; it replies now, later, or returns an error
 *
 * Credentials come before everything else under /api and /engine, so an unknown key learns
 * nothing about which paths exist. */
#include "api/api.h"

#include "api/absent.h"
#include "api/bulk.h"
#include "api/ended.h"
#include "api/envvar_write.h"
#include "api/events.h"
#include "api/leaving.h"
#include "api/notifier.h"
#include "api/open_batches.h"
#include "api/operation.h"
#include "api/polls.h"
#include "api/rate.h"
#include "api/request_log.h"
#include "api/rooms.h"
#include "api/routes.h"
#include "api/signed.h"
#include "api/sockets.h"
#include "api/streams.h"
#include "api/traces.h"
#include "api/unread.h"
#include "auth/branch.h"
#include "base/log.h"
#include "base/mem.h"

enum { HELD_AT_ONCE = 8 };

struct api {
    struct engine *engine;
    struct auth *auth;
    struct accounts *accounts;
    struct api_options options;
    struct sockets *sockets;
    struct polls *polls;
    struct events *events;
    struct notifier *notifier;
    struct traces *traces;
    struct envvars *envvars;
    struct streams *streams;
    struct open_batches *open_batches;
    struct bulks *bulks;
    struct ended *ended;
    struct leaving *leaving;
    struct bytes *document; /* /openapi.json */
    struct list held;       // api_call::held
    struct deferred draining;
    size_t traces_written; /* of the drain: place among them */
    const char *not_ready; /* NULL: ready */
    struct rate *rate;     /* NULL: no limit */
    struct rooms rooms;
    unsigned skipped; /* bits of api_skip */
};

/* The tables of routes, in the order of the look-up. What came by the admin listener is looked
 * up in the first one alone. */
/* clang-format off */
static const struct route *const tables[] = {
    admin_routes,
    tasks_routes,
    batches_routes,
    runs_routes,
    tokens_routes,
    packets_routes,
    workers_routes,
    deployed_routes,
    socket_routes,
    notifier_routes,
    otel_routes,
    traces_routes,
    polls_routes,
    events_routes,
    timezones_routes,
    schedules_routes,
    queues_routes,
    envvars_routes,
    projects_routes,
    bulk_routes,
    streams_routes,
    waitpoints_routes,
    page_routes,
};
/* clang-format on */

const struct route *const *api_routes(size_t *count)
{
    *count = sizeof(tables) / sizeof(tables[0]);
    return tables;
}

struct bytes *api_document(const struct api *api)
{
    return api->document;
}

static void drain_some(struct deferred *draining);

struct api *api_create(struct engine *engine, struct auth *auth, struct accounts *accounts,
                       const struct api_options *options)
{
    struct api *api = mem_new(struct api);
    api->engine = engine;
    api->auth = auth;
    api->accounts = accounts;
    api->options = *options;
    api->sockets = sockets_create(engine_loop(engine));
    api->polls = polls_create(engine_loop(engine));
    api->events = events_create(engine_loop(engine));
    api->notifier = notifier_create(api);
    api->traces = traces_create(engine);
    api->envvars = envvars_create(engine_loop(engine), accounts_vault(accounts));
    api->streams = streams_create(engine_loop(engine), (size_t)options->stream_memory);
    api->open_batches = open_batches_create(engine_loop(engine));
    api->bulks = bulks_create(engine);
    api->document = openapi_write(tables, sizeof(tables) / sizeof(tables[0]));
    list_init(&api->held);
    list_init(&api->draining.link);
    api->draining.fn = drain_some;
    api->ended = ended_create(api);
    api->leaving = leaving_create(api);
    api->rate = rate_create(engine_loop(engine), options->rate_limit);
    rooms_init(&api->rooms);
    api->not_ready = "starting";
    return api;
}

void api_destroy(struct api *api)
{
    if (!api)
        return;
    loop_cancel_deferred(&api->draining);
    ended_destroy(api->ended);
    leaving_destroy(api->leaving);
    rate_destroy(api->rate);
    open_batches_destroy(api->open_batches);
    bulks_stop(api->bulks, NULL);
    bulks_destroy(api->bulks);
    streams_destroy(api->streams);
    bytes_unref(api->document);
    polls_stop(api->polls, NULL);
    free(api->polls);
    free(api->events);
    notifier_destroy(api->notifier);
    traces_destroy(api->traces);
    envvars_destroy(api->envvars);
    free(api->sockets);
    free(api);
}

void api_add_environment(struct api *api, struct account *account)
{
    struct environment *env = engine_add_environment(
        api->engine, account->number, account->id, account->type == ENVIRONMENT_DEV);
    rooms_put_inside(env, account->project, &api->options);
    engine_join_stored(api->engine, account->number, &account->project->stored);
}

void api_retire_environment(struct api *api, const struct account *account)
{
    struct engine *engine = api_engine(api);
    struct environment *env = engine_environment(engine, account->number);
    if (!env || env->retired)
        return;
    engine_retire_environment(engine, env);
    leaving_add(api->leaving, account->number);
}

void api_hold(struct api_call *call, void (*on_drain)(struct api_call *call))
{
    call->on_drain = on_drain;
    list_append(&call->api->held, &call->held);
}

/* Each leaves the list when it is answered, or before. */
static void answer_held(struct api *api)
{
    struct api_call *call = container_of(list_take(&api->held), struct api_call, held);
    call->on_drain(call);
}

void api_stop(struct api *api)
{
    loop_cancel_deferred(&api->draining);
    while (!list_empty(&api->held))
        answer_held(api);
    bulks_stop(api->bulks, NULL);
    polls_stop(api->polls, NULL);
    traces_write_all(api->traces);
}

/* Thousands of calls may be held or have left an echo, and 64 MiB of traces not be written. */
static void drain_some(struct deferred *draining)
{
    struct api *api = container_of(draining, struct api, draining);
    struct stint stint = loop_stint(engine_loop(api->engine));
    bool all = bulks_stop(api->bulks, &stint);
    while (all && !list_empty(&api->held) && stint_goes_on_by(&stint, HELD_AT_ONCE))
        answer_held(api);
    if (!all || !list_empty(&api->held) ||
        traces_write_some(api->traces, &api->traces_written, &stint) ||
        !polls_stop(api->polls, &stint))
        loop_defer(engine_loop(api->engine), draining);
}

void api_drain(struct api *api)
{
    sockets_drain(api->sockets, api->options.drain_timeout_ms);
    notifier_drain(api->notifier, api->options.drain_timeout_ms);
    drain_some(&api->draining);
}

struct rooms *api_rooms(struct api *api)
{
    return &api->rooms;
}

struct polls *api_polls(const struct api *api)
{
    return api->polls;
}

struct events *api_events(const struct api *api)
{
    return api->events;
}

struct notifier *api_notifier(const struct api *api)
{
    return api->notifier;
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

struct sockets *api_sockets(const struct api *api)
{
    return api->sockets;
}

struct open_batches *api_open_batches(const struct api *api)
{
    return api->open_batches;
}

struct bulks *api_bulks(const struct api *api)
{
    return api->bulks;
}

void api_skip(struct api *api, unsigned bit, const char *what)
{
    if (!(api->skipped & 1u << bit))
        log_info("a worker sends what runcast does not do", "what", what, NULL);
    api->skipped |= 1u << bit;
}

void api_set_ready(struct api *api, const char *reason)
{
    api->not_ready = reason;
    if (!reason)
        bulks_start(api->bulks);
}

const char *api_not_ready(const struct api *api)
{
    return api->not_ready;
}

struct engine *api_engine(const struct api *api)
{
    return api->engine;
}

struct auth *api_auth(const struct api *api)
{
    return api->auth;
}

struct accounts *api_accounts(const struct api *api)
{
    return api->accounts;
}

const struct api_options *api_options(const struct api *api)
{
    return &api->options;
}

/* ---- routing ---- */

/* Split first, decode after: a segment may hold an encoded slash. */
static bool matches(const char *pattern, struct slice path, struct slice *params,
                    size_t *count)
{
    struct slice want = slice_of(pattern), wanted, segment;
    *count = 0;
    while (slice_split(&want, '/', &wanted)) {
        if (slice_is(wanted, "*") && path.len && *count < API_PARAMS_MAX) {
            params[(*count)++] = path;
            return true;
        }
        if (!slice_split(&path, '/', &segment))
            return false;
        if (slice_is(wanted, ":")) {
            if (!segment.len || *count == API_PARAMS_MAX)
                return false;
            params[(*count)++] = segment;
        } else if (!slice_equal(wanted, segment)) {
            return false;
        }
    }
    return !path.ptr;
}

/* A path that only other methods know: allow names them. */
static const struct route *find_route(const struct exchange *x, struct slice *params,
                                      size_t *count, struct buf *allow)
{
    static const char *const names[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };
    enum http_method method = x->method == HTTP_HEAD_ ? HTTP_GET_ : x->method;

    size_t known = x->admin ? 1 : sizeof(tables) / sizeof(tables[0]);
    for (size_t t = 0; t < known; t++) {
        for (const struct route *route = tables[t]; route->pattern; route++) {
            if (!matches(route->pattern, x->path, params, count))
                continue;
            if (route->method == method)
                return route;
            if (allow->len)
                buf_add_text(allow, ", ");
            buf_add_text(allow, names[route->method]);
        }
    }
    return NULL;
}

static bool is_guarded(struct slice path)
{
    return slice_starts(path, "/api") || slice_starts(path, "/engine") ||
           slice_starts(path, "/realtime");
}

/* ---- the call ---- */

void api_call_free(struct api_call *call)
{
    list_remove(&call->held);
    room_give(call->room, call->room_taken);
    if (call->env)
        environment_release(call->env);
    identity_unref(call->identity);
    buf_finish(&call->headers);
    buf_finish(&call->text);
    ignored_finish(&call->ignored);
    free(call->query);
    free(call);
}

void api_call_end(struct api_call *call)
{
    call->x->call = NULL;
    api_call_free(call);
}

static struct api_call *call_create(struct api *api, struct exchange *x)
{
    struct api_call *call = mem_new(struct api_call);
    call->api = api;
    call->x = x;
    list_init(&call->held);
    if (slice_is(http_header(x, "x-trigger-api-version"), "2025-07-16"))
        call->vocabulary = VOCABULARY_B;
    x->call = call;
    return call;
}

/* ---- credentials ---- */

static unsigned auth_of(const struct identity *identity)
{
    switch (identity->kind) {
    case CREDENTIAL_SECRET_KEY: return AUTH_KEY;
    case CREDENTIAL_PUBLIC_TOKEN: return AUTH_PUBLIC;
    case CREDENTIAL_PERSONAL_TOKEN: return AUTH_PERSONAL;
    case CREDENTIAL_WORKER_TOKEN: return AUTH_WORKER;
    default: return 0;
    }
}

/* management-api §3.5 */
enum err api_choose_branch(struct api *api, struct slice header, struct identity **identity,
                           struct failure *why)
{
    struct account *preview = (*identity)->account;
    if (!preview || preview->type != ENVIRONMENT_PREVIEW || preview->parent)
        return OK;
    if ((*identity)->kind != CREDENTIAL_SECRET_KEY)
        return explain(why, ERR_UNAUTHORIZED, "Invalid Public Access Token");
    struct slice name = branch_name_clean(slice_trim(header));
    if (!name.len)
        return explain(why, ERR_UNAUTHORIZED,
                       "x-trigger-branch header required for preview env");
    struct account *branch = accounts_branch(api->accounts, preview, name);
    if (!branch)
        return explain(why, ERR_UNAUTHORIZED, "No matching branch env");
    struct identity *chosen = identity_on_branch(*identity, branch);
    identity_unref(*identity);
    *identity = chosen;
    return OK;
}

static enum err identify(struct api_call *call)
{
    struct slice header = http_header(call->x, "authorization");
    int64_t now = loop_wall_ms(engine_loop(call->api->engine));
    enum err refused =
        auth_identify(call->api->auth, header, now, &call->identity, &call->why);
    if (refused)
        return refused;
    http_trust(call->x);
    return api_enter(call);
}

enum err api_enter(struct api_call *call)
{
    struct slice branch = http_header(call->x, "x-trigger-branch");
    enum err refused = api_choose_branch(call->api, branch, &call->identity, &call->why);
    if (refused)
        return refused;
    if (call->identity->account)
        api_enter_environment(call, call->identity->account);
    return OK;
}

void api_enter_environment(struct api_call *call, struct account *account)
{
    assert(!call->env);
    call->account = account;
    call->env = engine_environment(call->api->engine, account->number);
    environment_hold(call->env);
}

static enum err check_credential(struct api_call *call, const struct route *route)
{
    enum err refused = identify(call);
    if (refused || !route)
        return refused;
    if (!(route->auth & auth_of(call->identity)))
        return explain(&call->why, ERR_UNAUTHORIZED,
                       route->auth == AUTH_PERSONAL ? "Invalid or Missing PAT"
                                                    : "Invalid API key");
    return OK;
}

/* ---- from the server ---- */

static void reply_options(struct api_call *call)
{
    struct slice asked = http_header(call->x, "access-control-request-headers");
    api_add_header(call, "access-control-allow-methods",
                   SLICE("GET, HEAD, PUT, PATCH, POST, DELETE"));
    if (asked.len)
        api_add_header(call, "access-control-allow-headers", asked);
    api_add_header(call, "access-control-max-age", SLICE("300"));
    api_reply_empty(call, 204);
}

static void refuse_unknown(struct api_call *call, struct buf *allow)
{
    const char *absent = absent_at(call->x->method, call->x->path);
    if (absent) {
        explain(&call->why, ERR_NOT_FOUND, "Not found: runcast does not have %s", absent);
        api_reply_error(call, ERR_NOT_FOUND);
        return;
    }
    if (allow->len) {
        api_add_header(call, "allow", buf_slice(allow));
        api_reply_error(call, ERR_METHOD);
        return;
    }
    explain(&call->why, ERR_NOT_FOUND, "Not found: there is nothing at this path");
    api_reply_error(call, ERR_NOT_FOUND);
}

static void on_head(void *owner, struct exchange *x)
{
    struct api *api = owner;
    struct api_call *call = call_create(api, x);
    struct buf allow = { 0 };
    const struct route *route = NULL;
    if (!absent_hides_route(x->path))
        route = find_route(x, call->params, &call->param_count, &allow);
    bool open = route && (route->auth == AUTH_NONE || route->auth & AUTH_SIGNED);
    enum err refused = OK;

    call->route = route;
    if (x->admin && (refused = api_check_admin(call))) {
        api_reply_error(call, refused);
    } else if (x->method == HTTP_OPTIONS_ && !x->admin) {
        reply_options(call);
    } else if (api->not_ready && !(route && route->auth == AUTH_NONE)) {
        explain(&call->why, ERR_DRAINING, "The gateway is not ready: %s", api->not_ready);
        api_reply_error(call, ERR_DRAINING);
    } else if (!open && is_guarded(x->path) && (refused = check_credential(call, route))) {
        api_reply_error(call, refused);
    } else if (!rate_let_in(api->rate, call)) {
        ; /* answered */
    } else if (!route) {
        refuse_unknown(call, &allow);
    } else if ((refused = api_read_target(call)) || (refused = unread_check_query(call))) {
        api_reply_error(call, refused);
    } else if (route->auth & AUTH_SIGNED && (refused = signed_enter(call))) {
        api_reply_error(call, refused);
    } else if ((refused = rooms_enter(call))) {
        api_reply_error(call, refused);
    } else {
        x->body_limit = route->body_limit;
        x->stream_body = route->on_body != NULL;
        x->slow_body = route->auth & BODY_SLOW;
    }
    buf_finish(&allow);
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    struct api_call *call = x->call;
    (void)owner;
    if (!call)
        return; /* refused already; the rest of the body is drained */
    enum err refused = call->route->on_body(call, piece);
    if (refused)
        api_reply_error(call, refused);
}

static void on_request(void *owner, struct exchange *x)
{
    struct api_call *call = x->call;
    (void)owner;
    if (!call)
        return;
    enum err refused = call->route->handle(call);
    if (refused)
        api_reply_error(call, refused);
}

static void on_gone(void *owner, struct exchange *x)
{
    struct api_call *call = x->call;
    (void)owner;
    if (!call)
        return;
    if (call->on_gone)
        call->on_gone(call);
    else if (!call->busy)
        api_reply_empty(call, 499); /* its body never came whole */
}

static void on_drained(void *owner, struct exchange *x)
{
    struct api_call *call = x->call;
    (void)owner;
    if (call && call->on_drained)
        call->on_drained(call);
}

struct http_handler api_handler(void)
{
    return (struct http_handler){ .on_head = on_head,
                                  .on_body = on_body,
                                  .on_request = on_request,
                                  .on_gone = on_gone,
                                  .on_drained = on_drained,
                                  .on_refused = request_log_refusal };
}
