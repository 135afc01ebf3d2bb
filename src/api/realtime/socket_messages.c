/* socket_messages.c - messages of a runs.v1 client: hello, unsub, auth, and where the others go.
 *
 *   sub, watch ──► socket_openings.c
 *
 * Every refusal is an error message with a code and a sentence. */
#include "api/realtime/socket.h"
#include "api/realtime/sockets.h"
#include "api/realtime/subscribing.h"
#include "api/realtime/watching.h"
#include "api/request/request_log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "runcast/protocol.h"

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

/* What nobody reads of the upgrade and of hello, to be told; the caller's reference. */
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

static void welcome(struct socket *socket, const struct wire_message *hello)
{
    const struct api_options *options = api_options(socket->api);
    struct environment *env = environment_of(socket);
    const struct wire_limits limits = { .subscriptions = options->subscriptions_max,
                                        .tags = PROTOCOL_TAGS,
                                        .message_bytes = PROTOCOL_MESSAGE_BYTES,
                                        .messages_per_s = PROTOCOL_MESSAGES_PER_S,
                                        .burst = PROTOCOL_BURST,
                                        .watches = PROTOCOL_WATCHES,
                                        .watch_limit = PROTOCOL_WATCH_LIMIT };
    struct buf message = { 0 };
    struct view wish = subscribing_view(socket->identity, hello);

    wish.encoding = socket->encoding;
    wish.wrap = ws_frame_rope;
    struct view *view = environment_view(env, &wish);
    if (!view) {
        ws_close(socket->ws, CLOSE_LIMIT, "too many different views: ask for other fields");
        return;
    }
    feed_init(&socket->feed, &socket_feed_ops, env, view);
    ws_count_in(socket->ws, env->answers);
    feed_set_pace(&socket->feed, hello ? hello->every_ms : 0);
    socket->welcomed = true;
    socket->hello_due = false;
    socket_set_expiry(socket);
    struct tag_list *ignored = take_ignored(socket, hello);
    wire_welcome(view, env->store->epoch, env->applied, slice_of(env->id),
                 socket->identity->expires_at, &limits, ignored, &message);
    tag_list_unref(ignored);
    socket_answer(socket, &message);
    if (env->floor) {
        wire_floor(socket->encoding, env->floor, &message);
        socket_send(socket, &message);
    }
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
        refused =
            explain(why, ERR_UNAUTHORIZED, "A personal access token names no environment");
    if (refused)
        identity_unref(*identity);
    return refused;
}

static void on_hello(struct socket *socket, const struct wire_message *hello)
{
    struct failure why = { 0 };
    struct identity *identity;

    if (socket->welcomed) {
        socket_refuse(socket, -1, "bad_message", "hello comes once, as the first message");
        return;
    }
    if (hello->token) {
        if (identify(socket, hello->token, &identity, &why)) {
            refuse_token(socket, why.text);
            return;
        }
        identity_unref(socket->identity);
        socket->identity = identity;
        ws_trust(socket->ws);
    }
    if (!socket->identity) {
        refuse_token(socket, "hello must bring a token");
        return;
    }
    if (connection_limit_take(&socket->seat, socket->api, environment_of(socket), &why)) {
        ws_close(socket->ws, CLOSE_OVERLOAD, why.text);
        return;
    }
    welcome(socket, hello);
}

/* ---- unsub, auth ---- */

static void end(struct socket *socket, int64_t id, const char *code,
                const struct tag_list *ignored)
{
    struct buf message = { 0 };
    wire_end(socket->encoding, id, code, ignored, &message);
    socket_answer(socket, &message);
}

/* Ends the subscription of this id, its counts, or the watch. False: there is none. */
static bool leave(struct socket *socket, int64_t id)
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
    if (!leave(socket, unsub->id)) {
        socket_refuse(socket, unsub->id, "unknown_id", "no subscription has this id");
        return;
    }
    end(socket, unsub->id, NULL, unsub->ignored);
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
        leave(socket, id);
        end(socket, id, "forbidden", NULL);
    }
}

static void end_forbidden_watches(struct socket *socket)
{
    if (!socket->feed.aside)
        return;
    list_each (link, &socket->feed.aside->watches) {
        struct watch *watch = container_of(link, struct watch, link);
        int64_t id = watch->id;
        if (!watch->limit ||
            api_identity_may_list(socket->identity, &watch->window->filter->run))
            continue;
        watch_close(watch);
        end(socket, id, "forbidden", NULL);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Tells what of a message nobody reads. An auth that was taken has no answer of
 * its own. */
static void tell_ignored(struct socket *socket, const struct tag_list *names)
{
    struct buf text = { 0 };
    buf_add_text(&text, "auth: the token is in use; nobody reads its");
    for (uint32_t i = 0; i < names->count; i++)
        buf_print(&text, "%s %.*s", i ? "," : "", SLICE_ARG(bytes_slice(names->names[i])));
    buf_add_char(&text, '\0');
    socket_refuse(socket, -1, "ignored", text.ptr);
    buf_finish(&text);
}

static void on_auth(struct socket *socket, const struct wire_message *auth)
{
    struct failure why = { 0 };
    struct identity *identity;

    if (!auth->token || identify(socket, auth->token, &identity, &why)) {
        socket_refuse(socket, -1, "bad_token",
                      why.text[0] ? why.text : "auth must bring a token");
        return;
    }
    if (identity->account != socket->identity->account ||
        !same_text(identity->subject, socket->identity->subject) ||
        subscribing_view(identity, NULL).skipped != socket->feed.view->skipped) {
        identity_unref(identity);
        socket_refuse(
            socket, -1, "bad_token",
            "the token must be of the same subject and environment, with the same "
            "skipColumns");
        return;
    }
    identity_unref(socket->identity);
    socket->identity = identity;
    socket_set_expiry(socket);
    end_forbidden(socket, &socket->feed.live);
    end_forbidden(socket, &socket->feed.catching);
    end_forbidden_watches(socket);
    if (auth->ignored)
        tell_ignored(socket, auth->ignored);
}

/* ---- any message ---- */

static void dispatch(struct socket *socket, struct wire_message *message)
{
    if (!socket->welcomed && api_doubt(socket->api)) { /* as a new socket is refused */
        ws_close(socket->ws, CLOSE_INTERNAL,
                 "the gateway cannot confirm that its data is current: try again later");
        return;
    }
    if (message->op == WIRE_HELLO) {
        on_hello(socket, message);
        return;
    }
    if (!socket->welcomed && !socket->identity) {
        refuse_token(socket, "the first message must be hello with a token");
        return;
    }
    if (!socket->welcomed)
        welcome(socket, NULL);
    if (ws_closing(socket->ws))
        return;
    switch (message->op) {
    case WIRE_SUB: socket_sub(socket, message); break;
    case WIRE_WATCH: socket_watch(socket, message); break;
    case WIRE_UNSUB: on_unsub(socket, message); break;
    case WIRE_AUTH: on_auth(socket, message); break;
    case WIRE_HELLO: break;
    }
}

void socket_message(struct socket *socket, struct slice text)
{
    int64_t now = loop_wall_ms(engine_loop(api_engine(socket->api)));
    struct wire_message message = { 0 };
    const char *code = "bad_message";
    struct failure why = { 0 };

    if (wire_read(text, now, &message, &code, &why)) {
        socket_refuse(socket, message.has_id ? message.id : -1, code, why.text);
        if (!strcmp(code, "bad_message"))
            ws_close(socket->ws, CLOSE_BAD_MESSAGE, "not a JSON object");
    } else {
        dispatch(socket, &message);
    }
    wire_message_finish(&message);
}
