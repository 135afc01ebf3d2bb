/* events.c - runs.v1 as text/event-stream, for curl -N and EventSource.
 *
 *   GET /realtime/v1/events?tags=a,b ─► token, filter, position ─► feed
 *        event: rows                 one message of runs.v1 on each data line
 *        data: {"op":"patch",…}      shared by all clients with the same view
 *        id: epoch.seq.base          the position, which EventSource sends back
 *
 * A stream is a feed (core/live/feed.h) with one subscription or watch. It is not visited
 * while it has unsent bytes: a slow reader gets the newest states instead of all of
 * them. */
#include "api/realtime/events.h"

#include <inttypes.h>

#include "api/realtime/realtime.h"
#include "api/realtime/sockets.h"
#include "api/realtime/subscribing.h"
#include "api/realtime/watching.h"
#include "api/request/connection_limit.h"
#include "base/json/members.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/feed.h"

enum {
    KEEP_ALIVE_MS = 15 * 1000,
    /* An EventSource reconnects after this time, unless a drain names another. */
    RETRY_MS = 1000,
    SOONEST_MS = 100, /* minimum time before a client reconnects when the gateway drains */
};

struct events {
    struct list all; // event_stream::link
    uint32_t kind;   /* timer kind of the streams */
    uint32_t left;   /* how many were sent a drain; spreads their return */
};

struct event_stream {
    struct feed feed; /* valid once started */
    struct api_call *call;
    struct events *events;
    struct wire_message hello, sub;
    struct query *watched; /* query of a watch, until it is opened */
    struct run_read run;
    struct timer timer;
    struct deferred deferred; /* ends the stream, which cannot be done inside a visit */
    int64_t expires_at;       /* monotonic ms; 0: the token does not expire */
    struct seat seat;
    bool started, ending;
    bool floor_moved; /* send `floor` to the client once nothing is unsent */
    struct list link; // events::all
};

static struct loop *loop_of(const struct event_stream *stream)
{
    return engine_loop(api_engine(stream->call->api));
}

/* ---- out ---- */

static struct bytes *wrap(const struct rope *message, bool binary)
{
    (void)binary;
    return rope_join_line(SLICE("event: rows\ndata: "), message, SLICE("\n"));
}

/* Adds "id: epoch.seq.base", with which a client reconnects, and the end of the event. A
 * watch has no position, and so no id. */
static void add_id(const struct event_stream *stream, struct buf *out)
{
    const struct feed *feed = &stream->feed;
    uint64_t seen = feed->seen, base = feed->base;
    if (!feed->subscriptions) {
        buf_add_char(out, '\n');
        return;
    }
    if (!list_empty(&feed->catching)) {
        const struct subscription *sub =
            container_of(feed->catching.next, struct subscription, link);
        seen = sub->own->seen;
        base = sub->own->base;
    }
    buf_print(out, "id: %s.%" PRIu64 ".%" PRIu64 "\n\n", feed->env->store->epoch, seen,
              base);
}

static bool write_text(struct event_stream *stream, struct buf *text)
{
    bool taken = http_stream_write(stream->call->x, buf_slice(text));
    buf_finish(text);
    return taken;
}

static void end_soon(struct event_stream *stream)
{
    stream->ending = true;
    loop_defer(loop_of(stream), &stream->deferred);
}

/* Writes a message as an event of another kind, without a position. */
static bool write_event(struct event_stream *stream, const char *event, struct buf *message)
{
    struct buf text = { 0 };
    buf_print(&text, "event: %s\ndata: ", event);
    buf_add(&text, buf_slice(message));
    buf_add_text(&text, "\n\n");
    buf_finish(message);
    return write_text(stream, &text);
}

static void send_event(struct event_stream *stream, const char *event, struct buf *message)
{
    if (!write_event(stream, event, message))
        end_soon(stream);
}

static bool stream_busy(struct feed *feed)
{
    struct event_stream *stream = container_of(feed, struct event_stream, feed);
    return stream->ending || http_stream_unsent(stream->call->x) > 0;
}

/* Sends frames; the last one has the position. */
static bool stream_send(struct feed *feed, struct bytes *const *frames, size_t count)
{
    struct event_stream *stream = container_of(feed, struct event_stream, feed);
    struct buf id = { 0 };
    if (stream->ending)
        return false;
    add_id(stream, &id);
    if (!http_stream_write_parts(stream->call->x, frames, count, SLICE("\n"),
                                 buf_slice(&id)))
        end_soon(stream);
    buf_finish(&id);
    return !stream_busy(feed);
}

static void stream_lost(struct feed *feed)
{
    end_soon(container_of(feed, struct event_stream, feed));
}

/* Informs the client that a snapshot follows. The first message of a watch says that itself. */
static void stream_begins_again(struct feed *feed)
{
    struct event_stream *stream = container_of(feed, struct event_stream, feed);
    struct buf message = { 0 };
    if (list_empty(&feed->catching))
        return;
    const struct subscription *sub =
        container_of(feed->catching.next, struct subscription, link);
    wire_ok(ENCODING_JSON, 0, false, feed_count(feed->env, &sub->filter, 0), 0, NULL,
            &message);
    send_event(stream, "ok", &message);
}

static const struct feed_ops feed_ops = { .send = stream_send,
                                          .busy = stream_busy,
                                          .lost = stream_lost,
                                          .begins_again = stream_begins_again };

/* ---- its end ---- */

static void stream_destroy(struct event_stream *stream)
{
    struct api_call *call = stream->call;
    struct exchange *x = call->x;
    bool started = stream->started;

    timers_clear(loop_timers(loop_of(stream)), &stream->timer);
    loop_cancel_deferred(&stream->deferred);
    if (started)
        feed_finish(&stream->feed);
    connection_limit_leave(&stream->seat);
    list_remove(&stream->link);
    wire_message_finish(&stream->hello);
    wire_message_finish(&stream->sub);
    query_unref(stream->watched);
    free(stream);
    if (!started)
        return; /* the caller that refused it replies */
    api_call_end(call);
    http_stream_end(x);
}

static void on_end(struct deferred *deferred)
{
    stream_destroy(container_of(deferred, struct event_stream, deferred));
}

static void on_gone(struct api_call *call)
{
    stream_destroy(call->state);
}

static void send_floor(struct event_stream *stream)
{
    struct buf message = { 0 };
    stream->floor_moved = false;
    wire_floor(ENCODING_JSON, stream->feed.env->floor, &message);
    send_event(stream, "floor", &message);
}

static void on_drained(struct api_call *call)
{
    struct event_stream *stream = call->state;
    if (stream->floor_moved && !stream_busy(&stream->feed))
        send_floor(stream);
    if (!stream->ending)
        feed_drained(&stream->feed);
}

/* Adds a `drain`. Each client is to reconnect at a different moment, and not at once: until
 * it knows that this connection is closed, it would send its request there. */
static void add_drain(struct events *events, struct buf *out)
{
    uint32_t in = events->left++ * DRAIN_STEP % DRAIN_RETURN_MS;
    in = in < SOONEST_MS ? SOONEST_MS : in;
    buf_print(out,
              "retry: %" PRIu32 "\nevent: drain\ndata: {\"op\":\"drain\",\"in\":%" PRIu32
              "}\n\n",
              in, in);
}

/* Ends the stream when the gateway drains or the credential has ended. After a drain,
 * EventSource reconnects by itself, with its position. After the credential has ended,
 * reconnecting is useless. */
static void on_drain(struct api_call *call)
{
    struct event_stream *stream = call->state;
    struct buf text = { 0 };
    if (identity_has_ended(call->identity, loop_wall_ms(loop_of(stream)))) {
        wire_error(ENCODING_JSON, -1, "bad_token", identity_ended_reason, &text);
        write_event(stream, "error", &text);
    } else {
        add_drain(stream->events, &text);
        write_text(stream, &text);
    }
    stream_destroy(stream);
}

/* Answers 200 and a `drain` while the gateway is not ready: EventSource gives up for good
 * on any other status, but reconnects after a stream. Returns false if the call is not from
 * an EventSource or the gateway is ready. */
static bool comes_back(struct api_call *call)
{
    struct buf text = { 0 };
    if (!api_why_refused(call) ||
        !slice_is(http_header(call->x, "accept"), "text/event-stream"))
        return false;
    add_drain(api_events(call->api), &text);
    api_reply_text(call, 200, "text/event-stream", buf_slice(&text));
    buf_finish(&text);
    return true;
}

/* ---- time ---- */

static void set_timer(struct event_stream *stream)
{
    struct loop *loop = loop_of(stream);
    int64_t left = stream->expires_at - loop_now_ms(loop), in = KEEP_ALIVE_MS;
    if (stream->expires_at && left < in)
        in = left > 0 ? left : 0;
    loop_set_timer(loop, &stream->timer, stream->events->kind, in);
}

static void on_time(struct timer *timer)
{
    struct event_stream *stream = container_of(timer, struct event_stream, timer);
    struct buf text = { 0 };
    if (stream->ending)
        return;
    if (stream->expires_at && loop_now_ms(loop_of(stream)) >= stream->expires_at) {
        identity_log_end(stream->call->identity, "event stream",
                         loop_wall_ms(loop_of(stream)));
        wire_error(ENCODING_JSON, -1, "token_expired",
                   "the token has expired: reconnect with a new one", &text);
        send_event(stream, "error", &text);
        end_soon(stream);
        return;
    }
    if (stream->floor_moved && !stream_busy(&stream->feed)) {
        send_floor(stream);
        set_timer(stream);
        return;
    }
    if (stream->feed.subscriptions && feed_in_sync(&stream->feed))
        add_id(stream, &text);
    else
        buf_add_text(&text, ":\n\n");
    if (!stream_busy(&stream->feed) && !write_text(stream, &text))
        end_soon(stream);
    buf_finish(&text);
    set_timer(stream);
}

/* ---- its beginning ---- */

static void add_names(struct buf *out, const char *member, struct slice list)
{
    char separator = '[';
    struct slice one;
    if (!list.ptr)
        return;
    buf_print(out, ",\"%s\":", member);
    while (slice_split(&list, ',', &one)) {
        buf_add_char(out, separator);
        buf_add_json(out, one);
        separator = ',';
    }
    buf_add_char(out, ']');
}

static bool is_yes(struct slice text)
{
    return slice_is(text, "1") || slice_is(text, "true");
}

/* Adds `all` and the like from the query. Any value other than a yes is added as a text,
 * which wire_read then refuses. */
static void add_yes(struct buf *out, const char *member, struct slice text)
{
    if (is_yes(text))
        members_add_bool(out, member, true);
    else
        members_add_text(out, member, text);
}

/* The same for numbers: any other value is added as a text. */
static void add_count(struct buf *out, const char *member, struct slice text)
{
    uint64_t number;
    if (text.ptr && !text_to_u64(text, &number) && number <= INT64_MAX >> 11)
        buf_print(out, ",\"%s\":%" PRIu64, member, number);
    else
        members_add_text(out, member, text);
}

/* Turns "epoch.seq.base" into the array of a subscription's `from`. A foreign id is left
 * out: a snapshot follows. */
static void add_from(struct buf *out, struct slice id)
{
    struct slice epoch, seq;
    uint64_t numbers[2];
    if (!id.len || !slice_split(&id, '.', &epoch) || !slice_split(&id, '.', &seq) ||
        !id.ptr || text_to_u64(seq, &numbers[0]) || text_to_u64(id, &numbers[1]) ||
        epoch.len > 20 || numbers[0] > INT64_MAX >> 11 || numbers[1] > numbers[0])
        return;
    buf_add_text(out, ",\"from\":[");
    buf_add_json(out, epoch);
    buf_print(out, ",%" PRIu64 ",%" PRIu64 "]", numbers[0], numbers[1]);
}

static enum err read_message(struct event_stream *stream, struct buf *text,
                             struct wire_message *message)
{
    struct api_call *call = stream->call;
    const char *code;
    buf_add_char(text, '}');
    enum err refused = wire_read(buf_slice(text), loop_wall_ms(loop_of(stream)), message,
                                 &code, &call->why);
    buf_finish(text);
    return refused ? call->why.code = ERR_INVALID : OK;
}

/* Reads the query like the WebSocket's hello and sub messages, whose members it has. */
static enum err read_sub_query(struct event_stream *stream)
{
    struct api_call *call = stream->call;
    struct slice last = http_header(call->x, "last-event-id");
    struct buf sub = { 0 };

    buf_add_text(&sub, "{\"op\":\"sub\",\"id\":0");
    members_add_text(&sub, "run", api_query(call, "run"));
    members_add_text(&sub, "batch", api_query(call, "batch"));
    add_names(&sub, "tags", api_query(call, "tags"));
    add_names(&sub, "task", api_query(call, "task"));
    members_add_text(&sub, "since", api_query(call, "since"));
    add_yes(&sub, "all", api_query(call, "all"));
    add_yes(&sub, "counts", api_query(call, "counts"));
    add_from(&sub, last.len ? last : api_query(call, "from"));
    return read_message(stream, &sub, &stream->sub);
}

/* Reads the query of a watch: the filter of a list, and limit and counts as in the watch
 * message. */
static enum err read_watch_query(struct event_stream *stream)
{
    struct api_call *call = stream->call;
    struct buf watch = { 0 };
    static const char *const others[] = { "run",  "tags",  "batch", "all",
                                          "task", "since", "from" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (api_query(call, others[i]).ptr)
            return explain(&call->why, ERR_INVALID,
                           "%s: a watch has none; use filter[tag] and the other filters of "
                           "a list, limit and counts",
                           others[i]);
    buf_add_text(&watch, "{\"op\":\"watch\",\"id\":0");
    add_count(&watch, "limit", api_query(call, "limit"));
    add_yes(&watch, "counts", api_query(call, "counts"));
    enum err refused = read_message(stream, &watch, &stream->sub);
    if (refused)
        return refused;
    return watching_query(call, stream->hello.vocabulary_b ? VOCABULARY_B : VOCABULARY_A,
                          &stream->watched);
}

static enum err read_query(struct event_stream *stream)
{
    struct api_call *call = stream->call;
    struct slice watch = api_query(call, "watch"), counts = api_query(call, "counts");
    struct buf hello = { 0 };
    buf_add_text(&hello, "{\"op\":\"hello\"");
    add_names(&hello, "fields", api_query(call, "fields"));
    members_add_text(&hello, "api", api_query(call, "api"));
    enum err refused = read_message(stream, &hello, &stream->hello);
    if (refused)
        return refused;
    if (watch.ptr && !is_yes(watch))
        return explain(&call->why, ERR_INVALID,
                       "watch: not 1; send watch=1 with the filter of a list");
    if (counts.ptr && !is_yes(counts))
        return explain(&call->why, ERR_INVALID,
                       "counts: not 1; send counts=1, or leave it out");
    return watch.ptr ? read_watch_query(stream) : read_sub_query(stream);
}

static void event_stream_refuse(struct event_stream *stream, enum err error)
{
    struct api_call *call = stream->call;
    call->state = NULL;
    stream_destroy(stream);
    if (error != ERR_DRAINING || !comes_back(call))
        api_reply_error(call, error);
}

static void set_expiry(struct event_stream *stream)
{
    const struct identity *who = stream->call->identity;
    struct loop *loop = loop_of(stream);
    if (who->expires_at)
        stream->expires_at = loop_now_ms(loop) + who->expires_at - loop_wall_ms(loop);
}

/* Adds the subscription, maybe with counts, or the watch. */
static void follow(struct event_stream *stream, uint64_t seen, uint64_t base)
{
    struct wire_message *sub = &stream->sub;
    struct buf message = { 0 };
    struct query *query = stream->watched;
    bool is_watch = query;
    if (!is_watch && sub->counts)
        query = filter_to_query(&sub->filter);
    if (!is_watch)
        feed_subscribe(&stream->feed, 0, &sub->filter, seen, base);
    stream->watched = NULL;
    if (!query)
        return;
    struct query_cost cost = query_cost(query);
    struct failure why = { 0 };
    if (watch_open(&stream->feed, 0, query, is_watch ? (uint32_t)sub->limit : 0,
                   sub->counts))
        return;
    watching_explain_limit(cost, &why);
    wire_error(ENCODING_JSON, 0, "limit", why.text, &message);
    send_event(stream, "error", &message);
    if (is_watch)
        end_soon(stream);
}

static void start(struct event_stream *stream)
{
    struct api_call *call = stream->call;
    struct environment *env = call->env;
    struct view wanted = subscribing_view(call->identity, &stream->hello);
    struct buf message = { 0 };

    enum err refused = api_check_ready(call);
    if (!refused)
        refused = api_check_current(call);
    if (!refused)
        refused = connection_limit_take(&stream->seat, call->api, env, &call->why);
    wanted.wrap = wrap;
    struct view *view = refused ? NULL : environment_view(env, &wanted);
    if (!refused && !view)
        refused =
            explain(&call->why, ERR_BUSY,
                    "Too many different views; request the fields of another subscription");
    if (refused) {
        event_stream_refuse(stream, refused);
        return;
    }
    bool resumed = subscribing_may_resume(env, &stream->sub);
    uint64_t seen = resumed ? stream->sub.from_seq : 0;
    feed_init(&stream->feed, &feed_ops, env, view);
    stream->started = true;
    call->on_gone = on_gone;
    call->on_drained = on_drained;
    api_hold(call, on_drain);
    call->bears_doubt = true;
    call->x->answer_quota = env->answers;
    api_stream_begin(call, "text/event-stream");
    /* The normal delay again, after one that a drain has set. */
    buf_print(&message, "retry: %d\n", RETRY_MS);
    write_text(stream, &message);
    struct tag_list *ignored =
        subscribing_ignored(call); /* an EventSource cannot see headers */
    wire_ok(ENCODING_JSON, 0, resumed,
            stream->watched ? -1 : feed_count(env, &stream->sub.filter, seen), 0, ignored,
            &message);
    tag_list_unref(ignored);
    send_event(stream, "ok", &message);
    follow(stream, seen, resumed ? stream->sub.from_base : 0);
    metric_add(M_SNAPSHOTS, !resumed);
    set_expiry(stream);
    set_timer(stream);
}

static void on_run(struct run_read *read, enum err status)
{
    struct event_stream *stream = container_of(read, struct event_stream, run);
    struct api_call *call = stream->call;
    if (!status && !api_identity_may_run(call->identity, "read", read->run))
        status = ERR_FORBIDDEN;
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "Run not found");
    if (call->x->gone)
        status = ERR_CANCELED;
    if (status)
        event_stream_refuse(stream, status);
    else
        start(stream);
}

static enum err identify(struct api_call *call)
{
    enum err refused = api_check_ready(call);
    if (!refused)
        refused = subscribing_identify(call);
    if (!refused && !call->identity)
        refused = explain(&call->why, ERR_UNAUTHORIZED, "Invalid or Missing API key");
    return refused ? refused : api_enter(call);
}

enum err events_open(struct api_call *call)
{
    if (comes_back(call))
        return OK;
    enum err refused = identify(call);
    if (refused)
        return api_confirm_credential(call) ? OK : refused;
    if (api_confirm(call))
        return OK;
    if (call->x->method == HTTP_HEAD_) {
        api_reply_text(call, 200, "text/event-stream", SLICE(""));
        return OK;
    }
    struct event_stream *stream = mem_new(struct event_stream);
    stream->call = call;
    stream->events = api_events(call->api);
    stream->deferred.fn = on_end;
    list_append(&stream->events->all, &stream->link);
    call->state = stream;
    refused = read_query(stream);
    if (!refused && !stream->watched && stream->sub.filter.kind != TOPIC_RUN &&
        !api_identity_may_follow(call->identity, &stream->sub.filter))
        refused = ERR_FORBIDDEN;
    if (refused) {
        stream_destroy(stream);
        return refused;
    }
    call->busy = true;
    if (!stream->watched && stream->sub.filter.kind == TOPIC_RUN)
        run_read_begin(call->env, bytes_slice(stream->sub.filter.name), &stream->run,
                       on_run);
    else
        start(stream);
    return OK;
}

/* ---- all of them ---- */

struct events *events_create(struct loop *loop)
{
    struct events *events = mem_new(struct events);
    list_init(&events->all);
    events->kind = timers_kind(loop_timers(loop), on_time);
    return events;
}

/* Only sets the streams' timers, which send the message, so that no more of them run in a
 * turn than it has time for. */
void events_send_floor(struct events *events, const struct environment *env)
{
    list_each (link, &events->all) {
        struct event_stream *stream = container_of(link, struct event_stream, link);
        if (!stream->started || stream->ending || stream->feed.env != env)
            continue;
        stream->floor_moved = true;
        loop_set_timer(env->loop, &stream->timer, events->kind, 0);
    }
}
