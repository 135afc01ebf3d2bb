/* request_log.c - writes lines of the request log, and counts those that it does not write.
 *
 *   response ─► its kind ─► lines left in this minute, another caller?  yes ─► line
 *                                                                        no ─► counted
 *   after a minute ─► one line with the count, for each kind that has one
 *
 * A caller whose credential was refused is remembered while it returns each minute. So a
 * program that retries forever causes one line, and then one count a minute. */
#include "api/request/request_log.h"

#include "api/request/route.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"

enum {
    KINDS_MAX = 64, /* the last one stands for all that do not fit */
    LINES_MAX = 10, /* of a kind in a minute */
    MINUTE_MS = 60 * 1000,
    NEVER = 1000, /* above every status */
};

/* A caller whose refused credential already has its line. */
struct caller {
    uint64_t hash; /* of address and credential */
    bool again;    /* returned in this minute */
};

struct kind {
    const char *route; /* compared as a pointer; of the table of routes */
    int status;
    unsigned lines;
    int64_t more; /* counted, not written */
    struct caller callers[LINES_MAX];
    unsigned caller_count;
};

struct request_log {
    struct loop *loop;
    int from; /* the lowest status that is logged */
    struct timer timer;
    uint32_t timer_kind;
    struct kind kinds[KINDS_MAX]; /* of this minute */
    size_t kind_count;
};

static const char other_routes[] = "others", no_route[] = "none";

/* ---- a minute ---- */

static void start_minute(struct request_log *log)
{
    loop_set_timer(log->loop, &log->timer, log->timer_kind, MINUTE_MS);
}

static void tell_counts(const struct request_log *log)
{
    for (size_t i = 0; i < log->kind_count; i++) {
        const struct kind *kind = &log->kinds[i];
        if (kind->more)
            log_info("similar requests", "route", kind->route, "status",
                     log_number(kind->status), "count", log_number(kind->more), NULL);
    }
}

/* Begins a new minute: keeps only callers that returned. */
static void renew(struct kind *kind)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < kind->caller_count; i++)
        if (kind->callers[i].again)
            kind->callers[kept++] = (struct caller){ .hash = kind->callers[i].hash };
    kind->caller_count = kind->lines = kept;
    kind->more = 0;
}

static void on_minute_over(struct timer *timer)
{
    struct request_log *log = container_of(timer, struct request_log, timer);
    size_t kept = 0;
    tell_counts(log);
    for (size_t i = 0; i < log->kind_count; i++) {
        renew(&log->kinds[i]);
        if (log->kinds[i].caller_count)
            log->kinds[kept++] = log->kinds[i];
    }
    log->kind_count = kept;
    if (kept)
        start_minute(log);
}

static struct kind *find_kind(struct request_log *log, const char *route, int status)
{
    for (size_t i = 0; i < log->kind_count; i++)
        if (log->kinds[i].route == route && log->kinds[i].status == status)
            return &log->kinds[i];
    if (log->kind_count == KINDS_MAX)
        return &log->kinds[KINDS_MAX - 1];
    if (!log->kind_count)
        start_minute(log);
    bool last = log->kind_count == KINDS_MAX - 1;
    struct kind *kind = &log->kinds[log->kind_count++];
    *kind =
        (struct kind){ .route = last ? other_routes : route, .status = last ? 0 : status };
    return kind;
}

/* Returns true if the caller is known. Otherwise adds it, if there is space. */
static bool is_known(struct kind *kind, uint64_t hash)
{
    for (unsigned i = 0; i < kind->caller_count; i++) {
        if (kind->callers[i].hash == hash) {
            kind->callers[i].again = true;
            return true;
        }
    }
    if (kind->caller_count < LINES_MAX)
        kind->callers[kind->caller_count++] = (struct caller){ .hash = hash };
    return false;
}

/* Returns false if this response is only counted. Responses that are not faults are all
 * written, because REQUEST_LOG_ALL requests them. caller 0: not identified. */
static bool may_write(struct request_log *log, const char *route, int status,
                      uint64_t caller)
{
    if (status < 400)
        return true;
    struct kind *kind = find_kind(log, route, status);
    if ((caller && is_known(kind, caller)) || kind->lines == LINES_MAX) {
        kind->more++;
        return false;
    }
    kind->lines++;
    return true;
}

/* ---- a line ---- */

static const char *method_of(const struct exchange *x)
{
    return http_method_name(x->path.ptr ? x->method : HTTP_OTHER_); /* not read that far */
}

static void write_line(const struct exchange *x, const char *route, int status,
                       const struct account *account)
{
    struct slice id = http_header(x, "x-request-id");
    char env[BRANCH_NAME_MAX + sizeof("preview/")] = "";
    if (account)
        snprintf(env, sizeof(env), "%s%s%s", environment_path_slug(account->type),
                 account->branch ? "/" : "", account->branch ? account->branch : "");
    void (*write)(const char *event, ...) = status >= 500 ? log_warn : log_info;
    write("request", "method", method_of(x), "route", route, "status", log_number(status),
          "us", log_number(http_elapsed_us(x)), "project",
          account ? account->project->ref : "", "env", env, "request_id", log_slice(id),
          "client", x->peer, NULL);
}

static bool is_wanted(const struct request_log *log, int status)
{
    return log && status >= log->from;
}

/* Returns true for a status that clients poll until it changes. */
static bool is_awaited(const struct route *route, int status)
{
    return route &&
           (route->awaited[0] == (unsigned)status || route->awaited[1] == (unsigned)status);
}

/* Returns a hash of a caller whose credential was refused; 0: none was. It is kept only
 * here. */
static uint64_t caller_of(const struct exchange *x, int status)
{
    if (status != 401)
        return 0;
    uint64_t hash =
        table_hash(slice_of(x->peer)) ^ table_hash(http_header(x, "authorization"));
    return hash ? hash : 1;
}

void request_log_answer(const struct api_call *call, int status)
{
    struct request_log *log = api_options(call->api)->request_log;
    if (!is_wanted(log, status) || call->refused)
        return;
    const struct route *route = call->route;
    const char *pattern = route ? route->path : no_route;
    if ((log->from < 400 || !is_awaited(route, status)) &&
        may_write(log, pattern, status, caller_of(call->x, status)))
        write_line(call->x, pattern, status, call->account);
}

void request_log_refusal(void *owner, const struct exchange *x, int status)
{
    struct request_log *log = api_options(owner)->request_log;
    struct api_call *call = x->call;
    if (call) {
        request_log_answer(call, status);
        call->refused = true;
    } else if (is_wanted(log, status) && may_write(log, no_route, status, 0)) {
        write_line(x, no_route, status, NULL);
    }
}

void request_log_socket(struct request_log *log, unsigned code)
{
    static const char route[] = "/realtime/v1/ws";
    if (is_wanted(log, 401) && may_write(log, route, (int)code, 0))
        log_info("WebSocket closed", "route", route, "code", log_number(code), NULL);
}

/* ---- audits ---- */

void request_log_actor(const struct api_call *call, char out[ACTOR_TEXT])
{
    const struct identity *identity = call->identity;
    const struct secret *secret = identity ? identity->secret : NULL;
    char id[SECRET_ID_LEN + 1] = "";
    if (identity && identity->granted_by)
        secret = identity->granted_by;
    if (secret)
        secret_show_id(secret, id);
    if (secret && secret->user)
        snprintf(out, ACTOR_TEXT, "token %s of user %s", id, secret->user->id);
    else if (identity && identity->account)
        snprintf(out, ACTOR_TEXT, "key %s of environment %s", id, identity->account->id);
    else
        snprintf(out, ACTOR_TEXT, "nobody");
}

/* ---- the log itself ---- */

void request_log_set_mode(struct request_log *log, enum request_log_mode mode)
{
    static const int lowest[] = {
        [REQUEST_LOG_OFF] = NEVER, [REQUEST_LOG_ERRORS] = 400, [REQUEST_LOG_ALL] = 0
    };
    log->from = lowest[mode];
}

struct request_log *request_log_create(struct loop *loop, enum request_log_mode mode)
{
    struct request_log *log = mem_new(struct request_log);
    log->loop = loop;
    request_log_set_mode(log, mode);
    log->timer_kind = timers_kind(loop_timers(loop), on_minute_over);
    return log;
}

void request_log_destroy(struct request_log *log)
{
    if (!log)
        return;
    tell_counts(log);
    timers_clear(loop_timers(log->loop), &log->timer);
    free(log);
}
