/* socket.c - the WebSocket endpoint: the upgrade, a socket's messages, and its deadlines.
 *
 *   GET /realtime/v1/ws ─► origin, token, subprotocol ─► ws_accept
 *        ─► hello within 10 s unless the upgrade had a token ─► feed ─► … ─► closed
 *
 *   socket.c ─ socket_sub, socket_watch, socket_drop_opening, socket_forget_openings ─┐
 *     ▲                                                                               ▼
 *     └───────── socket_send, socket_answer, socket_refuse ◄───────────── socket_openings.c
 *
 * One socket has two files: this one reads each message, and sends the responses. The other
 * begins subscriptions and live lists. Every refusal of a message is an error message with
 * a code and a sentence.
 *
 * A socket's deadlines (hello, ping, the token's end, a drain) share one timer. It sends
 * through its feed, or in small messages. A client that requests more responses than it
 * reads is disconnected; rows, and messages that the gateway sends by itself, do not count
 * as responses. */
#include "api/realtime/socket.h"

#include "accounts/auth/unknown_credentials.h"
#include "api/realtime/realtime.h"
#include "api/realtime/sockets.h"
#include "api/realtime/subscribing.h"
#include "api/realtime/token_wait.h"
#include "api/realtime/upgrade.h"
#include "api/request/request_log.h"
#include "base/mem.h"
#include "core/live/watch.h"
#include "runcast/protocol.h"

enum {
    UNREAD_MAX = 256 * 1024, /* bytes of responses */
    LEAVE_LATER_MS = 100,    /* after the moment at which a client should have left */
    DRAIN_SPREAD_MS = 5 * 1000,
};

/* ---- out ---- */

void socket_send(struct socket *socket, struct buf *message)
{
    struct bytes *frame =
        ws_frame(buf_slice(message), socket->encoding == ENCODING_MSGPACK);
    ws_send(socket->ws, &frame, 1);
    bytes_unref(frame);
    buf_finish(message);
}

void socket_answer(struct socket *socket, struct buf *message)
{
    size_t len = message->len;
    socket_send(socket, message);
    if (!ws_unsent(socket->ws))
        return;
    socket->unread += (uint32_t)len;
    if (socket->unread > UNREAD_MAX)
        ws_close(socket->ws, CLOSE_OVERLOAD, "too many unread responses");
}

void socket_refuse(struct socket *socket, int64_t id, const char *code, const char *text)
{
    struct buf message = { 0 };
    wire_error(socket->encoding, id, code, text, &message);
    socket_answer(socket, &message);
}

static bool feed_send(struct feed *feed, struct bytes *const *frames, size_t count)
{
    return ws_send(container_of(feed, struct socket, feed)->ws, frames, count);
}

static bool feed_busy(struct feed *feed)
{
    const struct ws *ws = container_of(feed, struct socket, feed)->ws;
    return ws_unsent(ws) > 0 || ws_closing(ws);
}

static void feed_lost(struct feed *feed)
{
    ws_close(container_of(feed, struct socket, feed)->ws, CLOSE_TOO_FAR_BEHIND,
             "too far behind: reconnect with your position");
}

static void feed_begins_again(struct feed *feed);

static void feed_fetch(const struct feed *feed)
{
    ws_fetch(container_of(feed, struct socket, feed)->ws);
}

const struct feed_ops socket_feed_ops = { .send = feed_send,
                                          .busy = feed_busy,
                                          .lost = feed_lost,
                                          .begins_again = feed_begins_again,
                                          .fetch = feed_fetch };

/* ---- deadlines ---- */

static struct sockets *sockets_of(const struct socket *socket)
{
    return api_sockets(socket->api);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return b && (!a || b < a) ? b : a;
}

/* Returns when the client is warned of the end of its token; monotonic ms, maybe in the
 * past. */
static int64_t warning_at(const struct socket *socket)
{
    int64_t at = socket->ends_at - PROTOCOL_EXPIRED_GRACE_MS - PROTOCOL_EXPIRING_MS;
    return at > 0 ? at : 1;
}

static void set_timer(struct socket *socket)
{
    struct loop *loop = engine_loop(api_engine(socket->api));
    int64_t at = socket->ends_at, now = loop_now_ms(loop);
    at = sooner(at, socket->ping_at);
    at = sooner(at, socket->warning_due ? warning_at(socket) : 0);
    at = sooner(at, socket->leaving ? socket->leaving->leave_at : 0);
    at = sooner(at, socket->leaving ? socket->leaving->drain_at : 0);
    at = sooner(at, socket->floor_due ? now : 0);
    at = sooner(at, socket->waiting ? socket->waiting->until : 0);
    loop_set_timer(loop, &socket->timer, sockets_of(socket)->kind, at > now ? at - now : 0);
}

/* Sets the deadlines for the end of the identity's token, and the timer. */
static void set_expiry(struct socket *socket)
{
    struct loop *loop = engine_loop(api_engine(socket->api));
    socket->ends_at = 0;
    socket->warning_due = socket->identity->expires_at;
    if (socket->identity->expires_at) {
        int64_t left = socket->identity->expires_at - loop_wall_ms(loop);
        socket->ends_at = loop_now_ms(loop) + left + PROTOCOL_EXPIRED_GRACE_MS;
    }
    set_timer(socket);
}

static void ping(struct socket *socket, int64_t now)
{
    struct buf message = { 0 };
    socket->ping_at = now + PROTOCOL_PING_MS;
    if (!socket->welcomed || !feed_in_sync(&socket->feed) ||
        socket->pinged_seq == socket->feed.seen || list_empty(&socket->feed.live))
        return;
    socket->pinged_seq = socket->feed.seen;
    wire_ping(socket->encoding, socket->pinged_seq, &message);
    socket_send(socket, &message);
}

static void tell_drain(struct socket *socket, int64_t now)
{
    int64_t in = socket->leaving->return_at - now;
    struct buf message = { 0 };
    socket->leaving->drain_at = 0;
    wire_drain(socket->encoding, in > 0 ? in : 0, &message);
    socket_send(socket, &message);
}

/* A client that has not sent hello is not authenticated, so it is cut off without a
 * wait. */
static void leave(struct socket *socket)
{
    static const char reason[] = "the gateway is shutting down";
    if (socket->identity)
        ws_close(socket->ws, CLOSE_DRAIN, reason);
    else
        ws_cut(socket->ws, CLOSE_DRAIN, reason);
}

static void give_up_token(struct socket *socket);
static void send_floor(struct socket *socket);

static void on_time(struct timer *timer)
{
    struct socket *socket = container_of(timer, struct socket, timer);
    struct loop *loop = engine_loop(api_engine(socket->api));
    int64_t now = loop_now_ms(loop);
    const struct socket_leaving *leaving = socket->leaving;
    struct buf message = { 0 };

    if (socket->waiting && now >= socket->waiting->until) {
        give_up_token(socket);
        return;
    }
    if (socket->hello_due && now >= socket->ends_at) {
        ws_close(socket->ws, CLOSE_BAD_TOKEN, "no token within 10 s; send hello with one");
        return;
    }
    if (leaving && leaving->drain_at && now >= leaving->drain_at)
        tell_drain(socket, now);
    if (leaving && now >= leaving->leave_at) {
        leave(socket);
        return;
    }
    if (socket->ends_at && now >= socket->ends_at) {
        identity_log_end(socket->identity, "WebSocket", loop_wall_ms(loop));
        ws_close(socket->ws, CLOSE_TOKEN_EXPIRED, "the token has expired: fetch a new one");
        return;
    }
    if (socket->warning_due && now >= warning_at(socket)) {
        int64_t left = socket->ends_at - PROTOCOL_EXPIRED_GRACE_MS - now;
        socket->warning_due = false;
        wire_expiring(socket->encoding, left > 0 ? left : 0, &message);
        socket_send(socket, &message);
    }
    if (socket->floor_due) {
        socket->floor_due = false;
        send_floor(socket);
    }
    if (now >= socket->ping_at)
        ping(socket, now);
    set_timer(socket);
}

/* ---- hello ---- */

static struct environment *environment_of(const struct socket *socket)
{
    return engine_environment(api_engine(socket->api), socket->identity->account->number);
}

static size_t add_names(struct slice *names, size_t count, const struct tag_list *list)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        names[count++] = bytes_slice(list->names[i]);
    return count;
}

/* Returns the ignored members of the upgrade and of hello; NULL: none. The caller owns the
 * reference. */
static struct tag_list *take_ignored(struct socket *socket,
                                     const struct wire_message *hello)
{
    struct slice names[IGNORED_NAMES_MAX + WIRE_IGNORED_MAX];
    size_t count = add_names(names, 0, socket->ignored);
    count = add_names(names, count, hello ? hello->ignored : NULL);
    struct tag_list *all = count ? tag_list_create(names, count) : NULL;
    tag_list_unref(socket->ignored);
    socket->ignored = NULL;
    return all;
}

/* Adds the message of that name, with what the client has to know about the gateway. */
static void write_welcome(const struct socket *socket, const struct tag_list *ignored,
                          struct buf *message)
{
    const struct api_options *options = api_options(socket->api);
    const struct environment *env = socket->feed.env;
    const struct wire_limits limits = { .subscriptions = options->subscriptions_max,
                                        .tags = PROTOCOL_TAGS,
                                        .message_bytes = PROTOCOL_MESSAGE_BYTES,
                                        .messages_per_s = PROTOCOL_MESSAGES_PER_S,
                                        .burst = PROTOCOL_BURST,
                                        .watches = PROTOCOL_WATCHES,
                                        .watch_limit = PROTOCOL_WATCH_LIMIT };
    wire_welcome(socket->feed.view, env->store->epoch, env->applied, slice_of(env->id),
                 socket->identity->expires_at, &limits, ignored, message);
}

static void send_floor(struct socket *socket)
{
    const struct environment *env = socket->feed.env;
    struct buf message = { 0 };
    if (!env->floor)
        return;
    wire_floor(socket->encoding, env->floor, &message);
    socket_send(socket, &message);
}

static void welcome(struct socket *socket, const struct wire_message *hello)
{
    struct environment *env = environment_of(socket);
    struct buf message = { 0 };
    struct view wanted = subscribing_view(socket->identity, hello);

    wanted.encoding = socket->encoding;
    wanted.wrap = ws_frame_rope;
    struct view *view = environment_view(env, &wanted);
    if (!view) {
        ws_close(socket->ws, CLOSE_LIMIT, "too many different views; request other fields");
        return;
    }
    feed_init(&socket->feed, &socket_feed_ops, env, view);
    ws_count_in(socket->ws, env->answers);
    feed_set_pace(&socket->feed, hello ? hello->every_ms : 0);
    socket->welcomed = true;
    socket->hello_due = false;
    set_expiry(socket);
    struct tag_list *ignored = take_ignored(socket, hello);
    write_welcome(socket, ignored, &message);
    tag_list_unref(ignored);
    socket_answer(socket, &message);
    send_floor(socket);
}

/* The floor of a filter is also that of the limit with which the client subscribed. */
static void send_snapshot_ok(struct socket *socket, const struct subscription *sub)
{
    struct buf message = { 0 };
    wire_ok(socket->encoding, sub->id, false, feed_count(socket->feed.env, &sub->filter, 0),
            sub->filter.created_from, NULL, &message);
    socket_send(socket, &message);
}

/* Sends what a new connection with the same subscriptions would get. */
static void feed_begins_again(struct feed *feed)
{
    struct socket *socket = container_of(feed, struct socket, feed);
    struct buf message = { 0 };
    write_welcome(socket, NULL, &message);
    socket_send(socket, &message);
    send_floor(socket);
    list_each (link, &feed->catching)
        send_snapshot_ok(socket, container_of(link, struct subscription, link));
}

static void refuse_token(struct socket *socket, const char *reason)
{
    request_log_socket(api_options(socket->api)->request_log, CLOSE_BAD_TOKEN);
    ws_close(socket->ws, CLOSE_BAD_TOKEN, reason);
}

static enum err identify(struct socket *socket, const char *token,
                         struct identity **identity, struct failure *why)
{
    int64_t now = loop_wall_ms(engine_loop(api_engine(socket->api)));
    enum err refused = auth_identify(api_auth(socket->api), slice_of(token),
                                     socket->peer->data, now, identity, why);
    if (refused)
        return refused;
    if ((*identity)->account)
        refused = api_choose_branch(socket->api, slice_of(socket->branch), identity, why);
    else
        refused = explain(why, ERR_UNAUTHORIZED,
                          "A personal access token does not name an environment");
    if (refused)
        identity_unref(*identity);
    return refused;
}

/* Returns true if the token was refused, but the leader may know it. */
static bool may_be_new(const struct socket *socket, const char *token)
{
    struct unknown_credentials *unknown = api_unknown_credentials(socket->api);
    const struct certainty *certainty = engine_certainty(api_engine(socket->api));
    struct slice branch = slice_of(socket->branch);
    int64_t now_ms = loop_now_ms(certainty->loop);
    if (!certainty_asks(certainty))
        return false;
    if (!socket->is_confirmed)
        return !unknown_credentials_have(unknown, slice_of(token), branch, now_ms);
    unknown_credentials_note(unknown, slice_of(token), branch, now_ms);
    return false;
}

/* Returns false if the message has to wait. */
static bool on_hello(struct socket *socket, const struct wire_message *hello)
{
    struct failure why = { 0 };
    struct identity *identity;

    if (socket->welcomed) {
        socket_refuse(socket, -1, "bad_message", "hello comes once, as the first message");
        return true;
    }
    if (hello->token) {
        if (identify(socket, hello->token, &identity, &why)) {
            if (may_be_new(socket, hello->token))
                return false;
            refuse_token(socket, why.text);
            return true;
        }
        identity_unref(socket->identity);
        socket->identity = identity;
        ws_trust(socket->ws);
    }
    if (!socket->identity) {
        refuse_token(socket, "hello must bring a token");
        return true;
    }
    if (connection_limit_take(&socket->seat, socket->api, environment_of(socket), &why))
        ws_close(socket->ws, CLOSE_OVERLOAD, why.text);
    else
        welcome(socket, hello);
    return true;
}

/* ---- unsub, auth ---- */

static void send_end(struct socket *socket, int64_t id, const char *code,
                     const struct tag_list *ignored)
{
    struct buf message = { 0 };
    wire_end(socket->encoding, id, code, ignored, &message);
    socket_answer(socket, &message);
}

/* Ends the subscription of this id, its counts, or the watch. Returns false if none has the
 * id. */
static bool end_by_id(struct socket *socket, int64_t id)
{
    struct subscription *sub = feed_find(&socket->feed, id);
    struct watch *watch = watch_find(&socket->feed, id);
    if (sub)
        feed_unsubscribe(&socket->feed, sub);
    if (watch)
        watch_close(watch);
    return socket_drop_opening(socket, id) || sub || watch;
}

static void on_unsub(struct socket *socket, const struct wire_message *unsub)
{
    if (!end_by_id(socket, unsub->id)) {
        socket_refuse(socket, unsub->id, "unknown_id", "no subscription has this id");
        return;
    }
    send_end(socket, unsub->id, NULL, unsub->ignored);
}

static void end_forbidden(struct socket *socket, struct list *subs)
{
    list_each (link, subs) {
        struct subscription *sub = container_of(link, struct subscription, link);
        int64_t id = sub->id;
        if (api_identity_may_follow(socket->identity, &sub->filter))
            continue;
        struct tracked *run =
            sub->filter.kind == TOPIC_RUN
                ? environment_find(socket->feed.env, bytes_slice(sub->filter.name))
                : NULL;
        if (run && api_identity_may_run(socket->identity, "read", &run->run))
            continue;
        end_by_id(socket, id);
        send_end(socket, id, "forbidden", NULL);
    }
}

static void end_forbidden_watches(struct socket *socket)
{
    if (!socket->feed.extras)
        return;
    list_each (link, &socket->feed.extras->watches) {
        struct watch *watch = container_of(link, struct watch, link);
        int64_t id = watch->id;
        if (!watch->limit ||
            api_identity_may_list(socket->identity, &watch->window->query->filter))
            continue;
        watch_close(watch);
        send_end(socket, id, "forbidden", NULL);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Reports the ignored members of an auth message. An accepted auth has no other
 * response. */
static void tell_ignored(struct socket *socket, const struct tag_list *names)
{
    struct buf text = { 0 };
    buf_add_text(&text, "auth: the token is in use; ignored members:");
    for (uint32_t i = 0; i < names->count; i++)
        buf_print(&text, "%s %.*s", i ? "," : "", SLICE_ARG(bytes_slice(names->names[i])));
    buf_add_char(&text, '\0');
    socket_refuse(socket, -1, "ignored", text.ptr);
    buf_finish(&text);
}

/* Returns false if the message has to wait. */
static bool on_auth(struct socket *socket, const struct wire_message *auth)
{
    struct failure why = { 0 };
    struct identity *identity;

    if (!auth->token || identify(socket, auth->token, &identity, &why)) {
        if (auth->token && may_be_new(socket, auth->token))
            return false;
        socket_refuse(socket, -1, "bad_token",
                      why.text[0] ? why.text : "auth must bring a token");
        return true;
    }
    if (identity->account != socket->identity->account ||
        !same_text(identity->subject, socket->identity->subject) ||
        subscribing_view(identity, NULL).skipped != socket->feed.view->skipped) {
        identity_unref(identity);
        socket_refuse(
            socket, -1, "bad_token",
            "the token must be of the same subject and environment, with the same "
            "skipColumns");
        return true;
    }
    identity_unref(socket->identity);
    socket->identity = identity;
    set_expiry(socket);
    end_forbidden(socket, &socket->feed.live);
    end_forbidden(socket, &socket->feed.catching);
    end_forbidden_watches(socket);
    if (auth->ignored)
        tell_ignored(socket, auth->ignored);
    return true;
}

/* ---- any message ---- */

static const char unconfirmed[] =
    "the gateway cannot confirm that its data is current; try again later";

/* Returns false if the message has to wait, because its token may be new. */
static bool dispatch(struct socket *socket, struct wire_message *message)
{
    if (!socket->welcomed && api_doubt(socket->api)) { /* as for a new socket */
        ws_close(socket->ws, CLOSE_INTERNAL, unconfirmed);
        return true;
    }
    if (message->op == WIRE_HELLO)
        return on_hello(socket, message);
    if (!socket->welcomed && !socket->identity) {
        refuse_token(socket, "the first message must be hello with a token");
        return true;
    }
    if (!socket->welcomed)
        welcome(socket, NULL);
    if (ws_closing(socket->ws))
        return true;
    switch (message->op) {
    case WIRE_SUB: socket_sub(socket, message); break;
    case WIRE_WATCH: socket_watch(socket, message); break;
    case WIRE_UNSUB: on_unsub(socket, message); break;
    case WIRE_AUTH: return on_auth(socket, message);
    case WIRE_HELLO: break;
    }
    return true;
}

static void on_confirmed(struct certainty_waiter *confirming);

static void wait_for_token(struct socket *socket, struct slice text)
{
    struct certainty *certainty = engine_certainty(api_engine(socket->api));
    socket->waiting = token_wait_begin(certainty, text, on_confirmed, socket);
    set_timer(socket);
}

static void take_message(struct socket *socket, struct slice text)
{
    int64_t now = loop_wall_ms(engine_loop(api_engine(socket->api)));
    struct wire_message message = { 0 };
    const char *code = "bad_message";
    struct failure why = { 0 };

    if (wire_read(text, now, &message, &code, &why)) {
        socket_refuse(socket, message.has_id ? message.id : -1, code, why.text);
        if (!strcmp(code, "bad_message"))
            ws_close(socket->ws, CLOSE_BAD_MESSAGE, "not a JSON object");
    } else if (!dispatch(socket, &message)) {
        wait_for_token(socket, text);
    }
    wire_message_finish(&message);
}

/* Takes the messages that have waited, or lets them wait for another token. */
static void take_waiting(struct socket *socket, struct token_waiting *wait)
{
    struct slice text;
    while (!ws_closing(socket->ws) && token_wait_take(wait, &text)) {
        if (socket->waiting)
            token_wait_add(socket->waiting, text);
        else
            take_message(socket, text);
        socket->is_confirmed = false;
    }
    token_wait_end(wait);
}

static void on_confirmed(struct certainty_waiter *confirming)
{
    struct token_waiting *wait = container_of(confirming, struct token_waiting, confirming);
    struct socket *socket = wait->owner;
    socket->waiting = NULL;
    socket->is_confirmed = true;
    take_waiting(socket, wait);
}

/* The token has waited for too long. */
static void give_up_token(struct socket *socket)
{
    struct token_waiting *wait = socket->waiting;
    struct slice text;
    socket->waiting = NULL;
    if (socket->welcomed) {
        token_wait_take(wait, &text);
        socket_refuse(socket, -1, "limit", unconfirmed);
        set_timer(socket);
    } else {
        ws_close(socket->ws, CLOSE_INTERNAL, unconfirmed);
    }
    take_waiting(socket, wait);
}

/* ---- the connection ---- */

static void on_message(struct ws *ws, struct slice message)
{
    struct socket *socket = ws_owner(ws);
    if (!socket->waiting)
        take_message(socket, message);
    else if (!token_wait_add(socket->waiting, message))
        ws_close(ws, CLOSE_OVERLOAD, "too many messages before the token is known");
}

static void on_drained(struct ws *ws)
{
    struct socket *socket = ws_owner(ws);
    socket->unread = 0;
    if (socket->welcomed)
        feed_drained(&socket->feed);
}

static void socket_destroy(struct socket *socket)
{
    struct loop *loop = engine_loop(api_engine(socket->api));
    timers_clear(loop_timers(loop), &socket->timer);
    socket_forget_openings(socket);
    token_wait_end(socket->waiting);
    if (socket->welcomed)
        feed_finish(&socket->feed);
    connection_limit_leave(&socket->seat);
    identity_unref(socket->identity);
    tag_list_unref(socket->ignored);
    free(socket->branch);
    free(socket->leaving);
    bytes_unref(socket->peer);
    list_remove(&socket->link);
    sockets_of(socket)->count--;
    free(socket);
}

static void on_closed(struct ws *ws)
{
    socket_destroy(ws_owner(ws));
}

static const struct ws_ops ops = { .on_message = on_message,
                                   .on_drained = on_drained,
                                   .on_closed = on_closed };

static struct socket *socket_create(struct api_call *call, enum encoding encoding)
{
    struct socket *socket = mem_new(struct socket);
    struct loop *loop = engine_loop(api_engine(call->api));
    socket->api = call->api;
    socket->identity = call->identity ? identity_ref(call->identity) : NULL;
    socket->encoding = encoding;
    struct slice branch = http_header(call->x, "x-trigger-branch");
    socket->branch = branch.len ? mem_text(branch) : NULL;
    socket->peer = bytes_create_shared(slice_of(call->x->peer));
    socket->ignored = subscribing_ignored(call);
    socket->ping_at = loop_now_ms(loop) + PROTOCOL_PING_MS;
    socket->hello_due = !socket->identity;
    if (socket->hello_due)
        socket->ends_at = loop_now_ms(loop) + PROTOCOL_HELLO_MS;
    list_append(&sockets_of(socket)->all, &socket->link);
    sockets_of(socket)->count++;
    return socket;
}

/* ---- the upgrade ---- */

/* Sets when the socket has to leave. Its timer sends the message and closes it, so that no
 * more sockets are handled in a turn than it has time for. */
static void ask_to_leave(struct socket *socket, int64_t return_at, int64_t leave_at)
{
    int64_t now = loop_now_ms(engine_loop(api_engine(socket->api)));
    if (!socket->leaving)
        socket->leaving = mem_new(struct socket_leaving);
    socket->leaving->drain_at = socket->identity ? now : 0;
    socket->leaving->return_at = return_at;
    socket->leaving->leave_at = socket->identity ? leave_at : now;
    set_timer(socket);
}

/* For a socket that was opened while the gateway drains. */
static void leave_with_others(struct socket *socket)
{
    struct sockets *sockets = sockets_of(socket);
    int64_t in = (int64_t)(sockets->late++ * DRAIN_STEP % DRAIN_RETURN_MS);
    ask_to_leave(socket, sockets->leave_at + in, sockets->leave_at);
}

enum err socket_open(struct api_call *call)
{
    struct exchange *x = call->x;
    struct slice origin = http_header(x, "origin");
    const char *protocol;
    enum encoding encoding;
    enum err refused;

    if ((refused = api_check_ready(call)))
        return refused;
    if (origin.ptr && !upgrade_origin_is_allowed(call, origin))
        return explain(&call->why, ERR_FORBIDDEN,
                       "This origin may not open a WebSocket; start the gateway with "
                       "--allow-origin");
    if ((refused = subscribing_identify(call)) ||
        (call->identity && (refused = api_enter(call))))
        return api_confirm_credential(call) ? OK : refused;
    if ((refused = upgrade_choose_protocol(call, &protocol, &encoding)))
        return refused;
    struct seat seat = { 0 };
    if (call->identity &&
        (refused = connection_limit_take(&seat, call->api, call->env, &call->why)))
        return refused;
    struct socket *socket = socket_create(call, encoding);
    socket->seat = seat;
    if (x->wants_upgrade)
        request_log_answer(call, 101);
    api_call_end(call);
    socket->ws = ws_accept(x, protocol, &ops, socket);
    if (!socket->ws) {
        socket_destroy(socket);
        return OK; /* refused and answered by the handshake */
    }
    if (socket->identity)
        set_expiry(socket);
    else
        set_timer(socket);
    if (sockets_of(socket)->leave_at)
        leave_with_others(socket);
    return OK;
}

/* ---- all of them ---- */

struct sockets *sockets_create(struct loop *loop)
{
    struct sockets *sockets = mem_new(struct sockets);
    sockets->loop = loop;
    list_init(&sockets->all);
    sockets->kind = timers_kind(loop_timers(loop), on_time);
    sockets->opening_kind = timers_kind(loop_timers(loop), socket_opening_is_late);
    return sockets;
}

/* Each client gets a different moment to reconnect, so that they do not all arrive at once.
 * One that has not sent hello is closed now. If the next process follows on the same
 * socket, no client can reconnect before this process has exited, so all are closed before
 * the first of them returns. Otherwise they may find another gateway, and have twice the
 * time for that. */
void sockets_drain(struct sockets *sockets, int64_t timeout_ms, bool has_next)
{
    int64_t now = loop_now_ms(sockets->loop), leave_at = now + DRAIN_LINGER_MS;
    int64_t spread = timeout_ms / 3 < DRAIN_SPREAD_MS ? timeout_ms / 3 : DRAIN_SPREAD_MS;
    size_t i = 0, count = sockets->count;
    sockets->leave_at = has_next ? leave_at : 0;
    list_each (link, &sockets->all) {
        struct socket *socket = container_of(link, struct socket, link);
        int64_t part = (int64_t)(++i), parts = (int64_t)(count + 1);
        int64_t in = spread * part / parts;
        if (has_next)
            ask_to_leave(socket, leave_at + DRAIN_RETURN_MS * part / parts, leave_at);
        else
            ask_to_leave(socket, now + in, now + 2 * in + LEAVE_LATER_MS);
    }
}

/* Sets the sockets' timers, which send the message. */
void sockets_send_floor(struct sockets *sockets, const struct environment *env)
{
    list_each (link, &sockets->all) {
        struct socket *socket = container_of(link, struct socket, link);
        if (!socket->welcomed || socket->feed.env != env)
            continue;
        socket->floor_due = true;
        set_timer(socket);
    }
}

void sockets_move(struct sockets *sockets)
{
    list_each (link, &sockets->all) {
        struct socket *socket = container_of(link, struct socket, link);
        ws_close(socket->ws, CLOSE_MOVED, "another gateway leads now: reconnect");
    }
}

size_t sockets_count(const struct sockets *sockets)
{
    return sockets->count;
}
