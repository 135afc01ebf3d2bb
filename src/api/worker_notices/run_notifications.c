/* run_notifications.c - the sockets of workers, and the runs that each subscribes to.
 *
 *   env + run ─► struct watched_run ──┐
 *                                     ├─ struct run_watch ─► ready ─► written this turn
 *   struct notice_socket ─────────────┘                └► held: its socket is full
 *
 * The engine is never reentered from here: a notice only moves links, and the flusher
 * writes. Keys contain the environment, so no socket is notified of another environment's
 * run. For a worker's token, each run is looked up in the environments that it serves.
 * Requests of clients are granted in time slices. */
#include "api/worker_notices/run_notifications.h"

#include "api/request/call.h"
#include "api/request/connection_limit.h"
#include "api/request/served.h"
#include "api/worker_notices/notice_calls.h"
#include "api/worker_notices/notice_requests.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/fleet/dev_sessions.h"
#include "net/http/ws.h"
#include "runcast/protocol.h"

enum {
    PING_MS = 25 * 1000,
    PONG_TIMEOUT_MS = 20 * 1000, /* as sent to clients; they count from their own pong */
    CONNECT_MS = 10 * 1000,
    UNSENT_MAX = 64 * 1024,
    WATCHES_MAX = 10000,
    WATCHES_EXTRA = 256, /* beyond what the environment executes at once */
    LEAVE_EVERY_MS = 2,
    SPACE_MAX = 64, /* bytes of a namespace that a refusal repeats */
};

struct run_notifications {
    struct api *api;
    struct table runs;      /* of struct watched_run */
    struct list sockets;    // notice_socket::link
    struct list ready;      // run_watch::ready
    struct list requesting; // notice_socket::requesting
    struct flusher flusher;
    size_t count;
    uint32_t kind; /* of the sockets' timers */
};

struct watched_run {
    char key[ENVIRONMENT_KEY];
    struct list watches; // run_watch::of_run
};

struct run_watch {
    struct notice_socket *socket;
    struct watched_run *run;
    struct list of_run; // watched_run::watches
    struct list ready; // run_notifications::ready or notice_socket::held; unlinked: no news
};

struct notice_socket {
    struct ws *ws;
    struct run_notifications *all;
    struct identity *identity; /* NULL: refuse the client once it connects */
    struct environment *env;   /* NULL: a worker's token, which serves several */
    struct seat seat;          /* taken once there is an identity */
    struct failure refusal;
    const char *space; /* the namespace that it entered; NULL: none yet */
    struct table watches;
    struct list held; // run_watch::ready; until the socket has drained
    struct notice_requests requests;
    struct list requesting; // run_notifications::requesting; linked while it has requests
    struct timer timer;
    int64_t connect_by; /* monotonic ms; 0: connected */
    int64_t ping_at;
    int64_t pong_by; /* 0: no pong is due */
    int64_t leave_at;
    struct list link; // run_notifications::sockets
};

static const char *const spaces[] = { "/dev-worker", "/worker" };

static struct loop *loop_of(const struct run_notifications *all)
{
    return engine_loop(api_engine(all->api));
}

static struct slice id_of(const struct watched_run *run)
{
    return environment_key_id(run->key);
}

static struct slice watched_key(const void *value)
{
    return slice_of(((const struct watched_run *)value)->key);
}

static struct slice watch_key(const void *value)
{
    return id_of(((const struct run_watch *)value)->run);
}

/* ---- out ---- */

/* Sends the text, and clears it. */
static void send(struct notice_socket *socket, struct buf *text)
{
    struct bytes *frame = ws_frame(buf_slice(text), false);
    ws_send(socket->ws, &frame, 1);
    bytes_unref(frame);
    buf_finish(text);
    if (ws_unsent(socket->ws) > UNSENT_MAX && !ws_closing(socket->ws))
        ws_close(socket->ws, CLOSE_OVERLOAD, "too many unread responses");
}

static void send_open(struct notice_socket *socket)
{
    struct buf text = { 0 };
    socket_packet_add_open(&text, PING_MS, PONG_TIMEOUT_MS, PROTOCOL_MESSAGE_BYTES);
    send(socket, &text);
}

static void send_notice(struct notice_socket *socket, struct slice id)
{
    struct buf text = { 0 };
    socket_packet_begin_event(&text, socket->space, "run:notify");
    buf_add_text(&text, "{\"version\":\"1\",\"run\":{\"friendlyId\":");
    buf_add_json(&text, id);
    buf_add_text(&text, "}}");
    socket_packet_end_event(&text);
    send(socket, &text);
    metric_add(M_NOTICES, 1);
}

/* Notifies one socket of one run. Returns false if there is none to notify. */
static bool tell_next(struct run_notifications *all)
{
    if (list_empty(&all->ready))
        return false;
    struct run_watch *watch = container_of(list_take(&all->ready), struct run_watch, ready);
    struct notice_socket *socket = watch->socket;
    if (ws_unsent(socket->ws))
        list_append(&socket->held, &watch->ready);
    else if (!ws_closing(socket->ws))
        send_notice(socket, id_of(watch->run));
    return true;
}

/* ---- subscriptions ---- */

static void make_ready(struct run_notifications *all, struct run_watch *watch)
{
    if (!list_empty(&watch->ready))
        return;
    list_append(&all->ready, &watch->ready);
    loop_wake(loop_of(all), &all->flusher);
}

static void on_notice(void *owner, const struct tracked *run)
{
    struct run_notifications *all = owner;
    char key[ENVIRONMENT_KEY];
    environment_key(run->env, slice_of(run->run.id), key);
    struct watched_run *watched = table_find(&all->runs, slice_of(key));
    if (!watched)
        return;
    list_each (link, &watched->watches)
        make_ready(all, container_of(link, struct run_watch, of_run));
}

static struct watched_run *watched_of(struct run_notifications *all,
                                      const struct environment *env, struct slice id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, id, key);
    struct watched_run *run = table_find(&all->runs, slice_of(key));
    if (run)
        return run;
    run = mem_new(struct watched_run);
    memcpy(run->key, key, sizeof(key));
    list_init(&run->watches);
    table_insert(&all->runs, run);
    return run;
}

/* Frees a watch that was removed from its socket's table. */
static void watch_free(struct run_watch *watch)
{
    struct watched_run *run = watch->run;
    struct run_notifications *all = watch->socket->all;
    list_remove(&watch->of_run);
    list_remove(&watch->ready);
    free(watch);
    if (!list_empty(&run->watches))
        return;
    table_remove(&all->runs, slice_of(run->key));
    free(run);
}

/* Returns true if the run changed since it was leased, which the worker may have missed. */
static bool may_have_missed(const struct environment *env, struct slice id)
{
    const struct tracked *run = environment_find(env, id);
    return run && run->run.execution != EXECUTION_PENDING_EXECUTING;
}

static void subscribe(struct notice_socket *socket, struct environment *env,
                      struct slice id)
{
    struct run_notifications *all = socket->all;
    size_t most = engine_options(api_engine(all->api))->concurrency + WATCHES_EXTRA;
    if (most > WATCHES_MAX)
        most = WATCHES_MAX;
    if (id.len >= ID_MAX || socket->watches.count >= most ||
        table_find(&socket->watches, id))
        return;
    struct run_watch *watch = mem_new(struct run_watch);
    watch->socket = socket;
    watch->run = watched_of(all, env, id);
    list_append(&watch->run->watches, &watch->of_run);
    list_init(&watch->ready);
    table_insert(&socket->watches, watch);
    if (may_have_missed(env, id))
        make_ready(all, watch);
}

/* Returns the environment of the run. Returns NULL if a worker's token serves none that has
 * the run in memory: workers have only runs in progress, and those are in memory. */
static struct environment *environment_of(const struct notice_socket *socket,
                                          struct slice id)
{
    const struct api *api = socket->all->api;
    const struct account *account =
        socket->env ? NULL : served_with_run(api, socket->identity, id);
    return account ? served_runs(api, account) : socket->env;
}

static void unsubscribe(struct notice_socket *socket, struct slice id)
{
    struct run_watch *watch = table_remove(&socket->watches, id);
    if (watch)
        watch_free(watch);
}

/* ---- requests ---- */

static void grant(struct notice_socket *socket, const struct notice_request *request)
{
    struct slice id = slice_of(request->id);
    struct environment *env = request->subscribe ? environment_of(socket, id) : NULL;
    if (env)
        subscribe(socket, env, id);
    else if (!request->subscribe)
        unsubscribe(socket, id);
}

/* Grants one request of the next socket, then another gets its turn. Returns false if no
 * socket has one. */
static bool grant_next(struct run_notifications *all)
{
    struct notice_request request;
    if (list_empty(&all->requesting))
        return false;
    struct notice_socket *socket =
        container_of(list_take(&all->requesting), struct notice_socket, requesting);
    if (notice_requests_take(&socket->requests, &request))
        grant(socket, &request);
    if (!notice_requests_are_empty(&socket->requests))
        list_append(&all->requesting, &socket->requesting);
    return true;
}

static bool flush(struct flusher *flusher)
{
    struct run_notifications *all =
        container_of(flusher, struct run_notifications, flusher);
    struct timeslice timeslice = loop_timeslice(loop_of(all));
    while (timeslice_left(&timeslice)) {
        bool granted = grant_next(all);
        if (!tell_next(all) && !granted)
            return false;
    }
    return !list_empty(&all->ready) || !list_empty(&all->requesting);
}

static void add_requests(struct notice_socket *socket, const struct socket_packet *event)
{
    if (!notice_requests_add(&socket->requests, event))
        ws_close(socket->ws, CLOSE_OVERLOAD, "too many requested runs");
    if (notice_requests_are_empty(&socket->requests) || !list_empty(&socket->requesting))
        return;
    list_append(&socket->all->requesting, &socket->requesting);
    loop_wake(loop_of(socket->all), &socket->all->flusher);
}

static void unsubscribe_all(struct notice_socket *socket)
{
    size_t at = 0;
    for (struct run_watch *watch; (watch = table_next(&socket->watches, &at));)
        watch_free(watch);
}

/* ---- deadlines ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return b && (!a || b < a) ? b : a;
}

static void set_timer(struct notice_socket *socket)
{
    struct loop *loop = loop_of(socket->all);
    int64_t now = loop_now_ms(loop), at = socket->ping_at;
    at = sooner(at, socket->connect_by);
    at = sooner(at, socket->pong_by);
    at = sooner(at, socket->leave_at);
    loop_set_timer(loop, &socket->timer, socket->all->kind, at > now ? at - now : 0);
}

/* A client without a credential is closed without a wait. */
static void leave(struct notice_socket *socket)
{
    static const char reason[] = "the gateway is shutting down";
    if (socket->identity)
        ws_close(socket->ws, CLOSE_DRAIN, reason);
    else
        ws_cut(socket->ws, CLOSE_DRAIN, reason);
}

static void on_time(struct timer *timer)
{
    struct notice_socket *socket = container_of(timer, struct notice_socket, timer);
    int64_t now = loop_now_ms(loop_of(socket->all));
    if (ws_closing(socket->ws))
        return; /* on_closed will follow */
    if (socket->connect_by && now >= socket->connect_by) {
        ws_close(socket->ws, CLOSE_BAD_MESSAGE, "no namespace was entered within 10 s");
        return;
    }
    if (socket->pong_by && now >= socket->pong_by && ws_reads_still(socket->ws))
        socket->pong_by = now + PROTOCOL_STALL_MS; /* it has not read the ping yet */
    if (socket->pong_by && now >= socket->pong_by) {
        ws_close(socket->ws, CLOSE_TOO_FAR_BEHIND, "a ping was not answered");
        return;
    }
    if (socket->leave_at && now >= socket->leave_at) {
        leave(socket);
        return;
    }
    if (now >= socket->ping_at) {
        struct buf text = { 0 };
        buf_add_char(&text, '2');
        send(socket, &text);
        ws_ping(socket->ws);
        if (!socket->pong_by)
            socket->pong_by = now + PROTOCOL_STALL_MS;
        socket->ping_at = now + PING_MS;
    }
    set_timer(socket);
}

/* ---- in ---- */

static void notice_socket_refuse(struct notice_socket *socket, struct slice space,
                                 const char *text)
{
    struct buf out = { 0 };
    if (space.len > SPACE_MAX)
        space = (struct slice){ 0 };
    socket_packet_add_refused(&out, space, text);
    send(socket, &out);
    ws_close(socket->ws, CLOSE_FORBIDDEN, text);
}

static void enter(struct notice_socket *socket, struct slice space)
{
    struct buf out = { 0 };
    const char *known = NULL;
    if (socket->space)
        return;                        /* once is enough */
    if (api_doubt(socket->all->api)) { /* like a new socket */
        ws_close(socket->ws, CLOSE_INTERNAL,
                 "the gateway cannot confirm that its data is current; try again later");
        return;
    }
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (slice_is(space, spaces[i]))
            known = spaces[i];
    if (!known || !socket->identity) {
        notice_socket_refuse(socket, space,
                             known ? socket->refusal.text : "Invalid namespace");
        return;
    }
    socket->space = known;
    socket->connect_by = 0;
    if (socket->env && known == spaces[0])
        dev_sessions_connect(socket->env, SESSION_SOCKET);
    socket_packet_add_granted(&out, known);
    send(socket, &out);
    set_timer(socket);
}

static void on_packet(struct notice_socket *socket, const struct socket_packet *packet)
{
    bool inside = socket->space && slice_is(packet->space, socket->space);
    struct buf out = { 0 };
    switch (packet->kind) {
    case SOCKET_CONNECT: enter(socket, packet->space); break;
    case SOCKET_CLOSE: ws_close(socket->ws, 1000, ""); break;
    case SOCKET_PONG: socket->pong_by = 0; break;
    case SOCKET_PING:
        socket_packet_add_pong(&out, packet->data);
        send(socket, &out);
        break;
    case SOCKET_DISCONNECT:
        if (inside)
            ws_close(socket->ws, 1000, "");
        break;
    case SOCKET_EVENT:
        if (inside)
            add_requests(socket, packet);
        break;
    case SOCKET_OPEN:
    case SOCKET_REFUSED:
    case SOCKET_IGNORED: break;
    }
}

static void on_message(struct ws *ws, struct slice text)
{
    struct socket_packet packet;
    if (ws_closing(ws))
        return;
    if (socket_packet_read(text, &packet) || socket_packet_is_servers(&packet))
        ws_close(ws, CLOSE_BAD_MESSAGE, "not a packet of Engine.IO 4 and Socket.IO 5");
    else
        on_packet(ws_owner(ws), &packet);
}

static void on_drained(struct ws *ws)
{
    struct notice_socket *socket = ws_owner(ws);
    if (list_empty(&socket->held))
        return;
    list_move_all(&socket->all->ready, &socket->held);
    loop_wake(loop_of(socket->all), &socket->all->flusher);
}

static void socket_destroy(struct notice_socket *socket)
{
    timers_clear(loop_timers(loop_of(socket->all)), &socket->timer);
    if (socket->env && socket->space == spaces[0])
        dev_sessions_disconnect(socket->env, SESSION_SOCKET);
    unsubscribe_all(socket);
    notice_requests_finish(&socket->requests);
    list_remove(&socket->requesting);
    table_finish(&socket->watches);
    identity_unref(socket->identity);
    connection_limit_leave(&socket->seat);
    list_remove(&socket->link);
    socket->all->count--;
    metric_add(M_NOTICE_SOCKETS, -1);
    free(socket);
}

static void on_closed(struct ws *ws)
{
    socket_destroy(ws_owner(ws));
}

static const struct ws_ops ops = { .on_message = on_message,
                                   .on_drained = on_drained,
                                   .on_closed = on_closed };

/* ---- the upgrade ---- */

/* Returns the environment that counts the connection; NULL: none. It is the key's, or the
 * first one that the worker's token serves, without branches: a branch may be archived
 * while the worker keeps running. */
static struct environment *home_of(const struct api_call *call,
                                   const struct identity *identity)
{
    struct account *account = identity->account;
    if (!account && (account = served_next(call->api, identity, NULL)))
        account = account_of_keys(account);
    return account ? served_runs(call->api, account) : NULL;
}

/* Identifies the caller by a secret key or a worker's token, and takes a seat for it. The
 * socket owns both. A refusal leaves neither. */
static enum err identify_caller(struct api_call *call, struct seat *seat,
                                struct identity **identity, struct failure *why)
{
    struct slice header = http_header(call->x, "authorization");
    struct slice branch = http_header(call->x, "x-trigger-branch");
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    struct identity *found = NULL;
    enum err refused =
        auth_identify(api_auth(call->api), header, call->x->peer, now, &found, why);

    if (!refused && found->kind != CREDENTIAL_SECRET_KEY &&
        found->kind != CREDENTIAL_WORKER_TOKEN)
        refused = explain(why, ERR_UNAUTHORIZED, "Invalid API key");
    if (!refused)
        refused = api_choose_branch(call->api, branch, &found, why);
    struct environment *home = refused ? NULL : home_of(call, found);
    if (home)
        refused = connection_limit_take(seat, call->api, home, why);
    if (refused)
        identity_unref(found);
    else
        *identity = found;
    return refused;
}

/* Identifies the client. A refusal is sent later, in the namespace, where the client looks
 * for it. */
static void identify(struct api_call *call, struct notice_socket *socket)
{
    struct identity *identity;
    if (identify_caller(call, &socket->seat, &identity, &socket->refusal))
        return;
    socket->identity = identity;
    http_trust(call->x);
    if (identity->account)
        socket->env = served_runs(call->api, identity->account);
}

static struct notice_socket *socket_create(struct api_call *call)
{
    struct notice_socket *socket = mem_new(struct notice_socket);
    struct run_notifications *all = api_run_notifications(call->api);
    int64_t now = loop_now_ms(loop_of(all));
    socket->all = all;
    table_init(&socket->watches, watch_key);
    list_init(&socket->held);
    list_init(&socket->requesting);
    socket->connect_by = now + CONNECT_MS;
    socket->ping_at = now + PING_MS;
    list_append(&all->sockets, &socket->link);
    all->count++;
    metric_add(M_NOTICE_SOCKETS, 1);
    identify(call, socket);
    return socket;
}

void run_notifications_accept(struct api_call *call)
{
    struct exchange *x = call->x;
    struct notice_socket *socket = socket_create(call);
    api_call_end(call);
    socket->ws = ws_accept(x, NULL, &ops, socket);
    if (!socket->ws) {
        socket_destroy(socket);
        return; /* refused by the handshake, which has replied */
    }
    send_open(socket);
    set_timer(socket);
}

/* ---- all sockets ---- */

struct run_notifications *run_notifications_create(struct api *api)
{
    struct run_notifications *all = mem_new(struct run_notifications);
    struct loop *loop = engine_loop(api_engine(api));
    all->api = api;
    table_init(&all->runs, watched_key);
    list_init(&all->sockets);
    list_init(&all->ready);
    list_init(&all->requesting);
    all->flusher = (struct flusher){ .fn = flush };
    loop_add_flusher(loop, &all->flusher);
    all->kind = timers_kind(loop_timers(loop), on_time);
    engine_on_notice(api_engine(api), on_notice, all);
    return all;
}

void run_notifications_destroy(struct run_notifications *all)
{
    if (!all)
        return;
    engine_on_notice(api_engine(all->api), NULL, NULL);
    loop_remove_flusher(&all->flusher);
    table_finish(&all->runs);
    free(all);
}

void run_notifications_drain(struct run_notifications *all, int64_t most_ms)
{
    int64_t count = (int64_t)all->count, now = loop_now_ms(loop_of(all)), i = 0;
    int64_t spread = count * LEAVE_EVERY_MS < most_ms ? count * LEAVE_EVERY_MS : most_ms;
    list_each (link, &all->sockets) {
        struct notice_socket *socket = container_of(link, struct notice_socket, link);
        int64_t in = spread * ++i / (count + 1);
        socket->leave_at = socket->identity ? now + in : now;
        set_timer(socket);
    }
}

void run_notifications_move(struct run_notifications *all)
{
    list_each (link, &all->sockets)
        ws_close(container_of(link, struct notice_socket, link)->ws, CLOSE_MOVED,
                 "another gateway leads now: reconnect");
}

bool run_notifications_end(struct run_notifications *all, int64_t now_ms, size_t at_most)
{
    size_t count = 0;
    list_each (link, &all->sockets) {
        struct notice_socket *socket = container_of(link, struct notice_socket, link);
        if (!socket->identity || ws_closing(socket->ws) ||
            !identity_has_ended(socket->identity, now_ms))
            continue;
        if (count++ == at_most)
            return false;
        identity_log_end(socket->identity, "notice socket", now_ms);
        ws_close(socket->ws, CLOSE_BAD_TOKEN, identity_ended_reason);
    }
    return true;
}

size_t run_notifications_count(const struct run_notifications *all)
{
    return all->count;
}
