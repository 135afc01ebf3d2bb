/* limits.c - the routes of concurrency limits: list, retrieve, override, reset, pause, rate.
 *
 *   change ─► settings as they would be ─► document (synced) ─► the limit has them ─► reply
 *                  ▲                           │
 *                  └─ another change was first ┘
 *
 * A limit exists while a version declares it, it has settings, or a run needs it. A change
 * without a concurrencyKey is one of the limit itself; with one, of that key alone. */
#include "api/queues/limit_expiry.h"
#include "api/queues/limit_settings.h"
#include "api/queues/rate_settings.h"
#include "api/queues/usage.h"
#include "api/request/paging.h"
#include "api/request/route.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"

enum {
    NO_BODY = 4096,
    SMALL_BODY = 64 * 1024,
    BOUND_MAX = 100000,
    KEY_MAX = 128,          /* UTF-16 units of a key that is overridden */
    CHANGE_TRIES_MAX = 128, /* of changes at once, one wins each round */
    DAY_S = 24 * 3600,
    TTL_S = 7 * DAY_S,
    TTL_MAX_S = 30 * DAY_S,
};

static const char id_prefix[] = "climit_";

/* ---- a limit as clients see it ---- */

static void add_id(struct buf *out, struct slice name)
{
    buf_print(out, "{\"id\":\"%s", id_prefix);
    char *at = buf_reserve(out, name.len * 4 / 3 + 4);
    out->len += text_to_base64url(name, at);
    buf_add_text(out, "\",\"name\":");
    buf_add_json(out, name);
}

static void add_limit(struct buf *out, const struct environment *env, struct slice name)
{
    const struct queues *queues = &env->queues;
    struct queue_figures figures = limits_figures(queues, name);
    const struct queue_settings *settings = &figures.settings;
    add_id(out, name);
    buf_add_text(out, ",\"perKey\":");
    usage_add_current(out, queues, figures.limit);
    usage_add_number(out, "base", true, figures.base);
    usage_add_number(out, "override", settings->overridden, settings->override);
    usage_add_moment(out, "overriddenAt", settings->overridden, settings->overridden_at);
    buf_add_text(out, "},\"total\":");
    usage_add_current(out, queues, figures.total);
    usage_add_number(out, "base", true, figures.total_base);
    usage_add_number(out, "override", settings->total_overridden, settings->total_override);
    usage_add_moment(out, "overriddenAt", settings->total_overridden,
                     settings->total_overridden_at);
    buf_print(out, "},\"running\":%u,\"reserved\":%u,\"queued\":%u,\"paused\":%s",
              figures.running, figures.reserved, figures.waiting,
              settings->paused ? "true" : "false");
    rate_settings_show(out, env, true, name);
    buf_add_char(out, '}');
}

/* key: absent for the limit itself. */
static void reply_limit(struct api_call *call, struct slice name, struct slice key)
{
    struct buf out = { 0 };
    if (key.ptr)
        usage_add_key(&out, call->env, true, name, key);
    else
        add_limit(&out, call->env, name);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static enum err check_known(struct api_call *call, struct slice name)
{
    return limits_figures(&call->env->queues, name).known
               ? OK
               : explain(&call->why, ERR_NOT_FOUND,
                         "No concurrency limit has this name in this environment");
}

/* ---- list, retrieve ---- */

static void add_limit_at(struct buf *out, const struct environment *env, uint64_t place)
{
    add_limit(out, env, limits_name_at(&env->queues, place));
}

static enum err list_limits(struct api_call *call)
{
    return paging_reply(call, limits_count(&call->env->queues), add_limit_at);
}

static enum err check_key(struct api_call *call, struct slice key)
{
    return key.len && text_utf16_length(key) <= KEY_MAX
               ? OK
               : explain(&call->why, ERR_INVALID,
                         "concurrencyKey: must have 1 to %d characters", KEY_MAX);
}

static enum err retrieve(struct api_call *call)
{
    struct slice key = api_query(call, "concurrencyKey");
    enum err refused = check_known(call, call->params[0]);
    if (!refused && key.ptr)
        refused = check_key(call, key);
    if (!refused)
        reply_limit(call, call->params[0], key);
    return refused;
}

static enum err retrieve_usage(struct api_call *call)
{
    enum err refused = check_known(call, call->params[0]);
    if (!refused)
        usage_reply(call, true, call->params[0]);
    return refused;
}

/* ---- changes ---- */

enum limit_action { LIMIT_OVERRIDE, LIMIT_RESET, LIMIT_PAUSE, LIMIT_RATE };

struct limit_change {
    struct api_call *call;
    enum limit_action action;
    struct bytes *name, *key; /* key: NULL if the limit itself changes */
    bool pause, sets_per_key, sets_total,
        is_kept; /* is_kept: there is something to store */
    uint32_t per_key, total;
    int64_t ttl_s;
    struct rate_change rate;
    struct queue_settings settings; /* as they will be */
    struct limit_override override; /* of the key */
    struct document_write write;
    unsigned tries;
};

static void finish_change(struct limit_change *change, enum err status)
{
    if (status)
        api_reply_error(change->call, status);
    else
        reply_limit(change->call, bytes_slice(change->name), bytes_slice(change->key));
    bytes_unref(change->name);
    bytes_unref(change->key);
    free(change);
}

/* Returns true if there is room for the override of the key; that it has may change. */
static bool has_room_for_key(const struct limit_change *change)
{
    const struct queues *queues = &change->call->env->queues;
    struct slice name = bytes_slice(change->name);
    struct limit_override now;
    size_t at = 0, count = 0;
    limits_key_figures(queues, name, bytes_slice(change->key), &now);
    if (now.per_key != UINT32_MAX)
        return true;
    while (count < LIMIT_KEYS_MAX && limits_next_override(queues, name, &at, &now))
        count++;
    return count < LIMIT_KEYS_MAX && queues->limits.overrides < LIMIT_OVERRIDES_MAX;
}

static enum err check_configured(const struct limit_change *change,
                                 const struct queue_settings *settings)
{
    const struct queues *queues = &change->call->env->queues;
    if (!settings->version && !quota_has(&queues->limits.configured, 1))
        return explain(&change->call->why, ERR_RULE,
                       "At most %d concurrency limits of an environment, and %d queues and "
                       "limits of its project, can be paused, overridden or have a rate at "
                       "once",
                       QUEUES_CONFIGURED_MAX, PROJECT_QUEUES_CONFIGURED_MAX);
    return !change->key || has_room_for_key(change)
               ? OK
               : explain(
                     &change->call->why, ERR_RULE,
                     "At most %d keys of a concurrency limit, and %d of an environment, "
                     "can be overridden at once",
                     LIMIT_KEYS_MAX, LIMIT_OVERRIDES_MAX);
}

static void override_own(struct limit_change *change, int64_t now_ms)
{
    struct queue_settings *settings = &change->settings;
    if (change->sets_per_key) {
        settings->overridden = true;
        settings->override = change->per_key;
        settings->overridden_at = now_ms;
    }
    if (change->sets_total) {
        settings->total_overridden = true;
        settings->total_override = change->total;
        settings->total_overridden_at = now_ms;
    }
}

/* Makes the settings as they will be from those that the limit has. */
static enum err alter(struct limit_change *change)
{
    struct queue_settings *settings = &change->settings;
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(change->call->api)));
    bool sets = change->action == LIMIT_OVERRIDE;
    if (change->key)
        change->override = (struct limit_override){ bytes_slice(change->key),
                                                    sets ? change->per_key : UINT32_MAX,
                                                    now_ms + change->ttl_s * 1000 };
    else if (sets)
        override_own(change, now_ms);
    else if (change->action == LIMIT_RESET)
        settings->overridden = settings->total_overridden = false;
    else if (change->action == LIMIT_RATE)
        rate_change_apply(&change->rate, settings);
    else
        settings->paused = change->pause;
    bool is_rated = change->action == LIMIT_RATE && rate_settings_has(settings);
    return sets || change->pause || is_rated ? check_configured(change, settings) : OK;
}

static void on_written(struct document_write *write, enum err status);

/* Alters the current settings and writes them. Writes nothing if there was nothing, and is
 * nothing, to store. */
static void write_change(struct limit_change *change)
{
    struct api_call *call = change->call;
    struct queues *queues = &call->env->queues;
    struct slice name = bytes_slice(change->name);
    change->settings = limits_figures(queues, name).settings;
    enum err refused = check_known(call, name);
    if (!refused)
        refused = alter(change);
    struct bytes *body =
        limit_settings_write(queues, name, &change->settings, &change->override);
    change->is_kept = body;
    if (refused || (!body && !change->settings.version))
        finish_change(change, refused);
    else
        document_write_begin(api_engine(call->api), call->env->number, DOC_LIMIT,
                             change->name, body, change->settings.version, &change->write,
                             on_written);
    bytes_unref(body);
}

static void on_written(struct document_write *write, enum err status)
{
    struct limit_change *change = container_of(write, struct limit_change, write);
    struct environment *env = change->call->env;
    struct slice name = bytes_slice(change->name);

    if (status == ERR_CONFLICT && ++change->tries < CHANGE_TRIES_MAX) {
        write_change(change);
        return;
    }
    if (!status) {
        if (change->key)
            limits_override_key(&env->queues, name, &change->override);
        change->settings.version = change->is_kept ? change->settings.version + 1 : 0;
        limits_configure(&env->queues, name, &change->settings);
        engine_refill(api_engine(change->call->api), env);
        engine_match(api_engine(change->call->api), env);
        limit_expiry_look(api_limit_expiry(change->call->api));
    }
    finish_change(change, status);
}

/* Begins a change, which replies later. Takes ownership of its key. */
static enum err begin_change(struct api_call *call, const struct limit_change *requested)
{
    struct limit_change *change = mem_new(struct limit_change);
    *change = *requested;
    change->call = call;
    change->name = bytes_create(call->params[0]);
    call->busy = true;
    write_change(change);
    return OK;
}

/* ---- bodies ---- */

static enum err read_bound(struct api_call *call, struct slice body, const char *member,
                           bool *is_set, uint32_t *bound)
{
    struct slice text = scan_member(body, member);
    uint64_t number = 0;
    if (!text.ptr)
        return OK;
    if (text_to_u64(text, &number) || number > BOUND_MAX)
        return explain(&call->why, ERR_INVALID, "%s: must be a whole number from 0 to %d",
                       member, BOUND_MAX);
    *is_set = true;
    *bound = (uint32_t)number;
    return OK;
}

/* Reads a text, or a number as the text that JavaScript makes of it. */
static enum err read_key(struct api_call *call, struct slice body, struct bytes **key)
{
    struct slice value = scan_member(body, "concurrencyKey");
    struct buf text = { 0 };
    double number;
    if (!value.ptr)
        return OK;
    if (scan_type(value) == SCAN_NUMBER && scan_number(value, &number))
        buf_add_json_double(&text, number == 0 ? 0 : number);
    else
        scan_string(value, &text);
    enum err refused = check_key(call, buf_slice(&text));
    if (!refused)
        *key = buf_to_bytes(&text);
    buf_finish(&text);
    return refused;
}

static enum err read_ttl(struct api_call *call, struct slice body, int64_t *seconds)
{
    struct slice value = scan_member(body, "ttl");
    struct buf text = { 0 };
    int64_t ms = 0;
    *seconds = TTL_S;
    if (!value.ptr)
        return OK;
    bool is_right =
        scan_type(value) == SCAN_STRING
            ? scan_string(value, &text) && !text_to_duration_ms(buf_slice(&text), &ms)
            : !text_to_i64(value, seconds);
    if (text.len)
        *seconds = ms / 1000;
    buf_finish(&text);
    return is_right && *seconds >= 1 && *seconds <= TTL_MAX_S
               ? OK
               : explain(
                     &call->why, ERR_INVALID,
                     "ttl: must be a duration such as 7d, or a number of seconds, of at "
                     "most 30 days");
}

static enum err check_override(struct api_call *call, const struct limit_change *change,
                               bool has_ttl)
{
    const char *wrong = NULL;
    if (change->key && !change->sets_per_key)
        wrong = "perKey: is missing; an override of one concurrencyKey needs it";
    else if (change->key && change->sets_total)
        wrong =
            "total: is for all keys together; leave it out, or leave concurrencyKey out";
    else if (!change->key && has_ttl)
        wrong =
            "ttl: is only for an override of one concurrencyKey; name the key, or leave "
            "ttl out";
    else if (!change->sets_per_key && !change->sets_total)
        wrong = "perKey, total: give at least one of them";
    return wrong ? explain(&call->why, ERR_INVALID, "%s", wrong) : OK;
}

static enum err override(struct api_call *call)
{
    struct limit_change change = { .action = LIMIT_OVERRIDE };
    struct slice body;
    enum err refused = api_read_object(call, &body);
    if (!refused)
        refused = read_bound(call, body, "perKey", &change.sets_per_key, &change.per_key);
    if (!refused)
        refused = read_bound(call, body, "total", &change.sets_total, &change.total);
    if (!refused)
        refused = read_ttl(call, body, &change.ttl_s);
    if (!refused)
        refused = read_key(call, body, &change.key);
    if (!refused)
        refused = check_override(call, &change, scan_member(body, "ttl").ptr);
    if (!refused)
        return begin_change(call, &change);
    bytes_unref(change.key);
    return refused;
}

static enum err reset(struct api_call *call)
{
    struct limit_change change = { .action = LIMIT_RESET };
    struct slice body;
    enum err refused = api_read_object(call, &body);
    if (!refused)
        refused = read_key(call, body, &change.key);
    return refused ? refused : begin_change(call, &change);
}

static enum err pause_or_resume(struct api_call *call)
{
    struct limit_change change = { .action = LIMIT_PAUSE };
    struct buf action = { 0 };
    struct slice body;
    if (api_read_object(call, &body))
        return ERR_INVALID;
    scan_string(scan_member(body, "action"), &action);
    change.pause = slice_is(buf_slice(&action), "pause");
    bool is_known = change.pause || slice_is(buf_slice(&action), "resume");
    buf_finish(&action);
    if (!is_known)
        return explain(&call->why, ERR_INVALID, "action: must be pause or resume");
    return begin_change(call, &change);
}

static enum err set_rate(struct api_call *call)
{
    struct limit_change change = { .action = LIMIT_RATE };
    struct slice body;
    enum err refused = api_read_object(call, &body);
    if (!refused)
        refused = rate_change_read(call, body, &change.rate);
    return refused ? refused : begin_change(call, &change);
}

#define LIMIT "/api/v1/concurrency-limits/{name}"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/concurrency-limits",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = list_limits,
      .id = "list_concurrency_limits_v1", .summary = "List concurrency limits",
      .query = "page?: integer(1..4294967295), perPage?: integer(1..4294967295)",
      .reply = "ListConcurrencyLimitsResult" },
    { .method = HTTP_GET_, .path = LIMIT,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = retrieve,
      .id = "retrieve_concurrency_limit_v1",
      .summary = "Retrieve a concurrency limit, or what it allows for one key",
      .query = "concurrencyKey?: string",
      .reply = "ConcurrencyLimit|ConcurrencyLimitKey" },
    { .method = HTTP_GET_, .path = LIMIT "/usage",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = retrieve_usage,
      .id = "retrieve_concurrency_limit_usage_v1",
      .summary = "Retrieve the runs and keys that use a concurrency limit",
      .reply = "ConcurrencyLimitUsage" },
    { .method = HTTP_POST_, .path = LIMIT "/override",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = override,
      .id = "override_concurrency_limit_v1",
      .summary = "Override a concurrency limit, or what it allows for one key",
      .body = "{perKey?: integer(0..100000), total?: integer(0..100000),"
              " concurrencyKey?: string|number, ttl?: string|integer, ...}",
      .reply = "ConcurrencyLimit|ConcurrencyLimitKey",
      .also = "422" },
    { .method = HTTP_POST_, .path = LIMIT "/reset",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = reset,
      .id = "reset_concurrency_limit_v1", .summary = "Reset an override",
      .body = "{concurrencyKey?: string|number, ...}",
      .reply = "ConcurrencyLimit|ConcurrencyLimitKey" },
    { .method = HTTP_POST_, .path = LIMIT "/pause",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = pause_or_resume,
      .id = "pause_concurrency_limit_v1", .summary = "Pause or resume a concurrency limit",
      .body = "{action: 'pause'|'resume', ...}",
      .reply = "ConcurrencyLimit",
      .also = "422" },
    { .method = HTTP_POST_, .path = LIMIT "/rate",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = set_rate,
      .id = "rate_concurrency_limit_v1",
      .summary = "Set how many runs with a concurrency limit may start per period"
                 " (runcast's own)",
      .body = "{perKey?: Rate|null, total?: Rate|null, ...}",
      .reply = "ConcurrencyLimit",
      .also = "422" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "ConcurrencyLimit",
      "{id: string, name: string, perKey: ConcurrencyBound, total: ConcurrencyBound,"
      " running: integer, reserved: integer, queued: integer, paused: boolean,"
      " rate?: Rates}" },
    { "ConcurrencyBound",
      "{current: integer|null, base: integer|null, override: integer|null,"
      " overriddenAt: datetime|null}" },
    { "ConcurrencyLimitKey",
      "{name: string, concurrencyKey: string, perKey: ConcurrencyKeyBound,"
      " running: integer, reserved: integer, queued: integer, paused: boolean,"
      " rate?: RateNow}" },
    { "ConcurrencyLimitUsage",
      "{running: ConcurrencyLimitRun[], queued: ConcurrencyLimitRun[],"
      " keys: ConcurrencyLimitKey[]}" },
    { "ConcurrencyLimitRun",
      "{id: string, status: RunStatus, taskIdentifier: string, queue?: string,"
      " concurrencyKey?: string, createdAt: datetime, startedAt?: datetime}" },
    { "ConcurrencyKeyBound",
      "{current: integer|null, base: integer|null, override: integer|null,"
      " expiresAt: datetime|null}" },
    { "ListConcurrencyLimitsResult",
      "{data: ConcurrencyLimit[],"
      " pagination: {currentPage: integer, totalPages: integer, count: integer}}" },
    { 0 },
};

const struct area limits_area = {
    .tag = "concurrencyLimits", .is_for_users = true, .routes = routes, .schemas = schemas
};
