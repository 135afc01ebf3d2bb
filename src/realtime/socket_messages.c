/* socket_messages.c - what a client of runs.v1 says: hello, sub, watch, unsub, auth.
 *
 *   sub ─► limits, scope ─► (the run, when the scope is not for its id) ─► (the floor that
 *          a limit means) ─► ok ─► the feed catches up
 *
 * What needs the store becomes an opening, which ends with the socket. Every refusal is an
 * error message with a code and a sentence. */
#include "base/mem.h"
#include "base/metrics.h"
#include "call/request_log.h"
#include "realtime/socket.h"
#include "realtime/sockets.h"
#include "realtime/subscribing.h"
#include "realtime/watching.h"
#include "runcast/protocol.h"

enum { FLOOR_PAGE = 500 };

static void refuse(struct socket *socket, int64_t id, const char *code, const char *text)
{
    struct buf message = { 0 };
    wire_error(socket->encoding, id, code, text, &message);
    socket_answer(socket, &message);
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
        refuse(socket, -1, "bad_message", "hello comes once, as the first message");
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

/* ---- sub ---- */

struct opening {
    struct socket *socket; /* NULL: gone */
    struct wire_message message;
    struct run_read read;
    struct store_list list;
    struct slice *names; /* of the list's filter */
    int64_t left;        /* of the limit */
    int64_t floor;
    struct opening *next; // socket::openings
};

/* Takes over the message. */
static struct opening *opening_create(struct socket *socket, struct wire_message *sub)
{
    struct opening *opening = mem_new(struct opening);
    opening->socket = socket;
    opening->message = *sub;
    *sub = (struct wire_message){ 0 };
    opening->next = socket->openings;
    socket->openings = opening;
    return opening;
}

static void opening_destroy(struct opening *opening)
{
    if (opening->socket) {
        struct opening **at = &opening->socket->openings;
        while (*at != opening)
            at = &(*at)->next;
        *at = opening->next;
    }
    wire_message_finish(&opening->message);
    free(opening->names);
    free(opening);
}

void socket_forget_openings(struct socket *socket)
{
    for (struct opening *opening = socket->openings; opening; opening = opening->next)
        opening->socket = NULL;
    socket->openings = NULL;
}

static bool is_opening(const struct socket *socket, int64_t id)
{
    for (const struct opening *one = socket->openings; one; one = one->next)
        if (one->message.id == id)
            return true;
    return false;
}

static const char too_many_filters[] =
    "too many different filters are watched in this environment: try again later, or "
    "narrow the rows of a subscription yourself";

static void subscribe(struct socket *socket, struct wire_message *sub, int64_t floor)
{
    struct environment *env = socket->feed.env;
    struct buf message = { 0 };
    bool resumed = subscribing_may_resume(env, sub);
    uint64_t seq = resumed ? sub->from_seq : 0, base = resumed ? sub->from_base : 0;

    if (floor > filter_narrowing(&sub->filter).created_from)
        filter_set_created_from(&sub->filter, floor);
    if (!resumed)
        metric_add(M_SNAPSHOTS, 1);
    wire_ok(socket->encoding, sub->id, resumed, feed_count(env, &sub->filter, seq), floor,
            sub->ignored, &message);
    socket_answer(socket, &message);
    struct watch_filter *counted = sub->counts ? watching_counts(&sub->filter) : NULL;
    feed_subscribe(&socket->feed, sub->id, &sub->filter, seq, base);
    if (counted && !watch_open(&socket->feed, sub->id, counted, 0, true))
        refuse(socket, -1, "limit", too_many_filters);
}

static void on_floor_page(struct store_list *list, enum store_status status);

static void list_floor(struct opening *opening)
{
    struct environment *env = opening->socket->feed.env;
    opening->list.env = env->number;
    opening->list.limit =
        (unsigned)(opening->left < FLOOR_PAGE ? opening->left : FLOOR_PAGE);
    opening->list.done = on_floor_page;
    env->store->ops->list(env->store, &opening->list);
}

static struct slice *slices_of(struct bytes *const *names, uint32_t count,
                               struct slice *room)
{
    for (uint32_t i = 0; i < count; i++)
        room[i] = bytes_slice(names[i]);
    return room;
}

/* The newest `limit` runs by creation: the filter's floor is where the last one is. */
static void begin_floor(struct opening *opening)
{
    const struct filter *filter = &opening->message.filter;
    struct narrowing narrowing = filter_narrowing(filter);
    struct run_filter *wanted = &opening->list.filter;
    opening->names = mem_new_array(struct slice, filter->tag_count + narrowing.task_count);
    wanted->is_test = -1;
    wanted->created_from = narrowing.created_from;
    wanted->tags = slices_of(filter_tags(filter), filter->tag_count, opening->names);
    wanted->tag_count = filter->tag_count;
    wanted->every_tag = true;
    wanted->tasks = slices_of(narrowing.tasks, narrowing.task_count,
                              opening->names + filter->tag_count);
    wanted->task_count = narrowing.task_count;
    if (filter->kind == TOPIC_BATCH)
        wanted->batch = bytes_slice(filter->name);
    opening->left = opening->message.limit;
    list_floor(opening);
}

static void forbid(struct socket *socket, int64_t id)
{
    refuse(socket, id, "forbidden", "the token's scopes do not allow this subscription");
}

static void on_floor_page(struct store_list *list, enum store_status status)
{
    struct opening *opening = container_of(list, struct opening, list);
    struct socket *socket = opening->socket;
    size_t count = list->count;

    if (count) {
        opening->floor = list->runs[count - 1].created_at;
        snprintf(list->after, sizeof(list->after), "%s", list->runs[count - 1].id);
    }
    for (size_t i = 0; i < count; i++)
        run_finish(&list->runs[i]);
    free(list->runs);
    list->runs = NULL;
    list->count = 0;
    opening->left -= (int64_t)count;
    if (socket && !status && list->more && opening->left > 0) {
        list_floor(opening);
        return;
    }
    if (socket && status)
        refuse(socket, opening->message.id, "limit",
               "the store could not find where the limit begins: try again, or use since");
    else if (socket && !api_identity_may_follow(socket->identity, &opening->message.filter))
        forbid(socket,
               opening->message.id); /* by the token that `auth` brought meanwhile */
    else if (socket)
        subscribe(socket, &opening->message, opening->left > 0 ? 0 : opening->floor);
    opening_destroy(opening);
}

static void go_on(struct opening *opening)
{
    if (opening->message.limit && opening->message.filter.kind != TOPIC_RUN) {
        begin_floor(opening);
        return;
    }
    subscribe(opening->socket, &opening->message, 0);
    opening_destroy(opening);
}

static void on_run_read(struct run_read *read, enum err status)
{
    struct opening *opening = container_of(read, struct opening, read);
    struct socket *socket = opening->socket;
    if (socket && !status && api_identity_may_run(socket->identity, "read", read->run)) {
        go_on(opening);
        return;
    }
    if (socket)
        forbid(socket, opening->message.id); /* the same for runs that do not exist */
    opening_destroy(opening);
}

/* What a connection has, with what waits for the store. */
struct socket_use {
    size_t subscriptions, watches, filter_bytes;
};

static struct socket_use use_of(const struct socket *socket)
{
    struct socket_use use = { .subscriptions = socket->feed.subscriptions,
                              .watches = feed_watch_count(&socket->feed),
                              .filter_bytes = socket->feed.filter_bytes };
    for (const struct opening *one = socket->openings; one; one = one->next) {
        const struct wire_message *sub = &one->message;
        use.filter_bytes += filter_size(&sub->filter);
        use.watches += sub->counts;
        use.subscriptions++;
    }
    return use;
}

/* The first limit that a connection with this one more would exceed; NULL: none. */
static const char *over_limit(const struct socket *socket, const struct socket_use *use)
{
    if (use->subscriptions > (size_t)api_options(socket->api)->subscriptions_max)
        return "too many subscriptions on this connection";
    if (use->watches > PROTOCOL_WATCHES)
        return "too many watches, and subscriptions with counts, on this connection: send "
               "unsub for some, or open another connection";
    if (use->filter_bytes > PROTOCOL_FILTER_BYTES)
        return "the tags and tasks of this connection's subscriptions take more than 256 "
               "KiB: send unsub for some, or open another connection";
    return NULL;
}

static bool is_taken(struct socket *socket, int64_t id)
{
    return feed_find(&socket->feed, id) || watch_find(&socket->feed, id) ||
           is_opening(socket, id);
}

static void on_sub(struct socket *socket, struct wire_message *sub)
{
    bool allowed = api_identity_may_follow(socket->identity, &sub->filter);
    struct socket_use use = use_of(socket);
    use.subscriptions++;
    use.watches += sub->counts;
    use.filter_bytes += filter_size(&sub->filter);
    const char *limit = over_limit(socket, &use);
    if (limit) {
        refuse(socket, sub->id, "limit", limit);
        return;
    }
    if (is_taken(socket, sub->id)) {
        refuse(socket, sub->id, "duplicate_id", "a subscription with this id exists");
        return;
    }
    if (!allowed && sub->filter.kind != TOPIC_RUN) {
        forbid(socket, sub->id);
        return;
    }
    struct opening *opening = opening_create(socket, sub);
    if (allowed)
        go_on(opening);
    else
        run_read_begin(socket->feed.env, bytes_slice(opening->message.filter.name),
                       &opening->read, on_run_read);
}

/* ---- watch ---- */

static void open_watch(struct socket *socket, const struct wire_message *watch,
                       struct watch_filter *filter)
{
    struct socket_use use = use_of(socket);
    struct buf message = { 0 };
    use.watches++;
    use.filter_bytes += filter->size;
    const char *limit = over_limit(socket, &use);
    if (limit) {
        watch_filter_unref(filter);
        refuse(socket, watch->id, "limit", limit);
        return;
    }
    if (!watch_open(&socket->feed, watch->id, filter, (uint32_t)watch->limit,
                    watch->counts)) {
        refuse(socket, watch->id, "limit", too_many_filters);
        return;
    }
    metric_add(M_SNAPSHOTS, 1);
    wire_ok(socket->encoding, watch->id, false, -1, 0, watch->ignored, &message);
    socket_answer(socket, &message);
}

static void on_watch(struct socket *socket, const struct wire_message *watch)
{
    struct failure why = { 0 };
    struct watch_filter *filter;
    int64_t now = loop_wall_ms(engine_loop(api_engine(socket->api)));
    if (is_taken(socket, watch->id)) {
        refuse(socket, watch->id, "duplicate_id", "a subscription with this id exists");
        return;
    }
    enum err refused = watching_filter(socket->identity, watch,
                                       socket->feed.view->vocabulary, now, &filter, &why);
    if (refused)
        refuse(socket, watch->id, refused == ERR_FORBIDDEN ? "forbidden" : "bad_member",
               why.text);
    else
        open_watch(socket, watch, filter);
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
    return sub || watch;
}

static void on_unsub(struct socket *socket, const struct wire_message *unsub)
{
    if (!leave(socket, unsub->id)) {
        refuse(socket, unsub->id, "unknown_id", "no subscription has this id");
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
    refuse(socket, -1, "ignored", text.ptr);
    buf_finish(&text);
}

static void on_auth(struct socket *socket, const struct wire_message *auth)
{
    struct failure why = { 0 };
    struct identity *identity;

    if (!auth->token || identify(socket, auth->token, &identity, &why)) {
        refuse(socket, -1, "bad_token", why.text[0] ? why.text : "auth must bring a token");
        return;
    }
    if (identity->account != socket->identity->account ||
        !same_text(identity->subject, socket->identity->subject) ||
        subscribing_view(identity, NULL).skipped != socket->feed.view->skipped) {
        identity_unref(identity);
        refuse(socket, -1, "bad_token",
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
    case WIRE_SUB: on_sub(socket, message); break;
    case WIRE_WATCH: on_watch(socket, message); break;
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
        refuse(socket, message.has_id ? message.id : -1, code, why.text);
        if (!strcmp(code, "bad_message"))
            ws_close(socket->ws, CLOSE_BAD_MESSAGE, "not a JSON object");
    } else {
        dispatch(socket, &message);
    }
    wire_message_finish(&message);
}
