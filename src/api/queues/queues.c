/* queues.c - the routes of queues: list, retrieve, and set what users set.
 *
 *   change ─► settings as they would be ─► document (synced) ─► the queue has them ─► reply
 *                  ▲                           │
 *                  └─ another change was first ┘
 *
 * A queue exists while it is registered, has settings or has something in it. Its id is
 * derived from its name, so that it is found without a separate table. */
#include "api/queues/queue_settings.h"
#include "api/queues/rate_settings.h"
#include "api/queues/usage.h"
#include "api/request/paging.h"
#include "api/request/route.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/fleet/fleet.h"
#include "core/fleet/worker_versions.h"

enum {
    NO_BODY = 4096,
    SMALL_BODY = 64 * 1024,
    NAME_LEN_MAX = 256,
    LIMIT_MAX = 100000,
    CHANGE_TRIES_MAX = 128, /* of changes at once, one wins each round */
    OLDEST_AMONG = 2048,    /* items searched for the oldest one of a queue */
};

static const char id_prefix[] = "queue_", task_prefix[] = "task/";

/* ---- a queue as clients see it ---- */

static void add_id(struct buf *out, struct slice name)
{
    buf_print(out, "\"%s", id_prefix);
    char *at = buf_reserve(out, name.len * 4 / 3 + 4);
    out->len += text_to_base64url(name, at);
    buf_add_char(out, '"');
}

static void add_limit(struct buf *out, const char *member, bool is_set, uint32_t limit)
{
    if (is_set && limit != UINT32_MAX)
        buf_print(out, "\"%s\":%u", member, limit);
    else
        buf_print(out, "\"%s\":null", member);
}

static void add_singleton(struct buf *out, enum singleton strategy)
{
    if (strategy)
        buf_print(out, ",\"singleton\":\"%s\"", singleton_word(strategy));
    else
        buf_add_text(out, ",\"singleton\":null");
}

static void add_concurrency(struct buf *out, const struct queue_figures *figures)
{
    const struct queue_settings *settings = &figures->settings;
    buf_add_text(out, ",\"concurrency\":{");
    add_limit(out, "current", true, figures->limit);
    buf_add_char(out, ',');
    add_limit(out, "base", true, figures->base);
    buf_add_char(out, ',');
    add_limit(out, "override", settings->overridden, settings->override);
    buf_add_text(out, ",\"overriddenAt\":");
    if (settings->overridden)
        buf_add_json_time(out, settings->overridden_at);
    else
        buf_add_text(out, "null");
    buf_add_text(out, ",\"overriddenBy\":null}");
}

/* Adds the time since which the oldest run in the queue has waited. Checks only
 * OLDEST_AMONG runs. */
static void add_oldest(struct buf *out, const struct queues *queues, struct slice name)
{
    const struct queue_item *item = queues_oldest_of(queues, name, OLDEST_AMONG);
    buf_add_text(out, ",\"oldestQueuedAt\":");
    if (item)
        buf_add_json_time(
            out, run_in_queue_since(&container_of(item, const struct tracked, item)->run));
    else
        buf_add_text(out, "null");
}

/* Returns true if the task of the queue declares its concurrency, and the queue has no limit
 * of its own: the published schema calls that a queue of version 2. */
static bool is_version_2(const struct environment *env, struct slice name,
                         const struct queue_figures *figures)
{
    if (!slice_starts(name, task_prefix) || figures->limit != UINT32_MAX)
        return false;
    struct slice id = slice_from(name, sizeof(task_prefix) - 1);
    const struct worker_task *task = workers_task(env->fleet->workers, id);
    return task && task->limits;
}

static void add_queue(struct buf *out, const struct environment *env, struct slice name)
{
    const struct queues *queues = &env->queues;
    struct queue_figures figures = queues_figures(queues, name);
    bool is_task = slice_starts(name, task_prefix);
    bool is_second = is_version_2(env, name, &figures);

    buf_add_text(out, "{\"id\":");
    add_id(out, name);
    buf_add_text(out, ",\"name\":");
    buf_add_json(out, is_task ? slice_from(name, sizeof(task_prefix) - 1) : name);
    buf_print(out, ",\"type\":\"%s\",\"running\":%u,\"queued\":%u,\"paused\":%s,",
              is_task ? "task" : "custom", figures.running, figures.waiting,
              figures.settings.paused ? "true" : "false");
    add_limit(out, "concurrencyLimit", true, figures.limit);
    if (!is_second)
        add_concurrency(out, &figures);
    buf_add_char(out, ',');
    add_limit(out, "combinedConcurrencyLimit", true, figures.total);
    add_singleton(out, figures.settings.singleton);
    add_oldest(out, queues, name);
    rate_settings_show(out, env, false, name);
    buf_add_text(out, is_second ? ",\"version\":\"V2\"}" : ",\"version\":\"V1\"}");
}

static void reply_queue(struct api_call *call, struct slice name)
{
    struct buf out = { 0 };
    add_queue(&out, call->env, name);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

/* ---- which queue is meant ---- */

/* The word before the colon is that of upstream. */
static enum err not_found(struct api_call *call, struct slice type)
{
    const char *how = "no queue has this id; to use a name, send type task or custom";
    if (slice_is(type, "task"))
        how = "no queue has the name task/<name>, which type task means; type custom "
              "means the name as it is";
    else if (slice_is(type, "custom"))
        how = "no queue has this name; type task means task/<name>, the queue of a task";
    return explain(&call->why, ERR_NOT_FOUND, "queue-not-found: %s", how);
}

/* Adds a name from a path. Its slashes are encoded twice. */
static void add_name(struct buf *name, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        struct slice rest = slice_from(text, i);
        bool is_slash = slice_starts(rest, "%2F") || slice_starts(rest, "%2f");
        buf_add_char(name, is_slash ? '/' : text.ptr[i]);
        i += is_slash ? 2 : 0;
    }
}

static enum err name_of_id(struct slice id, struct buf *name)
{
    size_t len = 0;
    if (!slice_starts(id, id_prefix))
        return ERR_NOT_FOUND;
    struct slice text = slice_from(id, sizeof(id_prefix) - 1);
    if (text.len > NAME_LEN_MAX * 2)
        return ERR_NOT_FOUND;
    char *at = buf_reserve(name, text.len + 1);
    if (text_from_base64url(text, (unsigned char *)at, &len))
        return ERR_NOT_FOUND;
    name->len += len;
    return OK;
}

/* Writes the whole name of the queue that the path names. Returns ERR_NOT_FOUND if the
 * queue does not exist. */
static enum err find_queue(struct api_call *call, struct slice type, struct buf *name)
{
    struct slice param = call->params[0];
    if (!type.ptr || slice_is(type, "id")) {
        if (name_of_id(param, name))
            return not_found(call, type);
    } else if (slice_is(type, "task")) {
        /* ctx.queue.name of a task already has the prefix. */
        add_name(name, param);
        if (!slice_starts(buf_slice(name), task_prefix)) {
            buf_clear(name);
            buf_add_text(name, task_prefix);
            add_name(name, param);
        }
    } else if (slice_is(type, "custom")) {
        add_name(name, param);
    } else {
        return explain(&call->why, ERR_INVALID, "type: must be id, task or custom");
    }
    if (!queues_figures(&call->env->queues, buf_slice(name)).known)
        return not_found(call, type);
    return OK;
}

/* ---- list, retrieve ---- */

static void add_queue_at(struct buf *out, const struct environment *env, uint64_t place)
{
    add_queue(out, env, queues_name_at(&env->queues, place));
}

static enum err list_queues(struct api_call *call)
{
    return paging_reply(call, queues_count(&call->env->queues), add_queue_at);
}

static void reply_key(struct api_call *call, struct slice name, struct slice key)
{
    struct buf out = { 0 };
    usage_add_key(&out, call->env, false, name, key);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static enum err retrieve(struct api_call *call)
{
    struct buf name = { 0 };
    struct slice key = api_query(call, "concurrencyKey");
    enum err refused = find_queue(call, api_query(call, "type"), &name);
    if (!refused && key.ptr)
        reply_key(call, buf_slice(&name), key);
    else if (!refused)
        reply_queue(call, buf_slice(&name));
    buf_finish(&name);
    return refused;
}

static enum err retrieve_usage(struct api_call *call)
{
    struct buf name = { 0 };
    enum err refused = find_queue(call, api_query(call, "type"), &name);
    if (!refused)
        usage_reply(call, false, buf_slice(&name));
    buf_finish(&name);
    return refused;
}

/* ---- changes ---- */

struct queue_change;
typedef enum err change_fn(const struct queue_change *change,
                           struct queue_settings *settings, struct failure *why);

struct queue_change {
    struct api_call *call;
    change_fn *alter;
    struct bytes *name;
    bool pause;
    bool is_kept; /* there is something to store */
    uint32_t limit;
    enum singleton singleton;
    struct rate_change rate;
    int64_t now_ms;
    struct queue_settings settings; /* as they will be */
    struct document_write write;
    unsigned tries;
};

static void finish_change(struct queue_change *change, enum err status)
{
    struct api_call *call = change->call;
    if (status)
        api_reply_error(call, status);
    else
        reply_queue(call, bytes_slice(change->name));
    bytes_unref(change->name);
    free(change);
}

static void on_written(struct document_write *write, enum err status);

/* Returns ERR_RULE if the environment, the preview branches or their project have as many
 * queues with settings as they may. */
static enum err check_configured(const struct queues *queues, struct failure *why)
{
    const struct quota *own = &queues->own.configured, *full = quota_full(own, 1);
    if (!full)
        return OK;
    return explain(why, ERR_RULE,
                   "At most %zu queues of %s can be paused, have another limit, a "
                   "singleton strategy or a rate at once",
                   full->limit,
                   full == own    ? "an environment"
                   : !full->outer ? "a project"
                                  : "the preview branches of a project");
}

/* Alters the current settings and writes them. Writes nothing if the queue neither has nor
 * gets its own settings. */
static void write_change(struct queue_change *change)
{
    struct api_call *call = change->call;
    struct queues *queues = &call->env->queues;
    struct queue_figures figures = queues_figures(queues, bytes_slice(change->name));
    struct queue_settings *settings = &change->settings;

    *settings = figures.settings;
    enum err refused = figures.known ? change->alter(change, settings, &call->why)
                                     : not_found(call, (struct slice){ 0 });
    struct bytes *body = queue_settings_write(settings);
    change->is_kept = body;
    if (!refused && body && !settings->version)
        refused = check_configured(queues, &call->why);
    if (refused || (!body && !settings->version))
        finish_change(change, refused);
    else
        document_write_begin(api_engine(call->api), call->env->number, DOC_QUEUE,
                             change->name, body, settings->version, &change->write,
                             on_written);
    bytes_unref(body);
}

static void on_written(struct document_write *write, enum err status)
{
    struct queue_change *change = container_of(write, struct queue_change, write);
    struct environment *env = change->call->env;
    struct queue_settings *settings = &change->settings;

    if (status == ERR_CONFLICT && ++change->tries < CHANGE_TRIES_MAX) {
        write_change(change);
        return;
    }
    if (!status) {
        settings->version = change->is_kept ? settings->version + 1 : 0;
        engine_configure_queue(env, bytes_slice(change->name), settings);
        engine_refill(api_engine(change->call->api), env);
        engine_match(api_engine(change->call->api), env);
    }
    finish_change(change, status);
}

/* Begins a change, which replies later. type: a JSON text; absent for none. */
static enum err begin_change(struct api_call *call, struct slice type,
                             const struct queue_change *requested)
{
    struct buf word = { 0 }, name = { 0 };
    enum err refused = OK;
    if (type.ptr && !scan_string(type, &word))
        refused = explain(&call->why, ERR_INVALID, "type: must be id, task or custom");
    if (!refused)
        refused =
            find_queue(call, type.ptr ? buf_slice(&word) : (struct slice){ 0 }, &name);
    if (!refused) {
        struct queue_change *change = mem_new(struct queue_change);
        *change = *requested;
        change->call = call;
        change->name = bytes_create(buf_slice(&name));
        change->now_ms = loop_wall_ms(engine_loop(api_engine(call->api)));
        call->busy = true;
        write_change(change);
    }
    buf_finish(&word);
    buf_finish(&name);
    return refused;
}

static enum err alter_pause(const struct queue_change *change,
                            struct queue_settings *settings, struct failure *why)
{
    (void)why;
    settings->paused = change->pause;
    return OK;
}

static enum err pause_or_resume(struct api_call *call)
{
    struct queue_change requested = { .alter = alter_pause };
    struct buf action = { 0 };
    struct slice body;

    if (api_read_object(call, &body))
        return ERR_INVALID;
    scan_string(scan_member(body, "action"), &action);
    requested.pause = slice_is(buf_slice(&action), "pause");
    bool is_known = requested.pause || slice_is(buf_slice(&action), "resume");
    buf_finish(&action);
    if (!is_known)
        return explain(&call->why, ERR_INVALID, "action: must be pause or resume");
    return begin_change(call, scan_member(body, "type"), &requested);
}

static enum err alter_override(const struct queue_change *change,
                               struct queue_settings *settings, struct failure *why)
{
    (void)why;
    settings->overridden = true;
    settings->override = change->limit;
    settings->overridden_at = change->now_ms;
    return OK;
}

static enum err override(struct api_call *call)
{
    struct queue_change requested = { .alter = alter_override };
    struct slice body;
    uint64_t limit = 0;

    if (api_read_object(call, &body))
        return ERR_INVALID;
    struct slice text = scan_member(body, "concurrencyLimit");
    if (!text.ptr || text_to_u64(text, &limit) || limit > LIMIT_MAX)
        return explain(&call->why, ERR_INVALID,
                       "concurrencyLimit: must be a whole number from 0 to %d", LIMIT_MAX);
    requested.limit = (uint32_t)limit;
    return begin_change(call, scan_member(body, "type"), &requested);
}

static enum err alter_reset(const struct queue_change *change,
                            struct queue_settings *settings, struct failure *why)
{
    (void)change;
    if (!settings->overridden)
        return explain(why, ERR_INVALID, "queue-not-overridden");
    settings->overridden = false;
    return OK;
}

static enum err reset(struct api_call *call)
{
    const struct queue_change requested = { .alter = alter_reset };
    struct slice body;
    if (api_read_object(call, &body))
        return ERR_INVALID;
    return begin_change(call, scan_member(body, "type"), &requested);
}

static enum err alter_singleton(const struct queue_change *change,
                                struct queue_settings *settings, struct failure *why)
{
    (void)why;
    settings->singleton = change->singleton;
    return OK;
}

static enum err set_singleton(struct api_call *call)
{
    struct queue_change requested = { .alter = alter_singleton };
    struct buf word = { 0 };
    struct slice body;

    if (api_read_object(call, &body))
        return ERR_INVALID;
    struct slice strategy = scan_member(body, "strategy");
    bool is_none = strategy.ptr && scan_type(strategy) == SCAN_NULL;
    if (strategy.ptr && !is_none)
        scan_string(strategy, &word);
    requested.singleton = singleton_of_word(buf_slice(&word));
    buf_finish(&word);
    if (!requested.singleton && !is_none)
        return explain(&call->why, ERR_INVALID,
                       "strategy: must be queue, skip, cancel or null");
    return begin_change(call, scan_member(body, "type"), &requested);
}

static enum err alter_rate(const struct queue_change *change,
                           struct queue_settings *settings, struct failure *why)
{
    (void)why;
    rate_change_apply(&change->rate, settings);
    return OK;
}

static enum err set_rate(struct api_call *call)
{
    struct queue_change requested = { .alter = alter_rate };
    struct slice body;
    enum err refused = api_read_object(call, &body);
    if (!refused)
        refused = rate_change_read(call, body, &requested.rate);
    return refused ? refused : begin_change(call, scan_member(body, "type"), &requested);
}

#define QUEUE "/api/v1/queues/{queueParam}"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/queues",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = list_queues,
      .id = "list_queues_v1", .summary = "List queues",
      .query = "page?: integer(1..4294967295), perPage?: integer(1..4294967295)",
      .reply = "ListQueuesResult" },
    { .method = HTTP_GET_, .path = QUEUE,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = retrieve,
      .id = "retrieve_queue_v1",
      .summary = "Retrieve a queue, or what it allows for one key (runcast's own)",
      .query = "type?: QueueParamType, concurrencyKey?: string",
      .reply = "QueueItem|ConcurrencyLimitKey" },
    { .method = HTTP_GET_, .path = QUEUE "/usage",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = retrieve_usage,
      .id = "retrieve_queue_usage_v1",
      .summary = "Retrieve the runs and keys that use a queue (runcast's own)",
      .query = "type?: QueueParamType",
      .reply = "ConcurrencyLimitUsage" },
    { .method = HTTP_POST_, .path = QUEUE "/pause",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = pause_or_resume,
      .id = "pause_queue_v1", .summary = "Pause or resume a queue",
      .body = "{type?: QueueParamType, action: 'pause'|'resume', ...}",
      .reply = "QueueItem",
      .also = "422" },
    { .method = HTTP_POST_, .path = QUEUE "/concurrency/override",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = override,
      .id = "override_queue_concurrency_v1", .summary = "Override the concurrency limit",
      .body = "{type?: QueueParamType, concurrencyLimit: integer(0..100000), ...}",
      .reply = "QueueItem",
      .also = "422" },
    { .method = HTTP_POST_, .path = QUEUE "/concurrency/reset",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = reset,
      .id = "reset_queue_concurrency_v1", .summary = "Reset the override",
      .body = "{type?: QueueParamType, ...}",
      .reply = "QueueItem" },
    { .method = HTTP_POST_, .path = QUEUE "/singleton",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = set_singleton,
      .id = "set_queue_singleton_v1",
      .summary = "Set the singleton strategy (runcast's own)",
      .body = "{type?: QueueParamType, strategy: 'queue'|'skip'|'cancel'|null, ...}",
      .reply = "QueueItem",
      .also = "422" },
    { .method = HTTP_POST_, .path = QUEUE "/rate",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = set_rate,
      .id = "rate_queue_v1",
      .summary = "Set how many runs of a queue may start per period"
                 " (runcast's own)",
      .body = "{type?: QueueParamType, perKey?: Rate|null, total?: Rate|null, ...}",
      .reply = "QueueItem",
      .also = "422" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "QueueParamType", "'id'|'task'|'custom'" },
    { "QueueItem",
      "{id: string, name: string, type: 'task'|'custom', running: integer, queued: integer,"
      " paused: boolean, concurrencyLimit: integer|null, concurrency?: QueueConcurrency,"
      " combinedConcurrencyLimit: integer|null, singleton: 'queue'|'skip'|'cancel'|null,"
      " oldestQueuedAt: datetime|null, rate?: Rates, version: 'V1'|'V2'}" },
    { "Rate", "{starts: integer(1..100000), period: string}" },
    { "RateNow",
      "{starts: integer, period: string, available: integer, nextAt: datetime|null}" },
    { "Rates", "{perKey: Rate|null, total: RateNow|null}" },
    { "QueueConcurrency",
      "{current: integer|null, base: integer|null, override: integer|null,"
      " overriddenAt: datetime|null, overriddenBy: string|null}" },
    { "ListQueuesResult",
      "{data: QueueItem[],"
      " pagination: {currentPage: integer, totalPages: integer, count: integer}}" },
    { 0 },
};

const struct area queues_area = {
    .tag = "queues", .is_for_users = true, .routes = routes, .schemas = schemas
};
