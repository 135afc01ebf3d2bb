/* hub.c - topics, and the flush that visits their listeners.
 *
 *   mark:  run ──► all, tag a, tag b, batch, itself        topics with listeners only
 *   flush: rounds ──► feed_visit, until the turn's time is used up; the rest next turn
 *
 *   later: [ tag a, tag b │ feed, feed ]        marked topics, and feeds to be visited
 *     └──► round: listeners of a, of b, then those feeds. What is marked meanwhile is for later
 *
 * The listeners of a topic are not put in line first. Between two changes they have all
 * left the CPU caches, so each is fetched once, while those before it are visited.
 *
 * While memory may be out of date (certainty.h), no feed is visited: a frame without `more`
 * would report "in sync". Topics marked meanwhile are flushed after the end of the doubt.
 *
 * A feed leaves the line when it leaves the hub, so no pointer dangles. */
#include "core/live/hub.h"

#include <time.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/environment.h"
#include "core/live/feed.h"
#include "core/live/sampling.h"

enum {
    VISITS_AT_ONCE = 8,
    SUBSCRIPTION_AHEAD = 8, /* listeners */
    FEED_AHEAD = 4,
    SEND_AHEAD = 2,
    /* Places added at a time: a topic with one listener makes one small allocation. */
    LISTENERS_MORE = 3,
};

static struct slice topic_name(const void *value)
{
    return bytes_slice(((const struct topic *)value)->name);
}

static void topic_init(struct topic *topic, enum topic_kind kind)
{
    topic->kind = kind;
    list_init(&topic->places);
    list_init(&topic->kept_views);
    list_init(&topic->link);
}

static bool flush(struct flusher *flusher);
static bool note_delivery(struct flusher *noter);

static void on_certain(struct certainty_waiter *waiter)
{
    struct hub *hub = container_of(waiter, struct hub, silent);
    loop_wake(hub->env->loop, &hub->flusher);
}

static void init_round(struct round *round)
{
    list_init(&round->topics);
    list_init(&round->feeds);
}

void hub_init(struct hub *hub, struct environment *env)
{
    hub->env = env;
    for (int kind = 0; kind < TOPIC_KINDS; kind++)
        table_init(&hub->topics[kind], topic_name);
    topic_init(&hub->all, TOPIC_ALL);
    init_round(&hub->round);
    init_round(&hub->later);
    list_init(&hub->held);
    hub->flusher = (struct flusher){ .fn = flush };
    hub->noter = (struct flusher){ .fn = note_delivery, .runs_last = true };
    certainty_waiter_init(&hub->silent, on_certain);
    loop_add_flusher(env->loop, &hub->flusher);
    loop_add_flusher(env->loop, &hub->noter);
}

static void topic_destroy(struct topic *topic)
{
    list_remove(&topic->link);
    order_finish(&topic->order);
    free(topic->listeners);
    bytes_unref(topic->name);
    free(topic);
}

void hub_finish(struct hub *hub)
{
    for (int kind = 0; kind < TOPIC_KINDS; kind++) {
        size_t at = 0;
        for (struct topic *topic; (topic = table_next(&hub->topics[kind], &at));)
            topic_destroy(topic);
        table_finish(&hub->topics[kind]);
    }
    order_finish(&hub->all.order);
    free(hub->all.listeners);
    loop_remove_flusher(&hub->flusher);
    loop_remove_flusher(&hub->noter);
    certainty_forget(&hub->silent);
}

struct topic *hub_find(struct hub *hub, enum topic_kind kind, struct slice name)
{
    return kind == TOPIC_ALL ? &hub->all : table_find(&hub->topics[kind], name);
}

struct topic *hub_topic(struct hub *hub, enum topic_kind kind, struct bytes *name)
{
    struct topic *topic = hub_find(hub, kind, bytes_slice(name));
    if (topic)
        return topic;
    topic = mem_new(struct topic);
    topic_init(topic, kind);
    topic->name = bytes_ref(name);
    table_insert(&hub->topics[kind], topic);
    return topic;
}

void hub_release(struct hub *hub, struct topic *topic)
{
    if (topic->kind == TOPIC_ALL || topic->order.runs || topic_has_listeners(topic) ||
        !list_empty(&topic->places))
        return;
    table_remove(&hub->topics[topic->kind], bytes_slice(topic->name));
    topic_destroy(topic);
}

/* While the topic of a run has listeners, tracked::topic points to it. */
void hub_leave(struct hub *hub, struct topic *topic)
{
    if (topic->kind == TOPIC_RUN && !topic_has_listeners(topic)) {
        struct tracked *run = environment_find(hub->env, bytes_slice(topic->name));
        if (run)
            run->topic = NULL;
    }
    hub_release(hub, topic);
}

/* ---- listeners ---- */

static void set_capacity(struct topic *topic, uint32_t capacity)
{
    topic->listeners = mem_resize(topic->listeners, capacity * sizeof(*topic->listeners));
    topic->listener_capacity = capacity;
}

void topic_add_listener(struct topic *topic, struct subscription *sub)
{
    uint32_t capacity = topic->listener_capacity;
    if (topic->listener_count == capacity)
        set_capacity(topic, capacity + capacity / 4 + LISTENERS_MORE);
    sub->place = topic->listener_count;
    topic->listeners[topic->listener_count++] = sub;
}

static void fill_gap(struct topic *topic, uint32_t gap, uint32_t from)
{
    if (gap == from)
        return;
    topic->listeners[gap] = topic->listeners[from];
    topic->listeners[gap]->place = gap;
}

/* Keeps the listeners that were visited before those that were not. */
void topic_drop_listener(struct topic *topic, struct subscription *sub)
{
    uint32_t gap = sub->place;
    if (gap < topic->next) {
        fill_gap(topic, gap, --topic->next);
        gap = topic->next;
    }
    fill_gap(topic, gap, --topic->listener_count);
    if (topic->listener_count < topic->listener_capacity / 4)
        set_capacity(topic, topic->listener_capacity / 2);
}

/* Returns the time in µs, by a clock that advances within a turn, unlike loop_now_ms. */
static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- a run in its orders ---- */

/* Returns true if this tag occurs earlier in the list. A run may repeat a tag; its topic
 * counts once. */
static bool tag_repeats(const struct tag_list *tags, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (slice_equal(bytes_slice(tags->names[k]), bytes_slice(tags->names[i])))
            return true;
    return false;
}

static void find_topics(struct hub *hub, const struct run *run, struct run_topics *found)
{
    const struct tag_list *tags = run->tags;
    found->list[0] = &hub->all;
    found->count = 1;
    for (uint32_t i = 0; tags && i < tags->count && i < RUN_TOPICS_MAX - 2; i++)
        if (!tag_repeats(tags, i))
            found->list[found->count++] = hub_topic(hub, TOPIC_TAG, tags->names[i]);
    if (run->batch)
        found->list[found->count++] = hub_topic(hub, TOPIC_BATCH, run->batch);
}

void hub_remove_run(struct hub *hub, struct tracked *run)
{
    MEM_UNFILLED struct run_topics topics;
    find_topics(hub, &run->run, &topics);
    for (uint32_t i = 0; i < topics.count; i++) {
        order_clear(&topics.list[i]->order, run->run.rev);
        hub_release(hub, topics.list[i]);
    }
}

void hub_append_run(struct hub *hub, struct tracked *run, struct run_topics *topics)
{
    find_topics(hub, &run->run, topics);
    for (uint32_t i = 0; i < topics->count; i++)
        order_append(&topics->list[i]->order, run);
}

void hub_insert_run(struct hub *hub, struct tracked *run)
{
    MEM_UNFILLED struct run_topics topics;
    find_topics(hub, &run->run, &topics);
    for (uint32_t i = 0; i < topics.count; i++)
        order_insert(&topics.list[i]->order, run);
}

/* Notes the first change since the last flush; all others reached the disk with it or
 * later. */
static void begin_delivery(struct hub *hub)
{
    int64_t synced_us = hub->env->store->synced_us;
    hub->marked_us = now_us();
    hub->synced_us = synced_us ? synced_us : hub->marked_us;
}

static void mark(struct hub *hub, struct topic *topic)
{
    if (topic->marked || !topic->listener_count)
        return;
    topic->marked = true;
    if (!hub->marked_us)
        begin_delivery(hub);
    if (!topic->begun)
        list_append(&hub->later.topics, &topic->link);
    loop_wake(hub->env->loop, &hub->flusher);
}

void hub_mark_run(struct hub *hub, const struct tracked *run,
                  const struct run_topics *topics)
{
    for (uint32_t i = 0; i < topics->count; i++)
        mark(hub, topics->list[i]);
    if (run->topic)
        mark(hub, run->topic);
}

bool hub_has_listeners(const struct hub *hub, const struct tracked *run,
                       const struct run_topics *topics)
{
    bool has_listeners = run->topic;
    for (uint32_t i = 0; hub->feeds && !has_listeners && i < topics->count; i++)
        has_listeners = topic_has_listeners(topics->list[i]);
    return has_listeners;
}

/* Cleared places keep their revs, so an order without runs is emptied. */
static void begin_topic_again(struct hub *hub, struct topic *topic)
{
    order_finish(&topic->order);
    topic->listened_since = 0; /* recent::dropped is above it */
    mark(hub, topic);
}

void hub_begin_again(struct hub *hub)
{
    hub->flushed = 0;
    begin_topic_again(hub, &hub->all);
    for (int kind = 0; kind < TOPIC_KINDS; kind++) {
        size_t at = 0;
        for (struct topic *topic; (topic = table_next(&hub->topics[kind], &at));)
            begin_topic_again(hub, topic);
    }
}

/* ---- the flush ---- */

void hub_visit(struct hub *hub, struct feed *feed)
{
    if (list_empty(&feed->visit))
        list_append(&hub->later.feeds, &feed->visit);
    loop_wake(hub->env->loop, &hub->flusher);
}

void hub_hold(struct hub *hub, struct feed *feed)
{
    list_append(&hub->held, &feed->visit);
}

static bool is_over(const struct round *round)
{
    return list_empty(&round->topics) && list_empty(&round->feeds);
}

bool hub_is_through(const struct hub *hub)
{
    return is_over(&hub->round) && is_over(&hub->later) && list_empty(&hub->held) &&
           !hub->env->evaluation.count;
}

/* Returns the feed of the topic's next listener; NULL: there is none. */
static struct feed *next_listener(struct topic *topic)
{
    if (!topic->begun)
        topic->marked = false;
    topic->begun = true;
    return topic->next < topic->listener_count ? topic->listeners[topic->next]->feed : NULL;
}

static void end_topic(struct hub *hub, struct topic *topic)
{
    topic->begun = false;
    topic->next = 0;
    list_remove(&topic->link);
    if (topic->marked)
        list_append(&hub->later.topics, &topic->link);
}

static struct topic *first_topic(const struct hub *hub)
{
    const struct list *topics = &hub->round.topics;
    return list_empty(topics) ? NULL : container_of(topics->next, struct topic, link);
}

static struct feed *next_of_round(struct hub *hub)
{
    for (struct topic *topic; (topic = first_topic(hub)); end_topic(hub, topic)) {
        struct feed *feed = next_listener(topic);
        if (feed)
            return feed;
    }
    return list_empty(&hub->round.feeds)
               ? NULL
               : container_of(hub->round.feeds.next, struct feed, visit);
}

/* Returns the feed that is visited next; NULL: there is none. */
static struct feed *next_feed(struct hub *hub)
{
    struct feed *feed = next_of_round(hub);
    if (feed)
        return feed;
    list_move_all(&hub->round.topics, &hub->later.topics);
    list_move_all(&hub->round.feeds, &hub->later.feeds);
    return next_of_round(hub);
}

/* Returns true if the feed sends its own frames (maybe one large run) or rows of live
 * lists, not only a few shared frames. */
static bool is_long(const struct feed *feed)
{
    return feed->ops->heavy || feed->seen != feed->base || feed_watch_count(feed) ||
           !list_empty(&feed->catching);
}

/* Measures a delivery, which ends when its frames were sent. With a ring
 * (connection_send_soon) that is at the end of the turn: the first of them woke its
 * flusher, which so runs before this one. */
static bool note_delivery(struct flusher *noter)
{
    struct hub *hub = container_of(noter, struct hub, noter);
    int64_t now = now_us(), us = now - hub->marked_us;
    metric_observe_us(H_FANOUT, us);
    metric_observe_us(H_DELIVERY, now - hub->synced_us);
    sampling_pass(hub->env);
    stats_note_delivery(&hub->env->stats, us);
    hub->marked_us = 0;
    return false;
}

/* Returns true if a listener's feed must be visited: not if it is in line itself, and once
 * for a change however many subscriptions it has. One that has to begin again is visited. A
 * feed that is not lagging has sent everything up to `seen`. For a lagging one, the lowest byte
 * of its last visit's `applied` decides. If that is the same by chance, the feed is visited
 * once the thing it waits for arrives: a socket, a page, the end of its interval. */
static bool is_due(const struct feed *feed)
{
    uint64_t applied = feed->env->applied;
    if (!list_empty(&feed->visit))
        return false;
    if (feed->generation != feed->env->generation)
        return true;
    return feed->lagging ? feed->visited != (uint8_t)applied : feed->seen != applied;
}

/* Takes the next feed out of its line. If it is a listener of a topic, prefetches what
 * visits to the next listeners need: a subscription, then its feed, then what its frames
 * are sent with. (In a separate function, GCC drops the prefetches, because it sees no
 * effect in them.) */
static void step(struct hub *hub, struct feed *feed)
{
    struct topic *topic = first_topic(hub);
    if (!topic) {
        list_remove(&feed->visit);
        return;
    }
    struct subscription *const *next = &topic->listeners[topic->next];
    uint32_t left = topic->listener_count - topic->next++;
    if (left > SUBSCRIPTION_AHEAD) {
        __builtin_prefetch(next[SUBSCRIPTION_AHEAD]);
        __builtin_prefetch(&next[SUBSCRIPTION_AHEAD]->own);
    }
    if (left > FEED_AHEAD) {
        __builtin_prefetch(&next[FEED_AHEAD]->feed->visit);
        __builtin_prefetch(&next[FEED_AHEAD]->feed->catching);
    }
    if (left > SEND_AHEAD) {
        const struct feed *soon = next[SEND_AHEAD]->feed;
        if (soon->ops->fetch)
            soon->ops->fetch(soon);
    }
}

static bool flush(struct flusher *flusher)
{
    struct hub *hub = container_of(flusher, struct hub, flusher);
    struct timeslice timeslice = loop_timeslice(hub->env->loop);
    bool evaluated = evaluation_run(&hub->env->evaluation);

    if (evaluated)
        list_move_all(&hub->later.feeds, &hub->held);
    if (!environment_is_certain(hub->env)) {
        certainty_wait(hub->env->certainty, &hub->silent);
        return !evaluated;
    }
    for (struct feed *feed; (feed = next_feed(hub));) {
        bool skips = first_topic(hub) && !is_due(feed);
        if (!timeslice_left_every(&timeslice, skips || !is_long(feed) ? VISITS_AT_ONCE : 1))
            return true;
        step(hub, feed);
        if (!skips)
            feed_visit(feed);
    }
    if (!evaluated)
        return true;
    hub->flushed = hub->env->applied;
    if (hub->marked_us)
        loop_wake(hub->env->loop, &hub->noter);
    return false;
}
