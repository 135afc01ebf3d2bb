/* cluster_subscriber.c - a session of runs.v1 over a real feed, read by a mirror. */
#include "tests/support/cluster/cluster_subscriber.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "core/live/watch.h"
#include "core/wire/wire.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/world/reader.h"

enum { ASK_MS = 5000, PING_MS = 300, WINDOW = 4, WATCH_ID = 1000, LIST_ROWS = 5 };

static const struct cluster_session_ops session_ops;

static struct cluster_subscriber *of_session(struct cluster_session *session)
{
    return container_of(session, struct cluster_subscriber, session);
}

static int64_t now_of(const struct cluster_subscriber *subscriber)
{
    return subscriber->cluster->network.now;
}

/* ---- frames ---- */

static void put(struct cluster_subscriber *subscriber, struct bytes *frame)
{
    if (subscriber->count == subscriber->capacity) {
        subscriber->capacity = subscriber->capacity ? subscriber->capacity * 2 : 16;
        subscriber->wire =
            mem_resize(subscriber->wire, subscriber->capacity * sizeof(struct bytes *));
    }
    subscriber->wire[subscriber->count++] = bytes_ref(frame);
}

static void put_message(struct cluster_subscriber *subscriber, struct buf *message)
{
    struct bytes *frame = buf_to_bytes(message);
    put(subscriber, frame);
    bytes_unref(frame);
    buf_finish(message);
}

static uint64_t number_of(struct slice message, const char *name)
{
    uint64_t number = 0;
    text_to_u64(scan_member(message, name), &number);
    return number;
}

/* Counts are exact at their position. Retention changes them at a time of its own. */
static void judge_counts(struct cluster_subscriber *subscriber, struct slice message)
{
    const struct cluster_check *check = &subscriber->cluster->check;
    const struct ledger *ledger =
        check->histories[cluster_history_of(subscriber->session.gateway->epoch)];
    uint64_t total = 0, seq = number_of(message, "seq");
    list_each (link, &ledger->stories)
        total += story_at(container_of(link, struct story, link), seq) != NULL;
    if (!check->purged && total != number_of(message, "total"))
        violated("%s counts %llu runs at %llu, not %llu", subscriber->session.gateway->name,
                 (unsigned long long)number_of(message, "total"), (unsigned long long)seq,
                 (unsigned long long)total);
}

static void judge(struct cluster_subscriber *subscriber, const struct bytes *frame)
{
    struct cluster_gateway *gateway = subscriber->session.gateway;
    struct slice message = bytes_slice(frame), op = scan_member(message, "op");
    if (slice_is(op, "\"counts\"")) {
        judge_counts(subscriber, message);
        return;
    }
    if (slice_is(op, "\"list\"") || scan_member(message, "more").ptr)
        return;
    cluster_check_shown(&subscriber->cluster->check, gateway->name, now_of(subscriber),
                        cluster_gateway_moment(gateway, number_of(message, "seq")),
                        subscriber->asked);
}

static bool send_frames(struct feed *feed, struct bytes *const *frames, size_t count)
{
    struct cluster_subscriber *subscriber =
        container_of(feed, struct cluster_subscriber, feed);
    for (size_t i = 0; i < count; i++) {
        judge(subscriber, frames[i]);
        put(subscriber, frames[i]);
    }
    return subscriber->count <= WINDOW;
}

static bool is_busy(struct feed *feed)
{
    struct cluster_subscriber *subscriber =
        container_of(feed, struct cluster_subscriber, feed);
    return subscriber->lost || subscriber->count > WINDOW;
}

static void on_lost(struct feed *feed)
{
    container_of(feed, struct cluster_subscriber, feed)->lost = true;
}

/* The gateway has loaded its memory again, maybe that of another history. */
static void begins_again(struct feed *feed)
{
    struct cluster_subscriber *subscriber =
        container_of(feed, struct cluster_subscriber, feed);
    struct buf message = { 0 };
    subscriber->again++;
    buf_print(&message, "{\"op\":\"welcome\",\"epoch\":\"%s\"}",
              subscriber->session.gateway->epoch);
    put_message(subscriber, &message);
    list_each (link, &feed->catching) {
        wire_ok(ENCODING_JSON, container_of(link, struct subscription, link)->id, false, -1,
                0, NULL, &message);
        put_message(subscriber, &message);
    }
}

static const struct feed_ops feed_ops = {
    .send = send_frames, .busy = is_busy, .lost = on_lost, .begins_again = begins_again
};

static void begin_history(struct cluster_subscriber *subscriber, unsigned history);

/* As on a new connection. */
static void on_welcome(struct cluster_subscriber *subscriber, struct slice message)
{
    char epoch[17] = "";
    struct slice text = scan_member(message, "epoch");
    snprintf(epoch, sizeof(epoch), "%.*s", (int)text.len - 2, text.ptr + 1);
    unsigned history = cluster_history_of(epoch);
    mirror_cut(&subscriber->mirror);
    if (history == subscriber->history)
        return;
    mirror_finish(&subscriber->mirror);
    begin_history(subscriber, history);
}

static void take(struct cluster_subscriber *subscriber, struct slice message)
{
    struct slice op = scan_member(message, "op");
    if (slice_is(op, "\"welcome\""))
        on_welcome(subscriber, message);
    else if (!slice_is(op, "\"counts\"") && !slice_is(op, "\"list\""))
        mirror_receive(&subscriber->mirror, message);
}

bool cluster_subscriber_read(struct cluster_subscriber *subscriber)
{
    if (!subscriber->count)
        return false;
    struct bytes *frame = subscriber->wire[0];
    bool was_full = subscriber->count > WINDOW;
    memmove(subscriber->wire, subscriber->wire + 1,
            --subscriber->count * sizeof(struct bytes *));
    take(subscriber, bytes_slice(frame));
    bytes_unref(frame);
    if (was_full && subscriber->count <= WINDOW && subscriber->state == SUBSCRIBER_OPEN)
        feed_drained(&subscriber->feed);
    return true;
}

/* ---- the subscription ---- */

static void begin_history(struct cluster_subscriber *subscriber, unsigned history)
{
    struct view view = view_of(ENCODING_JSON, FIELDS_ALL);
    struct filter filter = filter_about(subscriber->about);
    subscriber->history = history;
    mirror_init(&subscriber->mirror, subscriber->cluster->check.histories[history], &view);
    mirror_add(&subscriber->mirror, &filter);
}

/* Everything that was sent before is read before the new history begins. */
static void change_history(struct cluster_subscriber *subscriber, unsigned history)
{
    if (history == subscriber->history)
        return;
    while (cluster_subscriber_read(subscriber))
        ;
    mirror_finish(&subscriber->mirror);
    begin_history(subscriber, history);
}

static void begin_subscription(struct cluster_subscriber *subscriber,
                               const struct mirror_sub *sub)
{
    const struct mirror *mirror = &subscriber->mirror;
    const struct environment *env = subscriber->session.gateway->env;
    struct filter filter = filter_about(subscriber->about);
    struct buf message = { 0 };
    bool resumed = mirror_may_resume(mirror, sub) && mirror->seq >= env->purged;
    uint64_t seq = resumed ? mirror->seq : 0, base = resumed ? mirror->base : 0;
    wire_ok(ENCODING_JSON, sub->id, resumed, -1, 0, NULL, &message);
    put_message(subscriber, &message);
    feed_subscribe(&subscriber->feed, sub->id, &filter, seq, base);
}

static void open_feed(struct cluster_subscriber *subscriber)
{
    struct environment *env = subscriber->session.gateway->env;
    struct query *query = query_create(&(struct run_filter){ .is_test = -1 }, 0);
    feed_init(&subscriber->feed, &feed_ops, env,
              environment_view(env, &subscriber->mirror.view));
    subscriber->state = SUBSCRIBER_OPEN;
    subscriber->lost = false;
    begin_subscription(subscriber, &subscriber->mirror.subs[0]);
    if (!watch_open(&subscriber->feed, WATCH_ID, query, LIST_ROWS, true))
        violated("a list is refused");
}

/* ---- the session ---- */

static void ask(struct cluster_subscriber *subscriber)
{
    struct cluster *cluster = subscriber->cluster;
    subscriber->state = SUBSCRIBER_ASKING;
    subscriber->begun = now_of(subscriber);
    subscriber->asked = cluster_check_asked(&cluster->check, now_of(subscriber));
    subscriber->question = cluster_gateway_ask(subscriber->session.gateway);
    cluster_draw_key(cluster, &subscriber->key, &subscriber->generation);
}

/* A socket that is open does not ask again: its key ends when the gateway learns it. */
static bool is_accepted(struct cluster_subscriber *subscriber)
{
    const struct cluster_gateway *gateway = subscriber->session.gateway;
    if (gateway->accounts.generation[subscriber->key] != subscriber->generation)
        return false;
    cluster_check_accepted(&subscriber->cluster->check, now_of(subscriber), subscriber->key,
                           subscriber->generation, subscriber->begun,
                           subscriber->state == SUBSCRIBER_ASKING);
    return true;
}

/* A position above the applied one waits as well. */
static bool is_reached(const struct cluster_subscriber *subscriber)
{
    const struct cluster_gateway *gateway = subscriber->session.gateway;
    const struct mirror *mirror = &subscriber->mirror;
    bool same = subscriber->history == cluster_history_of(gateway->epoch);
    return cluster_gateway_is_answered(gateway, subscriber->question) &&
           (!same || !mirror->has_position || mirror->seq <= gateway->env->applied);
}

static void start(struct cluster_subscriber *subscriber)
{
    struct cluster_gateway *gateway = subscriber->session.gateway;
    if (now_of(subscriber) > subscriber->begun + ASK_MS) {
        cluster_subscriber_cut(subscriber);
        return;
    }
    if (!is_reached(subscriber))
        return;
    if (!is_accepted(subscriber)) {
        cluster_subscriber_cut(subscriber);
        return;
    }
    change_history(subscriber, cluster_history_of(gateway->epoch));
    open_feed(subscriber);
}

static void ping(struct cluster_subscriber *subscriber)
{
    struct cluster_gateway *gateway = subscriber->session.gateway;
    struct buf message = { 0 };
    if (now_of(subscriber) < subscriber->ping_at || list_empty(&subscriber->feed.live) ||
        !feed_in_sync(&subscriber->feed))
        return;
    if (!is_accepted(subscriber)) {
        cluster_subscriber_cut(subscriber);
        return;
    }
    subscriber->ping_at = now_of(subscriber) + PING_MS;
    cluster_check_sync(&subscriber->cluster->check, gateway->name, now_of(subscriber),
                       cluster_gateway_moment(gateway, subscriber->feed.seen),
                       subscriber->asked);
    wire_ping(ENCODING_JSON, subscriber->feed.seen, &message);
    put_message(subscriber, &message);
}

static void tick(struct cluster_session *session)
{
    struct cluster_subscriber *subscriber = of_session(session);
    if (subscriber->lost)
        violated("%s closes a socket, although it lives",
                 subscriber->session.gateway->name);
    else if (subscriber->state == SUBSCRIBER_ASKING)
        start(subscriber);
    else
        ping(subscriber);
}

static void close_feed(struct cluster_subscriber *subscriber)
{
    if (subscriber->state == SUBSCRIBER_OPEN)
        feed_finish(&subscriber->feed);
}

void cluster_subscriber_cut(struct cluster_subscriber *subscriber)
{
    close_feed(subscriber);
    subscriber->state = SUBSCRIBER_OUT;
    subscriber->lost = false;
    for (size_t i = 0; i < subscriber->count; i++)
        bytes_unref(subscriber->wire[i]);
    subscriber->count = 0;
    mirror_cut(&subscriber->mirror);
    if (subscriber->session.gateway)
        cluster_session_close(&subscriber->session);
}

static void cut(struct cluster_session *session)
{
    cluster_subscriber_cut(of_session(session));
}

static const struct cluster_session_ops session_ops = { tick, cut };

void cluster_subscriber_connect(struct cluster_subscriber *subscriber,
                                struct cluster_gateway *gateway)
{
    if (!gateway->running || gateway->suspended || !cluster_gateway_is_certain(gateway))
        return;
    cluster_session_open(&subscriber->session, gateway);
    ask(subscriber);
}

/* ---- made, gone ---- */

void cluster_subscriber_init(struct cluster_subscriber *subscriber, struct cluster *cluster,
                             unsigned number)
{
    static const char *const abouts[] = { "all", "tag:odd", "tag:even", "run:run_000001" };
    *subscriber = (struct cluster_subscriber){ .cluster = cluster };
    snprintf(subscriber->name, sizeof(subscriber->name), "sub%u", number);
    subscriber->about = abouts[number % 4];
    subscriber->session.ops = &session_ops;
    list_init(&subscriber->session.link);
    begin_history(subscriber, 0);
}

void cluster_subscriber_finish(struct cluster_subscriber *subscriber)
{
    cluster_subscriber_cut(subscriber);
    mirror_finish(&subscriber->mirror);
    free(subscriber->wire);
}

bool cluster_subscriber_rests(struct cluster_subscriber *subscriber)
{
    return subscriber->state == SUBSCRIBER_OPEN && !subscriber->lost &&
           !subscriber->count && feed_in_sync(&subscriber->feed) &&
           mirror_complete(&subscriber->mirror) &&
           subscriber->history == subscriber->cluster->check.history;
}

void cluster_subscriber_check_end(struct cluster_subscriber *subscriber)
{
    mirror_check_end(&subscriber->mirror);
}
