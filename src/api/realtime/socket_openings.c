/* socket_openings.c - begins subscriptions and live lists of a WebSocket client.
 *
 *   sub ─► limits, scope ─► (the run, when the scope is not for its id) ─► (the floor that
 *          a limit means) ─► ok ─► the feed catches up
 *
 * A request that needs the store becomes an opening, which ends with the socket at the
 * latest. So does a sub or a watch that arrives while memory may be out of date, or at a
 * gateway that follows (core/live/certainty.h): it begins when memory is confirmed, or is
 * refused after CERTAIN_MS. A position that it names was applied by the leader before, so
 * one above the confirmed memory is of another history. */
#include "api/realtime/socket.h"
#include "api/realtime/sockets.h"
#include "api/realtime/subscribing.h"
#include "api/realtime/watching.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "runcast/protocol.h"

enum {
    FLOOR_PAGE = 500,
    CERTAIN_MS = 5000, /* maximum wait of a sub or a watch until memory is certain */
};

/* ---- openings ---- */

struct opening {
    struct socket *socket; /* NULL: it was dropped */
    struct wire_message message;
    struct query *watched; /* query of a watch; NULL: it is a subscription */
    struct run_read read;
    struct store_list list;
    struct query *listed; /* query of the list; or NULL */
    int64_t left;         /* runs until the limit is reached */
    int64_t floor;
    struct certainty_waiter certain; /* linked while it waits; no read is in flight then */
    struct timer timer;              /* for that wait */
    struct opening *next;            // socket::openings
};

static void on_certain(struct certainty_waiter *waiter);

/* Takes ownership of the message. */
static struct opening *opening_create(struct socket *socket, struct wire_message *sub)
{
    struct opening *opening = mem_new(struct opening);
    opening->socket = socket;
    opening->message = *sub;
    *sub = (struct wire_message){ 0 };
    certainty_waiter_init(&opening->certain, on_certain);
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
    certainty_forget(&opening->certain);
    query_unref(opening->watched);
    wire_message_finish(&opening->message);
    query_unref(opening->listed);
    free(opening);
}

static struct timers *timers_of(const struct socket *socket)
{
    return loop_timers(engine_loop(api_engine(socket->api)));
}

/* Drops an opening. If a read is in flight, the end of the read frees it. */
static void opening_drop(struct opening *opening)
{
    struct opening **at = &opening->socket->openings;
    bool waits = !list_empty(&opening->certain.link);
    while (*at != opening)
        at = &(*at)->next;
    *at = opening->next;
    timers_clear(timers_of(opening->socket), &opening->timer);
    opening->socket = NULL;
    if (waits)
        opening_destroy(opening);
}

void socket_forget_openings(struct socket *socket)
{
    while (socket->openings)
        opening_drop(socket->openings);
}

static struct opening *find_opening(const struct socket *socket, int64_t id)
{
    struct opening *one = socket->openings;
    while (one && one->message.id != id)
        one = one->next;
    return one;
}

static void set_timer(struct opening *opening)
{
    struct socket *socket = opening->socket;
    loop_set_timer(socket->feed.env->loop, &opening->timer,
                   api_sockets(socket->api)->opening_kind, CERTAIN_MS);
}

/* While memory may be out of date, makes the opening wait and returns true: it begins again
 * later, or is refused. */
static bool waits(struct opening *opening)
{
    struct environment *env = opening->socket->feed.env;
    if (environment_is_certain(env))
        return false;
    certainty_wait(env->certainty, &opening->certain);
    set_timer(opening);
    return true;
}

/* The same for an opening that begins. It also waits while memory may lack the leader's
 * newest changes. */
static bool waits_to_begin(struct opening *opening)
{
    struct environment *env = opening->socket->feed.env;
    if (environment_may_serve(env))
        return false;
    certainty_confirm(env->certainty, &opening->certain, &env->reaches);
    set_timer(opening);
    return true;
}

void socket_opening_is_late(struct timer *timer)
{
    struct opening *opening = container_of(timer, struct opening, timer);
    socket_refuse(opening->socket, opening->message.id, "limit",
                  "the gateway cannot confirm that its data is current; try again later");
    opening_destroy(opening);
}

/* ---- sub ---- */

/* Opens a watch with the id of the message. Takes ownership of the caller's reference to
 * the query. If too many queries are watched, refuses it with refused_id and returns
 * false. */
static bool watch_or_refuse(struct socket *socket, const struct wire_message *message,
                            struct query *query, uint32_t limit, int64_t refused_id)
{
    struct query_cost cost = query_cost(query);
    struct failure why = { 0 };
    if (watch_open(&socket->feed, message->id, query, limit, message->counts))
        return true;
    watching_explain_limit(cost, &why);
    socket_refuse(socket, refused_id, "limit", why.text);
    return false;
}

static void subscribe(struct socket *socket, struct wire_message *sub, int64_t floor)
{
    struct environment *env = socket->feed.env;
    struct buf message = { 0 };
    bool resumed = subscribing_may_resume(env, sub);
    uint64_t seq = resumed ? sub->from_seq : 0, base = resumed ? sub->from_base : 0;

    if (floor > sub->filter.created_from)
        sub->filter.created_from = floor;
    if (!resumed)
        metric_add(M_SNAPSHOTS, 1);
    wire_ok(socket->encoding, sub->id, resumed, feed_count(env, &sub->filter, seq), floor,
            sub->ignored, &message);
    socket_answer(socket, &message);
    struct query *counted = sub->counts ? filter_to_query(&sub->filter) : NULL;
    feed_subscribe(&socket->feed, sub->id, &sub->filter, seq, base);
    if (counted)
        watch_or_refuse(socket, sub, counted, 0, -1);
}

static void on_floor_page(struct store_read *read, enum store_status status);

static void list_floor(struct opening *opening)
{
    struct environment *env = opening->socket->feed.env;
    opening->list.read = (struct store_read){ READ_LIST, env->number, on_floor_page };
    opening->list.limit =
        (unsigned)(opening->left < FLOOR_PAGE ? opening->left : FLOOR_PAGE);
    env->store->ops->read(env->store, &opening->list.read);
}

/* Begins to list the newest `limit` runs by creation: the filter's floor is the time of the
 * last one. */
static void begin_floor(struct opening *opening)
{
    query_unref(opening->listed);
    opening->listed = filter_to_query(&opening->message.filter);
    opening->list = (struct store_list){ .filter = opening->listed->filter };
    opening->left = opening->message.limit;
    list_floor(opening);
}

static void forbid(struct socket *socket, int64_t id)
{
    socket_refuse(socket, id, "forbidden",
                  "the token's scopes do not allow this subscription");
}

static void on_floor_page(struct store_read *read, enum store_status status)
{
    struct opening *opening = container_of(read, struct opening, list.read);
    struct store_list *list = &opening->list;
    struct socket *socket = opening->socket;
    size_t count = list->count;

    if (count) {
        opening->floor = list->runs[count - 1].created_at;
        snprintf(list->after, sizeof(list->after), "%s", list->runs[count - 1].id);
    }
    store_read_finish(read);
    opening->left -= (int64_t)count;
    if (socket && !status && list->more && opening->left > 0) {
        list_floor(opening);
        return;
    }
    if (socket && waits(opening))
        return;
    if (socket && status)
        socket_refuse(
            socket, opening->message.id, "limit",
            "the store could not find where the limit begins; try again, or use since");
    else if (socket && !api_identity_may_follow(socket->identity, &opening->message.filter))
        /* The token that `auth` has set meanwhile does not allow it. */
        forbid(socket, opening->message.id);
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
    if (socket && waits(opening))
        return;
    if (socket && !status && api_identity_may_run(socket->identity, "read", read->run)) {
        go_on(opening);
        return;
    }
    if (socket)
        /* The same text as for runs that do not exist. */
        forbid(socket, opening->message.id);
    opening_destroy(opening);
}

/* How much a connection uses, including subscriptions that have not begun yet. */
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
        use.filter_bytes +=
            one->watched ? query_size(one->watched) : filter_size(&sub->filter);
        use.watches += one->watched || sub->counts;
        use.subscriptions += !one->watched;
    }
    return use;
}

/* Returns which limit a connection with this use exceeds; NULL: none. */
static const char *over_limit(const struct socket *socket, const struct socket_use *use)
{
    if (use->subscriptions > (size_t)api_options(socket->api)->subscriptions_max)
        return "too many subscriptions on this connection";
    if (use->watches > PROTOCOL_WATCHES)
        return "too many watches, and subscriptions with counts, on this connection; send "
               "unsub for some, or open another connection";
    if (use->filter_bytes > PROTOCOL_FILTER_BYTES)
        return "the tags and tasks of this connection's subscriptions take more than 256 "
               "KiB; send unsub for some, or open another connection";
    return NULL;
}

static bool is_taken(struct socket *socket, int64_t id)
{
    return feed_find(&socket->feed, id) || watch_find(&socket->feed, id) ||
           find_opening(socket, id);
}

static void begin_sub(struct opening *opening)
{
    struct socket *socket = opening->socket;
    const struct filter *filter = &opening->message.filter;
    if (api_identity_may_follow(socket->identity, filter)) {
        go_on(opening);
    } else if (filter->kind == TOPIC_RUN) {
        run_read_begin(socket->feed.env, bytes_slice(filter->name), &opening->read,
                       on_run_read);
    } else { /* forbidden by a token that `auth` has set meanwhile */
        forbid(socket, opening->message.id);
        opening_destroy(opening);
    }
}

void socket_sub(struct socket *socket, struct wire_message *sub)
{
    bool allowed = api_identity_may_follow(socket->identity, &sub->filter);
    struct socket_use use = use_of(socket);
    use.subscriptions++;
    use.watches += sub->counts;
    use.filter_bytes += filter_size(&sub->filter);
    const char *limit = over_limit(socket, &use);
    if (limit) {
        socket_refuse(socket, sub->id, "limit", limit);
        return;
    }
    if (is_taken(socket, sub->id)) {
        socket_refuse(socket, sub->id, "duplicate_id",
                      "a subscription with this id exists");
        return;
    }
    if (!allowed && sub->filter.kind != TOPIC_RUN) {
        forbid(socket, sub->id);
        return;
    }
    struct opening *opening = opening_create(socket, sub);
    if (!waits_to_begin(opening))
        begin_sub(opening);
}

/* ---- watch ---- */

/* Takes ownership of the caller's reference to the query. */
static void start_watch(struct socket *socket, const struct wire_message *watch,
                        struct query *query)
{
    struct buf message = { 0 };
    if (!watch_or_refuse(socket, watch, query, (uint32_t)watch->limit, watch->id))
        return;
    metric_add(M_SNAPSHOTS, 1);
    wire_ok(socket->encoding, watch->id, false, -1, 0, watch->ignored, &message);
    socket_answer(socket, &message);
}

static void begin_watch(struct opening *opening)
{
    struct query *query = opening->watched;
    struct socket *socket = opening->socket;
    bool allowed =
        !opening->message.limit || api_identity_may_list(socket->identity, &query->filter);
    opening->watched = NULL;
    if (allowed) {
        start_watch(socket, &opening->message, query);
    } else {
        query_unref(query);
        forbid(socket, opening->message.id);
    }
    opening_destroy(opening);
}

static void on_certain(struct certainty_waiter *waiter)
{
    struct opening *opening = container_of(waiter, struct opening, certain);
    timers_clear(timers_of(opening->socket), &opening->timer);
    if (waits(opening))
        return;
    if (opening->watched)
        begin_watch(opening);
    else
        begin_sub(opening);
}

static void open_watch(struct socket *socket, struct wire_message *watch,
                       struct query *query)
{
    struct socket_use use = use_of(socket);
    use.watches++;
    use.filter_bytes += query_size(query);
    const char *limit = over_limit(socket, &use);
    if (limit) {
        query_unref(query);
        socket_refuse(socket, watch->id, "limit", limit);
        return;
    }
    if (environment_may_serve(socket->feed.env)) {
        start_watch(socket, watch, query);
        return;
    }
    struct opening *opening = opening_create(socket, watch);
    opening->watched = query;
    waits_to_begin(opening);
}

void socket_watch(struct socket *socket, struct wire_message *watch)
{
    struct failure why = { 0 };
    struct query *query;
    int64_t now = loop_wall_ms(engine_loop(api_engine(socket->api)));
    if (is_taken(socket, watch->id)) {
        socket_refuse(socket, watch->id, "duplicate_id",
                      "a subscription with this id exists");
        return;
    }
    enum err refused = watching_read(socket->identity, watch, socket->feed.view->vocabulary,
                                     now, &query, &why);
    if (refused)
        socket_refuse(socket, watch->id,
                      refused == ERR_FORBIDDEN ? "forbidden" : "bad_member", why.text);
    else
        open_watch(socket, watch, query);
}

bool socket_drop_opening(struct socket *socket, int64_t id)
{
    struct opening *opening = find_opening(socket, id);
    if (opening)
        opening_drop(opening);
    return opening;
}
