/* feed.c - one client's position in the changes.
 *
 *   COMPLETE ──(socket full, or the ring dropped something after seen)──► LATE
 *      ▲                                                                   │
 *      └───────────── a walk reached the end: frame without `more` ◄───────┘
 *
 * A feed is visited only when its socket has taken everything. A complete feed takes every
 * update after seen from the ring, as shared frames. Any other feed walks the orders of its
 * topics, merged by rev, and sends the newest state of each run that it missed, once. Then
 * it sends one frame of one subscription that catches up, in turn. So a client costs two
 * positions and the unsent rest of its last write; the final state always arrives, and a
 * run never moves backwards.
 *
 *   hub.c ── feed_visit ──► feed.c ── catch_up_visit, below cold ──► catch_up.c
 *     ▲                       │  ▲                                       │
 *     │                       │  └──────────── feed_has_quota ◄───────────┤
 *     ├── hub_visit: continue in another visit ◄─────────────────────────┘
 *     │                       │
 *     │       watch_visit_all ▼   feed_has_quota, feed_wait
 *     ├────────────────── watch.c: live lists, a difference each
 *     │                       │ ▲  windows_serve, windows_release
 *     ├── windows.c ◄─────────┘ └─ windows_mark: in line for a visit
 *     │       ▲  windows_evaluate
 *     └── evaluation.c ◄── evaluation_run ── hub.c, before its visits
 *
 * Six files share one visit. A feed with more to send goes back into the hub's line, so no
 * visit begins inside another. */
#include "core/live/feed.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/catch_up.h"
#include "core/live/frame.h"
#include "core/live/watch.h"

enum {
    TAKE_FRAMES = 64,        /* shared frames in one write */
    TAKE_BYTES = 256 * 1024, /* sent in one visit */
    COUNT_PLACES = 16384,    /* visited to count the runs that will be sent */
    QUOTA_MS = 50,           /* between two checks whether clients have read enough */
};

static void on_every(struct timer *timer);
static void on_reached(struct reach *reach);

void feed_init(struct feed *feed, const struct feed_ops *ops, struct environment *env,
               struct view *view)
{
    *feed = (struct feed){ .ops = ops, .env = env, .view = view };
    feed->seen = feed->base = env->applied;
    feed->generation = env->generation;
    list_init(&feed->live);
    list_init(&feed->catching);
    list_init(&feed->visit);
    env->hub.feeds++;
}

void subscription_drop_own(struct subscription *sub)
{
    if (sub->own)
        ahead_forget(&sub->own->ahead);
    free(sub->own);
    sub->own = NULL;
}

static void subscription_destroy(struct subscription *sub)
{
    topic_drop_listener(sub->topic, sub);
    list_remove(&sub->link);
    hub_leave(&sub->feed->env->hub, sub->topic);
    sub->feed->filter_bytes -= (uint32_t)filter_size(&sub->filter);
    filter_finish(&sub->filter);
    subscription_drop_own(sub);
    sub->feed->subscriptions--;
    metric_add(M_SUBSCRIPTIONS, -1);
    free(sub);
}

static void set_lagging(struct feed *feed, bool lagging)
{
    if (feed->lagging != lagging)
        metric_add(M_BEHIND, lagging ? 1 : -1);
    feed->lagging = lagging;
}

struct feed_extras *feed_extras(struct feed *feed)
{
    if (!feed->extras) {
        feed->extras = mem_new(struct feed_extras);
        feed->extras->feed = feed;
        list_init(&feed->extras->watches);
        reach_init(&feed->extras->reach, on_reached);
    }
    return feed->extras;
}

void feed_set_pace(struct feed *feed, int64_t every_ms)
{
    if (every_ms || feed->extras)
        feed_extras(feed)->every_ms = every_ms;
}

static void finish_extras(struct feed *feed)
{
    struct feed_extras *extras = feed->extras;
    if (!extras)
        return;
    while (!list_empty(&extras->watches))
        watch_close(container_of(extras->watches.next, struct watch, link));
    timers_clear(loop_timers(feed->env->loop), &extras->timer);
    reach_forget(&extras->reach);
    feed->extras = NULL;
    free(extras);
}

void feed_finish(struct feed *feed)
{
    while (!list_empty(&feed->live))
        subscription_destroy(container_of(feed->live.next, struct subscription, link));
    while (!list_empty(&feed->catching))
        subscription_destroy(container_of(feed->catching.next, struct subscription, link));
    finish_extras(feed);
    list_remove(&feed->visit);
    catch_up_abandon(feed);
    set_lagging(feed, false);
    ahead_forget(&feed->ahead);
    feed->env->hub.feeds--;
    view_release(feed->view);
}

/* Chooses the topic whose changes wake the subscription, and whose order it walks. With
 * several tags any of them will do, because a matching run has all of them: the one with
 * the fewest runs is the shortest walk. */
static struct topic *choose_topic(struct hub *hub, const struct filter *filter)
{
    struct topic *best = hub_topic(hub, filter->kind, filter->name);
    const struct query *query = filter->query;
    for (size_t i = 0; query && i < query->filter.tag_count; i++) {
        struct bytes *tag = bytes_create_shared(query->filter.tags[i]);
        struct topic *other = hub_topic(hub, TOPIC_TAG, tag);
        bytes_unref(tag);
        if (other == best)
            continue;
        bool is_shorter = other->order.runs < best->order.runs;
        hub_release(hub, is_shorter ? best : other);
        best = is_shorter ? other : best;
    }
    return best;
}

/* Takes ownership of the filter, and of the use of the topic, which was chosen for it. */
static struct subscription *attach(struct feed *feed, int64_t id, struct filter *filter,
                                   struct topic *topic)
{
    struct subscription *sub = mem_new(struct subscription);
    sub->id = id;
    sub->feed = feed;
    sub->filter = *filter;
    *filter = (struct filter){ 0 };
    sub->topic = topic;
    if (!topic_has_listeners(topic))
        topic->listened_since = feed->env->applied;
    topic_add_listener(topic, sub);
    if (topic->kind == TOPIC_RUN) {
        struct tracked *run = environment_find(feed->env, bytes_slice(sub->filter.name));
        if (run)
            run->topic = topic;
    }
    feed->subscriptions++;
    feed->filter_bytes += (uint32_t)filter_size(&sub->filter);
    metric_add(M_SUBSCRIPTIONS, 1);
    hub_visit(&feed->env->hub, feed);
    return sub;
}

struct subscription *feed_subscribe(struct feed *feed, int64_t id, struct filter *filter,
                                    uint64_t from_seq, uint64_t from_base)
{
    struct topic *topic = choose_topic(&feed->env->hub, filter);
    struct subscription *sub = attach(feed, id, filter, topic);
    sub->own = mem_new(struct own_position);
    sub->own->seen = from_seq;
    sub->own->base = from_base;
    list_append(&feed->catching, &sub->link);
    return sub;
}

struct subscription *feed_follow(struct feed *feed, int64_t id, struct filter *filter,
                                 uint64_t seq)
{
    struct environment *env = feed->env;
    struct topic *topic = choose_topic(&env->hub, filter);
    uint64_t listened_since =
        topic_has_listeners(topic) ? topic->listened_since : env->applied;

    if (seq < listened_since || seq < feed->view->since || seq < env->recent.dropped) {
        hub_release(&env->hub, topic);
        return NULL;
    }
    struct subscription *sub = attach(feed, id, filter, topic);
    list_append(&feed->live, &sub->link);
    feed->seen = feed->base = seq;
    set_lagging(feed, seq < env->applied);
    return sub;
}

void feed_unsubscribe(struct feed *feed, struct subscription *sub)
{
    if (feed->read && (catch_up_is_for(feed, sub) || catch_up_is_for_live(feed)))
        catch_up_abandon(feed);
    subscription_destroy(sub);
    hub_visit(&feed->env->hub, feed);
}

static struct subscription *find_in(struct list *list, int64_t id)
{
    list_each (link, list) {
        struct subscription *sub = container_of(link, struct subscription, link);
        if (sub->id == id)
            return sub;
    }
    return NULL;
}

struct subscription *feed_find(struct feed *feed, int64_t id)
{
    struct subscription *sub = find_in(&feed->live, id);
    return sub ? sub : find_in(&feed->catching, id);
}

void feed_drained(struct feed *feed)
{
    hub_visit(&feed->env->hub, feed);
}

/* Returns true if memory was cleared since the feed began. */
static bool is_outdated(const struct feed *feed)
{
    return feed->generation != feed->env->generation;
}

bool feed_in_sync(struct feed *feed)
{
    struct hub *hub = &feed->env->hub;
    if (feed->lagging || !list_empty(&feed->catching) || !list_empty(&feed->visit) ||
        !environment_is_certain(feed->env) || is_outdated(feed) ||
        (feed_watch_count(feed) && feed->env->evaluation.count))
        return false;
    if (hub_is_through(hub))
        hub->flushed = feed->env->applied; /* nothing has listened to the changes since */
    if (hub->flushed > feed->seen)
        feed->seen = feed->base = hub->flushed;
    return feed->seen == feed->env->applied;
}

void feed_wait(struct feed *feed, int64_t ms)
{
    struct loop *loop = feed->env->loop;
    struct timer *timer = &feed_extras(feed)->timer;
    if (!timer->place || timer->at_ms > loop_now_ms(loop) + ms)
        loop_set_timer(loop, timer, timers_kind(loop_timers(loop), on_every), ms);
}

bool feed_has_quota(struct feed *feed)
{
    if (quota_has(feed->env->answers, 1))
        return true;
    feed->lacks_quota = true;
    feed_wait(feed, QUOTA_MS);
    return false;
}

static void on_reached(struct reach *reach)
{
    struct feed *feed = container_of(reach, struct feed_extras, reach)->feed;
    hub_visit(&feed->env->hub, feed);
}

void feed_reach(struct feed *feed, uint64_t seq)
{
    struct environment *env = feed->env;
    if (seq <= env->applied || !environment_follows(env))
        return;
    struct reach *reach = &feed_extras(feed)->reach;
    if (!reach_waits(reach) || reach->seq < seq)
        reach->seq = seq;
    reach_wait(&env->reaches, reach);
}

/* ---- keeping up ---- */

static bool wanted(const struct feed *feed, const struct update *update)
{
    struct facts facts = facts_of_update(update);
    list_each (link, &feed->live)
        if (filter_matches(&container_of(link, struct subscription, link)->filter, &facts))
            return true;
    return false;
}

static bool may_take(struct feed *feed, const struct bytes *frame)
{
    return frame->len <= LITTLE_UNSENT || feed_has_quota(feed);
}

/* Sends every matching update after seen, in order. Returns false if the rest is left for a
 * later visit, or if the socket is full. */
static bool take_recent(struct feed *feed)
{
    const struct recent *recent = &feed->env->recent;
    MEM_UNFILLED struct bytes *frames[TAKE_FRAMES];
    size_t count = 0, bytes = 0;
    uint32_t i = recent_after(recent, feed->seen), left = frame_places(feed->subscriptions);

    for (; i < recent->count && count < TAKE_FRAMES && bytes < TAKE_BYTES && left; i++) {
        struct update *update = recent_at(recent, i);
        struct bytes *frame = update->frames[feed->view->index];
        if (frame && wanted(feed, update)) {
            if (!may_take(feed, frame))
                break;
            frames[count++] = frame;
            bytes += frame->len;
        }
        feed->seen = update->seq;
        left--;
    }
    bool all = i == recent->count;
    if (all)
        feed->seen = feed->env->applied;
    feed->base = feed->seen;
    if (!count)
        return all;
    metric_add(M_FRAMES_SHARED, count);
    metric_add(M_ROWS_SENT, count);
    return feed->ops->send(feed, frames, count) && all;
}

/* ---- a walk ---- */

/* A walk goes through the order of changes, one frame at a time, when the ring does not
 * reach back to the feed's position.
 *
 *   orders of the live topics:   tag a  … 41 ── 57 ── 60 ── 71
 *                                tag b  … 44 ── 57 ────── 66          merged: 41 44 57 60 …
 *   seen = 40 ───────────────────────────►  a frame's worth, then seen = 60, more
 *
 * A frame ends at 64 KiB of rows, or after a bounded number of places, so that one walk
 * costs little of a turn. A run that is in several orders has one rev, and is sent once.
 * Some frames leave seen where it is, and take the busiest runs from the end (ahead.c).
 *
 * Below cold, only the store has every run: a feed whose position is below it reads pages
 * of the store first (catch_up.c). */

struct lane_place {
    const struct subscription *sub;
    uint32_t at; /* in its topic's order */
};

static uint32_t open_lanes(struct feed *feed, struct lane_place *lanes)
{
    uint32_t count = 0;
    list_each (link, &feed->live) {
        const struct subscription *sub = container_of(link, struct subscription, link);
        uint32_t at = order_after(&sub->topic->order, feed->seen);
        lanes[count++] = (struct lane_place){ sub, at };
    }
    return count;
}

/* Finds the place of one order with the lowest rev above `after`; its run is NULL if it was
 * cleared. */
static bool lane_head(const struct lane_place *lane, uint64_t after, struct place *head)
{
    if (lane->sub->filter.kind == TOPIC_RUN) {
        struct tracked *run = subscription_run(lane->sub);
        if (!run || run->run.rev <= after)
            return false;
        *head = (struct place){ run->run.rev, run };
        return true;
    }
    const struct order *order = &lane->sub->topic->order;
    if (lane->at >= order->count)
        return false;
    *head = order_place(order, lane->at);
    return true;
}

/* Steps over rev in each order that is given. Returns true if a subscription matches the
 * run. */
static bool step_lanes(struct lane_place *lanes, uint32_t count, uint64_t rev,
                       struct tracked **found)
{
    bool wanted = false;
    for (uint32_t i = 0; i < count; i++) {
        struct place head;
        if (!lane_head(&lanes[i], rev - 1, &head) || head.rev != rev)
            continue;
        lanes[i].at++;
        if (head.run && !wanted && filter_wants(&lanes[i].sub->filter, &head.run->run)) {
            wanted = true;
            *found = head.run;
        }
    }
    return wanted;
}

static bool lowest(const struct lane_place *lanes, uint32_t count, uint64_t after,
                   uint64_t *rev)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        struct place head;
        if (lane_head(&lanes[i], after, &head) && (!any || head.rev < *rev)) {
            *rev = head.rev;
            any = true;
        }
    }
    return any;
}

/* Sends one frame of the live subscriptions, merged by rev; some runs are sent ahead of the
 * walk (ahead.h). Returns true when the subscriptions are complete after it. */
static bool walk_live(struct feed *feed)
{
    struct environment *env = feed->env;
    if (!catch_up_is_for_live(feed) && !feed_has_quota(feed))
        return false;
    if (feed->seen < env->cold) {
        catch_up_visit_live(feed);
        return false;
    }
    if (feed_is_ahead(feed))
        return false;
    if (ahead_visit_live(feed))
        return false;
    struct lane_place *lanes = mem_new_array(struct lane_place, feed->subscriptions);
    uint32_t count = open_lanes(feed, lanes), looked = 0, most = frame_places(count);
    uint64_t at = feed->seen, rev = 0;
    bool more = false;

    frame_start();
    while (lowest(lanes, count, at, &rev)) {
        struct tracked *run = NULL;
        if (++looked > most) {
            more = true;
            break;
        }
        if (step_lanes(lanes, count, rev, &run) && !ahead_has(feed->ahead, rev)) {
            if (!frame_add(feed->view, &run->run, feed->base)) {
                more = true;
                break;
            }
            ahead_count_conflated(feed, &run->run);
        }
        at = rev;
    }
    free(lanes);
    feed->seen = more ? at : env->applied;
    if (more) {
        ahead_note_step(&feed->ahead, feed->seen, env->applied);
    } else {
        feed->base = feed->seen;
        ahead_forget(&feed->ahead);
    }
    if (more && !frame_count())
        return false; /* only cleared places, or runs that do not match, so far */
    return frame_send(feed, -1, feed->seen, more) && !more;
}

/* Returns true when the live subscriptions have everything. */
static bool visit_live(struct feed *feed)
{
    struct environment *env = feed->env;
    if (list_empty(&feed->live)) {
        feed->seen = feed->base = env->applied;
        ahead_forget(&feed->ahead);
    }
    if (feed->seen == env->applied && feed->base == feed->seen)
        return true;
    if (feed->seen == feed->base && feed->seen >= env->recent.dropped &&
        !feed_every_ms(feed))
        return take_recent(feed);
    return walk_live(feed);
}

/* ---- a visit ---- */

/* Returns true while the feed waits for the end of its interval. Only the beginning of a
 * walk waits; its frames then follow each other. */
static bool too_early(struct feed *feed)
{
    struct loop *loop = feed->env->loop;
    int64_t now = loop_now_ms(loop);

    if (!feed_every_ms(feed) || feed->seen == feed->env->applied ||
        feed->seen != feed->base)
        return false;
    if (now >= feed->extras->next_at) {
        feed->extras->next_at = now + feed->extras->every_ms;
        return false;
    }
    feed_wait(feed, feed->extras->next_at - now);
    return true;
}

static void on_every(struct timer *timer)
{
    struct feed *feed = container_of(timer, struct feed_extras, timer)->feed;
    hub_visit(&feed->env->hub, feed);
}

/* Logs that the feed has fallen behind, or has caught up. */
static void log_behind(struct feed *feed, bool is_behind)
{
    if (feed->is_behind == is_behind)
        return;
    feed->is_behind = is_behind;
    log_decision(is_behind ? "subscriptions behind" : "subscriptions back", feed->env->id,
                 NULL, is_behind ? "the socket is full" : "everything missed has been sent",
                 "subscriptions", log_number(feed->subscriptions), "seen",
                 log_number((int64_t)feed->seen), "newest",
                 log_number((int64_t)feed->env->applied), NULL);
}

/* Returns true if a subscription that catches up made progress. */
static bool catch_up(struct feed *feed, bool live_clean)
{
    return !list_empty(&feed->catching) && !catch_up_waits(feed) &&
           !catch_up_is_for_live(feed) && catch_up_visit(feed, live_clean);
}

/* The subscription waits for a snapshot, as if it was new. */
static void subscription_begin_again(struct subscription *sub)
{
    subscription_drop_own(sub);
    sub->own = mem_new(struct own_position);
    list_remove(&sub->link);
    list_append(&sub->feed->catching, &sub->link);
}

static void begin_extras_again(struct feed_extras *extras)
{
    reach_forget(&extras->reach);
    list_each (link, &extras->watches)
        watch_begin_again(container_of(link, struct watch, link));
}

/* Memory was loaded again, so no position means anything. */
static void begin_again(struct feed *feed)
{
    struct list subs;
    list_init(&subs);
    catch_up_abandon(feed);
    ahead_forget(&feed->ahead);
    if (feed->extras)
        begin_extras_again(feed->extras);
    list_move_all(&subs, &feed->live);
    list_move_all(&subs, &feed->catching);
    while (!list_empty(&subs))
        subscription_begin_again(container_of(subs.next, struct subscription, link));
    feed->generation = feed->env->generation;
    feed->seen = feed->base = feed->env->applied;
    metric_add(M_SNAPSHOTS, feed->subscriptions);
    feed->ops->begins_again(feed);
}

void feed_visit(struct feed *feed)
{
    struct hub *hub = &feed->env->hub;

    feed->visited = (uint8_t)feed->env->applied;
    if (!feed->lagging && hub->flushed > feed->seen && !is_outdated(feed))
        feed->seen = feed->base = hub->flushed; /* no change since then was for it */
    if (feed->ops->busy(feed)) {
        log_behind(feed, true);
        set_lagging(feed, true); /* feed_drained puts it in line again */
        return;
    }
    feed->lacks_quota = false;
    if (is_outdated(feed))
        begin_again(feed);
    bool early = too_early(feed);
    bool clean = !early && visit_live(feed);
    bool caught = !feed->ops->busy(feed) && catch_up(feed, clean);
    bool complete = clean && list_empty(&feed->catching);
    set_lagging(feed, !complete);
    if (complete || feed->ops->busy(feed))
        log_behind(feed, !complete);
    /* The feed waits for the timer, for memory, or for a page. */
    bool waits = early || feed->lacks_quota || feed_is_ahead(feed) ||
                 (catch_up_waits(feed) && (clean || catch_up_is_for_live(feed)));
    if (!complete && (caught || !waits) && !feed->ops->busy(feed))
        hub_visit(hub, feed);
    if (feed_watch_count(feed) && !feed->ops->busy(feed))
        watch_visit_all(feed);
}

int64_t feed_count(struct environment *env, const struct filter *filter, uint64_t after)
{
    struct hub *hub = &env->hub;
    if (after < env->cold)
        return -1;
    if (filter->kind == TOPIC_RUN) {
        struct tracked *run = environment_find(env, bytes_slice(filter->name));
        return run && run->run.rev > after && filter_wants(filter, &run->run);
    }
    struct topic *topic = hub_find(hub, filter->kind, bytes_slice(filter->name));
    if (!topic)
        return 0;
    if (!after && !filter->query && !filter->created_from)
        return topic->order.runs;
    const struct order *order = &topic->order;
    uint32_t from = order_after(order, after);
    int64_t count = 0;
    if (order->count - from > COUNT_PLACES)
        return -1;
    for (uint32_t i = from; i < order->count; i++) {
        struct place place = order_place(order, i);
        count += place.run && filter_wants(filter, &place.run->run);
    }
    return count;
}
