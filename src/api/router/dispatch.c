/* dispatch.c - takes each request to its route's handler, after checking the credential.
 *
 *   on_head:    target ─► route ─► credential ─► body limit   refusals are sent here
 *                           └─► this gateway neither leads nor serves the route: held
 *                               (early_calls.h), then the same
 *   on_body:    pieces for the routes that take them
 *   on_request: the handler; it replies now, later, or returns an error
 *
 * Under /api, /engine and /realtime, a request without a route has its credential checked
 * before it gets 404, so that an unknown key does not reveal which paths exist. */
#include "api/router/dispatch.h"

#include "api/ops/admin_access.h"
#include "api/request/early_calls.h"
#include "api/request/parts.h"
#include "api/request/quotas.h"
#include "api/request/rate_limit.h"
#include "api/request/request_log.h"
#include "api/request/routes.h"
#include "api/request/unread.h"
#include "api/router/forwarding.h"
#include "api/router/signed.h"
#include "base/log.h"
#include "net/http/relayed.h"

#define AREA(name) extern const struct area name##_area;
#include "api/router/areas.def"
#undef AREA

static const struct area *const areas[] = {
#define AREA(name) &name##_area,
#include "api/router/areas.def"
#undef AREA
};

enum { AREAS = sizeof(areas) / sizeof(areas[0]) };

const struct area *const *api_areas(size_t *count)
{
    *count = AREAS;
    return areas;
}

/* ---- routing ---- */

/* Finds the route of the call. If only other methods have the path, allow lists them. */
static void find_route_at_path(struct api_call *call, struct buf *allow)
{
    struct exchange *x = call->x;
    bool all = !x->admin || api_options(call->api)->dashboard_is_admins;
    struct route_match match = { .method = x->method == HTTP_HEAD_ ? HTTP_GET_ : x->method,
                                 .areas = all ? AREAS : 1,
                                 .allow = allow };
    struct routed *routed = routes_find(call->api->routes, x->path, &match);
    if (!routed)
        return;
    call->routed = routed;
    call->route = routed->route;
    call->is_for_own_pages = routed->route->is_for_own_pages;
    call->area = routed->area;
    call->param_count = match.param_count;
    memcpy(call->params, match.params, match.param_count * sizeof(*match.params));
    x->answers = &routed->answers;
}

/* Returns the path after the prefix of public-url; absent if it does not begin with
 * that. */
static struct slice path_after_prefix(const struct api_call *call)
{
    struct slice path = call->x->path, prefix = api_path_prefix(call->api);
    bool begins =
        prefix.len && path.len >= prefix.len && !memcmp(path.ptr, prefix.ptr, prefix.len);
    if (!begins || (path.len > prefix.len && path.ptr[prefix.len] != '/'))
        return (struct slice){ 0 };
    return path.len == prefix.len ? SLICE("/") : slice_from(path, prefix.len);
}

/* A proxy may remove the prefix of public-url from a path, or keep it. A path that matches
 * unchanged wins, because the prefix may be /api. */
static void find_route(struct api_call *call, struct buf *allow)
{
    find_route_at_path(call, allow);
    struct slice path =
        call->route || allow->len ? (struct slice){ 0 } : path_after_prefix(call);
    if (!path.ptr)
        return;
    call->x->path = path;
    find_route_at_path(call, allow);
}

static bool is_guarded(struct slice path)
{
    return slice_starts(path, "/api") || slice_starts(path, "/engine") ||
           slice_starts(path, "/realtime");
}

/* ---- credentials ---- */

static unsigned auth_of(const struct identity *identity)
{
    switch (identity->kind) {
    case CREDENTIAL_SECRET_KEY: return AUTH_KEY;
    case CREDENTIAL_PUBLIC_TOKEN: return AUTH_PUBLIC;
    case CREDENTIAL_PERSONAL_TOKEN: return AUTH_PERSONAL;
    case CREDENTIAL_WORKER_TOKEN: return AUTH_WORKER;
    case CREDENTIAL_BUILD_KEY: return AUTH_BUILD;
    default: return 0;
    }
}

static enum err identify(struct api_call *call)
{
    struct slice header = http_header(call->x, "authorization");
    int64_t now = loop_wall_ms(engine_loop(call->api->engine));
    enum err refused = auth_identify(call->api->auth, header, call->x->peer, now,
                                     &call->identity, &call->why);
    if (refused)
        return refused;
    http_trust(call->x);
    return api_enter(call);
}

/* Checks that a token that was signed for a user has the scope that the route needs. */
static enum err check_user(struct api_call *call)
{
    const char *action = call->route->method == HTTP_GET_ ? "read" : "write";
    struct slice id = call->param_count ? call->params[0] : (struct slice){ 0 };
    return api_check_scope(call, action, call->area->tag, id);
}

static const char *kind_name(enum credential kind)
{
    switch (kind) {
    case CREDENTIAL_SECRET_KEY: return "the secret key of an environment";
    case CREDENTIAL_PUBLIC_TOKEN: return "a public token";
    case CREDENTIAL_PERSONAL_TOKEN: return "a personal access token";
    case CREDENTIAL_WORKER_TOKEN: return "a worker token";
    case CREDENTIAL_BUILD_KEY: return "the key of a build";
    default: return "this credential";
    }
}

/* Returns the name of the credential that a route is meant for, though it may accept
 * others. */
static const char *needed_by(unsigned auth)
{
    return kind_name(auth & AUTH_KEY        ? CREDENTIAL_SECRET_KEY
                     : auth & AUTH_PERSONAL ? CREDENTIAL_PERSONAL_TOKEN
                     : auth & AUTH_WORKER   ? CREDENTIAL_WORKER_TOKEN
                     : auth & AUTH_BUILD    ? CREDENTIAL_BUILD_KEY
                                            : CREDENTIAL_PUBLIC_TOKEN);
}

static enum err check_credential(struct api_call *call, const struct route *route)
{
    enum err refused = identify(call);
    if (refused || !route)
        return refused;
    if (route->auth & auth_of(call->identity))
        return OK;
    if (route->auth & AUTH_FOR_USER && identity_is_for_user(call->identity))
        return check_user(call);
    log_decision("credential refused", call->account ? call->account->id : NULL, NULL,
                 "its kind may not call this route", "client", call->x->peer, "route",
                 route->path, NULL);
    return explain(&call->why, ERR_UNAUTHORIZED, "%s: this call needs %s, not %s",
                   route->auth == AUTH_PERSONAL ? "Invalid or Missing PAT"
                                                : "Invalid API key",
                   needed_by(route->auth), kind_name(call->identity->kind));
}

/* ---- features that runcast lacks ---- */

/* Paths of Trigger.dev's published API, SDKs and CLI that have no route here.
 * src/api/router/README.md lists them; tests/contract/absent.test.mjs calls each. A path
 * matches if it begins with the segments; ":" matches any segment. */
static const struct absent {
    const char *path;
    const char *what;
} absents[] = {
    { "/api/v1/sessions", "sessions and agents that chat" },
    { "/realtime/v1/sessions", "sessions and agents that chat" },
    { "/api/v1/runs/:/session-streams", "sessions and agents that chat" },
    { "/api/v1/prompts", "prompts" },
    { "/api/v1/deployments/:/build-env-vars", "builds by others" },
    { "/api/v1/deployments/:/start-indexing", "builds by others" },
    { "/api/v1/projects/:/:/workers", "a list of the tasks of a version" },
    { "/api/v1/query", "queries and dashboards" },
    { "/api/v1/reports", "reports" },
    { "/api/v1/errors", "groups of errors" },
    { "/api/v1/webhooks", "endpoints for webhooks" },
    { "/api/v1/workers", "groups of workers" },
    { "/api/v1/projects/:/monitoring-alerts", "alerts" },
    { "/api/v1/projects/:/monitoring-alert-capabilities", "alerts" },
    { "/api/v1/projects/:/init", "an initialization of projects" },
    { "/api/v1/auth/user-actor-token", "tokens that are made of personal tokens" },
    { "/api/v1/profile", "profiles of users" },
    { "/api/v1/orgs/:/activate-free-plan", "plans" },
    { "/api/v1/tasks/:/batch", "the batch call of SDKs before 3.3" },
};

static bool is_below(struct slice path, const struct absent *absent)
{
    struct slice rest = slice_of(absent->path), wanted, segment;
    while (slice_split(&rest, '/', &wanted))
        if (!slice_split(&path, '/', &segment) ||
            !(slice_is(wanted, ":") ? segment.len : slice_equal(wanted, segment)))
            return false;
    return true;
}

/* Returns the feature that Trigger.dev has at the path and runcast lacks; NULL if none. */
static const char *absent_at(struct slice path)
{
    for (size_t i = 0; i < sizeof(absents) / sizeof(absents[0]); i++)
        if (is_below(path, &absents[i]))
            return absents[i].what;
    return NULL;
}

/* ---- called by the server ---- */

/* Returns true if only pages of this gateway may call the path, which needs no preflight. */
static bool is_for_own_pages(const struct api_call *call)
{
    struct buf allow = { 0 };
    struct route_match match = { .method = HTTP_POST_, .areas = AREAS, .allow = &allow };
    const struct routed *routed = routes_find(call->api->routes, call->x->path, &match);
    buf_finish(&allow);
    return routed && routed->route->is_for_own_pages;
}

static void reply_options(struct api_call *call)
{
    struct slice asked = http_header(call->x, "access-control-request-headers");
    if (is_for_own_pages(call)) {
        call->is_for_own_pages = true;
        api_reply_error(call, ERR_METHOD);
        return;
    }
    api_add_header(call, "access-control-allow-methods",
                   SLICE("GET, HEAD, PUT, PATCH, POST, DELETE"));
    if (asked.len)
        api_add_header(call, "access-control-allow-headers", asked);
    api_add_header(call, "access-control-max-age", SLICE("300"));
    api_reply_empty(call, 204);
}

static void refuse_unknown(struct api_call *call, struct buf *allow)
{
    const char *absent = absent_at(call->x->path);
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
    explain(&call->why, ERR_NOT_FOUND, "Not found: no route at this path");
    api_reply_error(call, ERR_NOT_FOUND);
}

static enum err check_unread(struct api_call *call)
{
    if (call->route->auth & ENDS_ATTEMPT)
        return OK;
    enum err refused = unread_check_query(call);
    return refused ? refused : unread_check_headers(call);
}

static void set_limits(struct api_call *call)
{
    const struct route *route = call->route;
    call->x->body_limit = route->body_limit;
    call->x->stream_body = route->on_body != NULL;
    call->x->slow_body = route->auth & BODY_SLOW;
}

/* Checks credential, rate, target and memory quotas. Returns false after replying, or if the
 * call waits to enter. */
static bool admit(struct api_call *call, struct buf *allow)
{
    struct api *api = call->api;
    struct exchange *x = call->x;
    const struct route *route = call->route;
    bool open = route && (route->auth == AUTH_NONE || route->auth & AUTH_SIGNED);
    enum err refused = OK;

    if (!(route && route->auth == AUTH_NONE) && (refused = api_check_ready(call))) {
        if (x->relayed)
            api_add_header(call, RELAYED_UNTAKEN, SLICE("1"));
        api_reply_error(call, refused);
    } else if (!open && is_guarded(x->path) && (refused = check_credential(call, route))) {
        if (!api_confirm_credential(call))
            api_reply_error(call, refused);
    } else if (!rate_limit_allows(api->rate_limit, call)) {
        ; /* answered */
    } else if (!route) {
        refuse_unknown(call, allow);
    } else if ((refused = api_read_target(call)) || (refused = check_unread(call))) {
        api_reply_error(call, refused);
    } else if (route->auth & AUTH_SIGNED && (refused = signed_enter(call))) {
        api_reply_error(call, refused);
    } else if ((refused = quotas_enter(call))) {
        api_reply_error(call, refused);
    } else {
        set_limits(call);
        return call->is_admitted = true;
    }
    return false;
}

/* Returns true if this gateway does not lead yet but may soon, and the route needs that. A
 * gateway that follows serves some routes itself, except in doubt. */
static bool is_early(const struct api_call *call)
{
    const struct route *route = call->route;
    return call->api->may_lead_soon && route &&
           (route->auth != AUTH_NONE || route->needs_lead) && api_why_refused(call);
}

/* Returns true if this gateway serves the route although it does not lead. One that drains only
 * serves what it has begun: it passes lists on, and refuses calls that would last (route.h). */
static bool serves(const struct api *api, const struct route *route)
{
    bool drains =
        api->hands_over || (api->follows && !api->may_lead_soon && !api->serves_on);
    return route->follows && (!drains || route->is_alone);
}

/* Returns true if the call is for the gateway that leads, and this one does not. A follower
 * that drains still passes such calls on, as does a leader that hands over: a proxy may notice
 * the drain a moment later. */
static bool is_leaders(const struct api_call *call)
{
    const struct api *api = call->api;
    const struct route *route = call->route;
    bool leads = !api->may_lead_soon && !api->follows && !api->hands_over;
    if (leads || call->x->admin || call->x->relayed)
        return false;
    if (!route)
        return is_guarded(call->x->path);
    return !serves(api, route) && (route->auth != AUTH_NONE || route->needs_lead);
}

/* Returns false after refusing a header that only another gateway may send. */
static bool check_origin(struct api_call *call)
{
    if (call->x->relayed || !http_header(call->x, RELAYED_HEADER).ptr)
        return true;
    explain(&call->why, ERR_INVALID, "The header " RELAYED_HEADER " is not for clients");
    api_reply_error(call, ERR_INVALID);
    return false;
}

static void on_head(void *owner, struct exchange *x)
{
    struct api *api = owner;
    struct api_call *call = api_call_create(api, x);
    struct buf allow = { 0 };
    enum err refused = OK;
    find_route(call, &allow);
    if (!check_origin(call))
        ; /* answered */
    else if (x->admin && (refused = admin_check_access(call)))
        api_reply_error(call, refused);
    else if (x->method == HTTP_OPTIONS_ && !x->admin)
        reply_options(call);
    else if (is_leaders(call) && forwarding_take(api->forwarding, call))
        ; /* it answers */
    else if (is_early(call) && early_calls_hold(api->early_calls, call))
        set_limits(call);
    else
        admit(call, &allow);
    buf_finish(&allow);
}

/* Ends a call before it is complete; its handler releases its part of the body. reason: OK
 * if the client has disconnected. */
static void end_early(struct api_call *call, enum err reason)
{
    call->ended_by = reason;
    if (call->on_gone)
        call->on_gone(call);
    else if (!call->busy)
        api_reply_gone(call);
}

/* Returns false, after replying, if the credential has ended since the head arrived: a body
 * may arrive long after its head. */
static bool is_still_authorized(struct api_call *call)
{
    int64_t now = loop_wall_ms(engine_loop(call->api->engine));
    if (!call->identity || !identity_has_ended(call->identity, now))
        return true;
    identity_log_end(call->identity, "request", now);
    end_early(call, explain(&call->why, ERR_UNAUTHORIZED, "%s", identity_ended_reason));
    return false;
}

/* ---- byte order mark ---- */

static const struct slice bom = { "\xEF\xBB\xBF", 3 };

static bool takes_json(const struct route *route)
{
    return !route->takes || strstr(route->takes, "json");
}

/* Passes on bytes that looked like the beginning of a byte order mark but are not. */
static enum err take_no_bom(struct api_call *call)
{
    struct slice begun = { bom.ptr, call->bom < bom.len ? call->bom : 0 };
    call->bom = (uint8_t)bom.len;
    return begun.len ? call->route->on_body(call, begun) : OK;
}

/* Passes on a piece of the body, without the byte order mark that may precede a JSON body.
 * The mark may arrive in pieces. */
static enum err take_body(struct api_call *call, struct slice piece)
{
    while (call->bom < bom.len && piece.len && piece.ptr[0] == bom.ptr[call->bom]) {
        call->bom++;
        piece = slice_from(piece, 1);
    }
    if (!piece.len)
        return OK;
    enum err refused = take_no_bom(call);
    return refused ? refused : call->route->on_body(call, piece);
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    struct api_call *call = x->call;
    (void)owner;
    if (!call || !is_still_authorized(call))
        return; /* refused; the rest of the body is drained */
    if (call->forwarded) {
        forwarding_take_body(call, piece);
        return;
    }
    enum err refused = takes_json(call->route) ? take_body(call, piece)
                                               : call->route->on_body(call, piece);
    if (refused)
        api_reply_error(call, refused);
}

/* Refuses if this gateway no longer leads: a body may outlast the lead too, and data kept
 * only in memory would be lost. */
static enum err check_lead(struct api_call *call)
{
    if (call->route->auth == AUTH_NONE)
        return OK;
    return call->route->follows && call->api->follows
               ? api_check_ready(call)
               : api_check_lead(call->api, &call->why);
}

static enum err take_request(struct api_call *call)
{
    struct exchange *x = call->x;
    if (takes_json(call->route) && x->body.len >= bom.len &&
        !memcmp(x->body.ptr, bom.ptr, bom.len))
        x->body = slice_from(x->body, bom.len);
    unread_report_whole_body(call);
    enum err refused = take_no_bom(call);
    return refused ? refused : call->route->handle(call);
}

static void handle(struct api_call *call)
{
    enum err refused = check_lead(call);
    if (refused) {
        end_early(call, refused);
        return;
    }
    refused = take_request(call);
    if (refused)
        api_reply_error(call, refused);
}

static void on_request(void *owner, struct exchange *x)
{
    struct api_call *call = x->call;
    (void)owner;
    if (call && call->early)
        early_call_complete(call->early);
    else if (call && call->forwarded)
        forwarding_take_end(call);
    else if (call && is_still_authorized(call))
        handle(call);
}

void api_enter_early(struct api_call *call, bool complete)
{
    struct exchange *x = call->x;
    struct buf none = { 0 }; /* stays empty: the route was found */
    if (call->is_admitted ? !is_still_authorized(call) : !admit(call, &none))
        return;
    if (complete)
        handle(call);
    else
        http_body_resume(x);
}

/* Passes the kept body on as if it arrived now. Returns false if the call was answered. */
static bool pass_kept(struct api_call *call)
{
    struct exchange *x = call->x;
    struct slice kept = buf_slice(&call->kept);
    if (call->route->on_body && kept.len)
        on_body(call->api, x, kept);
    else
        x->body = kept;
    return x->call;
}

void api_enter_kept(struct api_call *call, bool complete)
{
    struct exchange *x = call->x;
    struct buf none = { 0 };
    bool is_admitted = admit(call, &none);
    buf_finish(&none);
    if (!is_admitted)
        return;
    if (!complete)
        http_body_resume(x);
    else if (pass_kept(call))
        handle(call);
}

static void on_gone(void *owner, struct exchange *x)
{
    struct api_call *call = x->call;
    (void)owner;
    if (call)
        end_early(call, OK);
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
