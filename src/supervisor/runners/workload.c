/* workload.c - the routes of the workload API.
 *
 * A call is passed on with its body, idempotency key and trace unchanged, and the response
 * is returned unchanged. The facts that runner.h needs are read from the response. A
 * completion too long to pass on is replaced by one that fails the attempt for this reason,
 * because its controller sends it only once. */
#include "supervisor/runners/workload.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/http/server.h"
#include "supervisor/runners/kept_controllers.h"
#include "supervisor/runners/tenant_quotas.h"
#include "supervisor/runners/workload_sockets.h"

enum {
    SMALL_BODY = 64 * 1024,
    DEBUG_BODY = 1024 * 1024,
    COMPLETION_BODY = 512 * 1024 * 1024, /* longer than Node.js can produce */
    COMPLETION_KEEP = 16 * 1024 * 1024,
    BEGINNING = 1024, /* bytes of it that are shown; below HTTP_BEGINNING */
    ANSWER_MAX = 64 * 1024 * 1024,
    BODIES_MAX = 256 * 1024 * 1024, /* in progress at once, for all organizations */
    PARTS_MAX = 12,
    PASS_MS = 60 * 1000,
    CONNECTIONS = 4096,
    ARRIVING_MAX = 4,  /* request bodies of one runner being received at once */
    CLIENT_LEFT = 499, /* status for a client that has left; it is not sent */
    CALLS_MAX = 16,    /* per runner: calls passed on that have no response yet */
    BODY_MS = 10 * 1000,
    BYTES_PER_S = 1024 * 1024, /* minimum rate; clients are on this machine */
};

struct workload {
    struct loop *loop;
    struct workload_options options;
    struct server *server;
    struct workload_sockets *sockets;
    struct kept_controllers *kept;
    struct tenant_quotas bodies;
    void (*closed)(void *owner);
    void *owner;
};

enum workload_call {
    CALL_NONE,
    CALL_START,
    CALL_COMPLETE,
    CALL_HEARTBEAT,
    CALL_SINCE,
    CALL_CONTINUE,
    CALL_SUSPEND,
    CALL_DEBUG,
    CALL_SOCKET,
    CALL_CONNECT,
    CALL_WARM_START,
};

struct workload_route {
    enum workload_call call;
    struct slice run, snapshot; /* absent if the path has none */
};

/* ---- routes ---- */

static size_t split_path(struct slice path, struct slice parts[PARTS_MAX])
{
    size_t count = 0;
    while (count < PARTS_MAX && slice_split(&path, '/', &parts[count]))
        count++;
    return path.ptr ? 0 : count;
}

static bool parts_are(const struct slice *parts, size_t count, const char *const *names)
{
    for (size_t i = 0; i < count; i++)
        if (names[i] && !slice_is(parts[i], names[i]))
            return false;
    return true;
}

static const struct {
    enum workload_call call;
    enum http_method method;
    size_t count;
    const char *names[6]; /* parts after the run id; NULL: the snapshot */
} run_routes[] = {
    { CALL_START, HTTP_POST_, 4, { "snapshots", NULL, "attempts", "start" } },
    { CALL_COMPLETE, HTTP_POST_, 4, { "snapshots", NULL, "attempts", "complete" } },
    { CALL_HEARTBEAT, HTTP_POST_, 3, { "snapshots", NULL, "heartbeat" } },
    { CALL_SINCE, HTTP_GET_, 3, { "snapshots", "since", NULL } },
    { CALL_CONTINUE, HTTP_GET_, 3, { "snapshots", NULL, "continue" } },
    { CALL_SUSPEND, HTTP_GET_, 3, { "snapshots", NULL, "suspend" } },
    { CALL_DEBUG, HTTP_POST_, 2, { "logs", "debug" } },
};

enum { RUN_ROUTES = sizeof(run_routes) / sizeof(run_routes[0]), RUN_PART = 5 };

static struct workload_route route_of_run(const struct exchange *x,
                                          const struct slice *parts, size_t count)
{
    struct workload_route route = { .run = parts[RUN_PART] };
    const struct slice *rest = parts + RUN_PART + 1;
    count -= RUN_PART + 1;
    for (size_t i = 0; i < RUN_ROUTES; i++) {
        if (run_routes[i].method != x->method || run_routes[i].count != count ||
            !parts_are(rest, count, run_routes[i].names))
            continue;
        for (size_t j = 0; j < count; j++)
            if (!run_routes[i].names[j])
                route.snapshot = rest[j];
        bool right = !route.snapshot.ptr || message_id_is_right(route.snapshot);
        route.call = right ? run_routes[i].call : CALL_NONE;
        return route;
    }
    return route;
}

static struct workload_route route_of(const struct exchange *x)
{
    static const char *const prefix[] = { "", "api", "v1", "workload-actions", "runs" };
    struct slice parts[PARTS_MAX];
    size_t count = split_path(x->path, parts);
    if (count > RUN_PART && parts_are(parts, RUN_PART, prefix))
        return route_of_run(x, parts, count);
    struct workload_route route = { 0 };
    if (x->method != HTTP_GET_)
        return route;
    if (slice_is(x->path, "/socket.io/"))
        route.call = CALL_SOCKET;
    else if (slice_is(x->path, "/connect"))
        route.call = CALL_CONNECT;
    else if (slice_is(x->path, "/warm-start"))
        route.call = CALL_WARM_START;
    return route;
}

/* ---- the caller ---- */

/* Returns the runner that the request claims to come from; NULL if there is none. */
static struct runner *sender_of(const struct workload *workload, const struct exchange *x,
                                const struct workload_route *route)
{
    bool warm = route->call == CALL_WARM_START;
    struct slice id = http_header(x, warm ? "x-trigger-workload-controller-id"
                                          : "x-trigger-workload-runner-id");
    return runner_find(workload->options.shared, id);
}

/* Returns the runner if the token is right and the path names its run, else NULL. */
static struct runner *runner_of(const struct workload *workload, const struct exchange *x,
                                const struct workload_route *route)
{
    bool warm = route->call == CALL_WARM_START;
    struct slice token = http_header(x, warm ? "x-trigger-deployment-id"
                                             : "x-trigger-workload-deployment-id");
    struct runner *runner = sender_of(workload, x, route);
    if (!runner || !runner->runs || !runner_token_is(runner, token))
        return NULL;
    if (route->run.ptr && !(runner->has_run && slice_is(route->run, runner->message.run)))
        return NULL;
    return runner;
}

static void reply_json(struct exchange *x, int status, struct slice body)
{
    http_reply(x, status, SLICE("content-type: application/json\r\n"), body);
}

static void reply_nothing(struct exchange *x)
{
    reply_json(x, 404, SLICE("{\"error\":\"Not found\"}"));
}

/* ---- passing calls on ---- */

struct passing {
    struct gateway_call call;
    struct workload *workload;
    struct exchange *x;
    enum workload_call what;
    char runner[RUNNER_ID_MAX];
    char run[MESSAGE_ID_MAX]; /* a runner may have another run when the response arrives */
};

static void note(const struct passing *op, struct runner *runner)
{
    struct slice answer = op->call.answer;
    if (op->call.status != 200 || !slice_is(slice_of(op->run), runner->message.run))
        return;
    if (op->what == CALL_START)
        runner_note_started(runner, answer);
    else if (op->what == CALL_COMPLETE)
        runner_note_completed(runner, answer);
    else if (op->what == CALL_SINCE)
        runner_note_snapshots(runner, answer);
}

/* Also passes on the headers by which controllers decide whether to retry. */
static void answer(const struct passing *op)
{
    static const char *const names[] = { "content-type", "x-should-retry", "retry-after" };
    struct buf headers = { 0 };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct slice value = fetch_header(&op->call.fetch, names[i]);
        if (value.len)
            buf_print(&headers, "%s: %.*s\r\n", names[i], SLICE_ARG(value));
    }
    http_reply_shared(op->x, op->call.status, buf_slice(&headers), op->call.fetch.answer);
    buf_finish(&headers);
}

static void on_passed(struct gateway_call *call)
{
    struct passing *op = container_of(call, struct passing, call);
    struct runner *runner = runner_find(op->workload->options.shared, slice_of(op->runner));
    if (runner)
        note(op, runner);
    if (!call->status)
        reply_json(op->x, 502, SLICE("{\"error\":\"The gateway is unreachable\"}"));
    else if (!call->fetch.answer)
        http_reply(op->x, call->status, SLICE(""), SLICE(""));
    else
        answer(op);
    if (runner)
        runner_end_call(runner);
    free(op);
}

static void add_path(struct buf *path, const struct workload_route *route)
{
    buf_print(path, "/runs/%.*s/snapshots/%s%.*s", SLICE_ARG(route->run),
              route->call == CALL_SINCE ? "since/" : "", SLICE_ARG(route->snapshot));
    switch (route->call) {
    case CALL_START: buf_add_text(path, "/attempts/start"); break;
    case CALL_COMPLETE: buf_add_text(path, "/attempts/complete"); break;
    case CALL_HEARTBEAT: buf_add_text(path, "/heartbeat"); break;
    case CALL_CONTINUE: buf_add_text(path, "/continue"); break;
    default: break;
    }
}

/* Builds the completion that replaces one that is too long. */
static struct bytes *completion_of_size(const struct exchange *x, struct slice run)
{
    struct buf text = { 0 }, out = { 0 };
    size_t len = BEGINNING;
    while (len && ((unsigned char)x->body.ptr[len] & 0xC0) == 0x80)
        len--;
    buf_print(&text,
              "completion: too large (%.1f MB, max 16 MiB); return less, or store it "
              "elsewhere and return a reference; it begins with %.*s",
              (double)x->body_len / 1e6, (int)len, x->body.ptr);
    buf_add_text(&out, "{\"completion\":{\"id\":");
    buf_add_json(&out, run);
    buf_add_text(&out, ",\"ok\":false,\"error\":{\"type\":\"INTERNAL_ERROR\",\"code\":"
                       "\"TASK_OUTPUT_ERROR\",\"message\":");
    buf_add_json(&out, buf_slice(&text));
    buf_add_text(&out, "}}}");
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&text);
    buf_finish(&out);
    return body;
}

/* Returns NULL for a call without a body. */
static struct bytes *body_to_pass(const struct exchange *x,
                                  const struct workload_route *route)
{
    if (x->method != HTTP_POST_)
        return NULL;
    if (route->call == CALL_COMPLETE && x->body_len > COMPLETION_KEEP)
        return completion_of_size(x, route->run);
    return bytes_create(x->body.ptr ? x->body : SLICE(""));
}

static void pass_on(struct workload *workload, struct exchange *x, struct runner *runner,
                    const struct workload_route *route)
{
    struct passing *op = mem_new(struct passing);
    struct failure why = { 0 };
    struct buf path = { 0 };
    struct bytes *body = body_to_pass(x, route);
    add_path(&path, route);
    buf_add_char(&path, '\0');
    *op = (struct passing){ .workload = workload, .x = x, .what = route->call };
    memcpy(op->runner, runner->id, sizeof(op->runner));
    memcpy(op->run, runner->message.run, sizeof(op->run));
    op->call = (struct gateway_call){
        .fetch = { .method = body ? "POST" : "GET",
                   .body = body,
                   .answer_max = ANSWER_MAX,
                   .first_byte_ms = PASS_MS },
        .path = path.ptr,
        .content_type = http_header(x, "content-type"),
        .key = http_header(x, "x-trigger-request-idempotency-key"),
        .traceparent = http_header(x, "traceparent"),
        .runner = slice_of(runner->id),
        .done = on_passed,
    };
    enum err refused =
        gateway_call_begin(workload->options.shared->gateway_client, &op->call, &why);
    bytes_unref(body);
    buf_finish(&path);
    if (!refused) {
        runner_begin_call(runner);
        return;
    }
    free(op);
    log_warn("cannot forward a call of a controller", "reason", why.text, NULL);
    reply_json(x, 502, SLICE("{\"error\":\"The gateway is unreachable\"}"));
}

/* ---- requests ---- */

static size_t body_limit(enum workload_call call)
{
    return call == CALL_COMPLETE ? COMPLETION_BODY
           : call == CALL_DEBUG  ? DEBUG_BODY
                                 : SMALL_BODY;
}

/* Prevents one run from using up the resources that all runs on this machine share. */
static bool has_too_many(const struct runner *runner, const struct exchange *x)
{
    return runner->calls >= CALLS_MAX ||
           (x->method == HTTP_POST_ && runner->arriving >= ARRIVING_MAX);
}

/* Counts a request for its runner, or for none if NULL.
 *
 * It counts from its head to the end of its body. */
static void begin_arriving(struct workload *workload, struct exchange *x,
                           struct runner *runner)
{
    x->call = workload;
    if (runner && x->method == HTTP_POST_)
        runner->arriving++;
}

/* Returns false if the request was counted off before. Its runner may be gone by now. */
static bool end_arriving(struct workload *workload, struct exchange *x)
{
    struct workload_route route = route_of(x);
    struct runner *runner = sender_of(workload, x, &route);
    bool arrives = x->call;
    x->call = NULL;
    if (arrives && runner && x->method == HTTP_POST_)
        runner->arriving--;
    return arrives;
}

/* Rejects unauthorized requests before any of their body is stored. */
static void on_head(void *owner, struct exchange *x)
{
    struct workload *workload = owner;
    if (x->admin) {
        x->body_limit = runner_figures_are_asked_for(x) ? 0 : x->body_limit;
        return;
    }
    struct workload_route route = route_of(x);
    struct runner *runner = runner_of(workload, x, &route);
    if (route.call == CALL_CONNECT) { /* the response is the same for every client */
        begin_arriving(workload, x, NULL);
        return;
    }
    if (route.call == CALL_NONE || !runner) {
        reply_nothing(x);
        return;
    }
    if (has_too_many(runner, x)) {
        reply_json(x, 503, SLICE("{\"error\":\"Too many calls of this run in flight\"}"));
        return;
    }
    http_trust(x);
    begin_arriving(workload, x, runner);
    x->body_limit = x->method == HTTP_POST_ ? body_limit(route.call) : 0;
    x->body_keep = route.call == CALL_COMPLETE ? COMPLETION_KEEP : 0;
    x->body_quota =
        tenant_quotas_of(&workload->bodies, slice_of(runner->message.organization));
    x->stream_body = route.call == CALL_DEBUG;
}

static void drop_body(void *owner, struct exchange *x, struct slice piece)
{
    (void)owner;
    (void)x;
    (void)piece;
}

/* Checks the runner again: its state may have changed while the body was received. */
static void on_request(void *owner, struct exchange *x)
{
    struct workload *workload = owner;
    if (x->admin) {
        runner_figures_answer(&workload->options.shared->figures, x);
        return;
    }
    struct workload_route route = route_of(x);
    struct runner *runner = runner_of(workload, x, &route);
    end_arriving(workload, x);
    if (route.call == CALL_CONNECT) {
        kept_controllers_answer_connect(workload->kept, x);
        return;
    }
    if (!runner) {
        reply_nothing(x);
        return;
    }
    switch (route.call) {
    case CALL_START:
    case CALL_COMPLETE:
    case CALL_HEARTBEAT:
    case CALL_SINCE:
    case CALL_CONTINUE: pass_on(workload, x, runner, &route); break;
    case CALL_SUSPEND:
        reply_json(x, 200, SLICE("{\"ok\":false,\"error\":\"Checkpoints disabled\"}"));
        break;
    case CALL_DEBUG: http_reply(x, 204, SLICE(""), SLICE("")); break;
    case CALL_SOCKET: workload_sockets_accept(workload->sockets, x, runner); break;
    case CALL_WARM_START: kept_controllers_hold(workload->kept, x, runner); break;
    case CALL_CONNECT:
    case CALL_NONE: break;
    }
}

/* Nothing else replies to a request whose body was cut off. Calls that were passed on still
 * get their response from on_passed. */
static void on_gone(void *owner, struct exchange *x)
{
    struct workload *workload = owner;
    if (end_arriving(workload, x))
        http_reply(x, CLIENT_LEFT, SLICE(""), SLICE(""));
    else
        kept_controllers_drop(workload->kept, x);
}

/* ---- interface ---- */

enum err workload_create(struct loop *loop, const struct workload_options *options,
                         struct workload **out, struct failure *why)
{
    struct workload *workload = mem_new(struct workload);
    struct listen_options addresses[] = { { .host = "127.0.0.1" }, options->figures };
    struct server_options server = {
        .listeners = addresses,
        .listener_count = sizeof(addresses) / sizeof(addresses[0]),
        .handler = { .on_head = on_head,
                     .on_body = drop_body,
                     .on_request = on_request,
                     .on_gone = on_gone },
        .owner = workload,
        .connections_max = CONNECTIONS,
        .body_timeout_ms = BODY_MS,
        .least_bytes_per_s = BYTES_PER_S,
    };
    *workload = (struct workload){ .loop = loop, .options = *options };
    tenant_quotas_init(&workload->bodies, BODIES_MAX);
    enum err refused = server_create(loop, &server, &workload->server, why);
    if (refused) {
        tenant_quotas_finish(&workload->bodies);
        free(workload);
        return refused;
    }
    workload->sockets = workload_sockets_create(loop, options->shared);
    workload->kept = kept_controllers_create(loop, options->shared, options->kept_max,
                                             options->keep_ms, options->poll_ms);
    *out = workload;
    return OK;
}

int workload_port(const struct workload *workload)
{
    return server_port(workload->server, 0);
}

void workload_notify(struct workload *workload, struct slice run)
{
    workload_sockets_notify(workload->sockets, run);
}

bool workload_hand_over(struct workload *workload, struct run_message *message,
                        const struct machine_place *place)
{
    return kept_controllers_hand_over(workload->kept, message, place);
}

void workload_end_kept(struct workload *workload)
{
    kept_controllers_end(workload->kept);
}

void workload_forget(struct workload *workload, struct runner *runner)
{
    kept_controllers_forget(workload->kept, runner);
}

static void on_closed(struct server *server)
{
    struct workload *workload = server_owner(server);
    void (*closed)(void *owner) = workload->closed;
    void *owner = workload->owner;
    workload_sockets_destroy(workload->sockets);
    kept_controllers_destroy(workload->kept);
    tenant_quotas_finish(&workload->bodies);
    free(workload);
    closed(owner);
}

void workload_close(struct workload *workload, void (*closed)(void *owner), void *owner)
{
    workload->closed = closed;
    workload->owner = owner;
    server_close(workload->server, on_closed);
}
