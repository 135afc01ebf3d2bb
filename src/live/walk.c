/* walk.c - a walk in the order of changes, one frame at a time.
 *
 *   orders of the live topics:   tag a  … 41 ── 57 ── 60 ── 71
 *                                tag b  … 44 ── 57 ────── 66          merged: 41 44 57 60 …
 *   seen = 40 ───────────────────────────►  a frame's worth, then seen = 60, more
 *
 * A frame ends at 64 KiB of rows, or after a bounded number of places, so that one walk
 * costs little of a turn. A run that stands in several lists has one rev and goes once.
 * While a walk is long, every eighth frame takes the newest runs and leaves seen where it
 * is: what never rests is not starved; the revs sent ahead are remembered and not repeated.
 *
 * Below cold only the store has every run: a catching subscription pages it (feed_read); a
 * live one that fell so far behind is told to come back with its position. */
#include "live/walk.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "live/render.h"
#include "live/wire.h"

enum {
    FRAME_BYTES = 60 * 1024, /* of rows; the envelope and a last row fit into 64 KiB */
    PLACES = 4096,           /* looked at in one visit */
    LONG_WALK = 256,         /* places left from which tail frames are worth it */
    TAIL_ROWS = 64,
    TAIL_MAX = 4096, /* revs remembered; above, those that the walk has passed go */
    STEPS_MAX = 1024,
    PAGE_RUNS = 256,
    PAGE_BYTES = 256 * 1024,
};

/* ---- one frame ---- */

struct frame_buf {
    struct buf rows;
    size_t count;
};

static struct frame_buf frame; /* one at a time, on the loop thread; kept */

static void frame_start(void)
{
    buf_clear(&frame.rows);
    frame.count = 0;
}

static bool sent_ahead(const struct feed *feed, uint64_t rev)
{
    for (uint32_t i = 0; i < feed->tail_count; i++)
        if (feed->tail[i] == rev)
            return true;
    return false;
}

/* The version of a run at rev, which was its newest until `next`: this walk has sent it if
 * it was still the newest when a frame came past rev. */
static bool was_sent(const struct feed *feed, uint64_t rev, uint64_t next)
{
    if (sent_ahead(feed, rev))
        return true;
    for (uint32_t i = 0; i < feed->step_count; i++)
        if (rev <= feed->steps[i].seen)
            return next > feed->steps[i].applied;
    return false;
}

/* Intermediate versions that a live client misses: those between this one and the newest
 * that was sent. Whole rows are not judged. */
static void count_conflated(const struct feed *feed, const struct run *run)
{
    uint64_t next = run->rev;
    if (run->whole_rev > feed->base || !feed->base)
        return;
    for (;;) {
        uint64_t rev = history_before(&feed->env->history, next);
        if (rev <= feed->base || was_sent(feed, rev, next))
            return;
        metric_add(M_CONFLATED, 1);
        next = rev;
    }
}

/* Adds the row unless the frame would exceed its size; a single larger run goes alone. */
static bool frame_add(const struct view *view, const struct run *run, uint64_t base)
{
    size_t before = frame.rows.len;
    if (frame.count && view->encoding == ENCODING_JSON)
        buf_add_char(&frame.rows, ',');
    render_since(view, run, base, &frame.rows);
    if (frame.count && frame.rows.len > FRAME_BYTES) {
        frame.rows.len = before;
        return false;
    }
    frame.count++;
    return true;
}

static bool frame_send(struct feed *feed, int64_t id, uint64_t seq, bool more)
{
    static struct buf message;
    const struct view *view = feed->view;

    buf_clear(&message);
    wire_rows(view->encoding, id, seq, more, buf_slice(&frame.rows), frame.count, &message);
    struct bytes *wrapped =
        view->wrap(buf_slice(&message), view->encoding == ENCODING_MSGPACK);
    metric_add(M_FRAMES_WALKED, 1);
    metric_add(M_ROWS_SENT, frame.count);
    bool sent = feed->ops->send(feed, &wrapped, 1);
    bytes_unref(wrapped);
    if (frame.rows.capacity > 4 * FRAME_BYTES)
        buf_finish(&frame.rows);
    if (message.capacity > 4 * FRAME_BYTES)
        buf_finish(&message);
    return sent;
}

/* ---- the live subscriptions, merged ---- */

struct lane_place {
    const struct subscription *sub;
    uint32_t at; /* in its topic's order */
};

static struct tracked *own_run(const struct subscription *sub)
{
    return environment_find(sub->feed->env, bytes_slice(sub->filter.name));
}

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

/* The place with the lowest rev above `after` of one lane; its run is NULL when cleared. */
static bool lane_head(const struct lane_place *lane, uint64_t after, struct place *head)
{
    if (lane->sub->filter.kind == TOPIC_RUN) {
        struct tracked *run = own_run(lane->sub);
        if (!run || run->run.rev <= after)
            return false;
        *head = (struct place){ run->run.rev, run };
        return true;
    }
    const struct order *order = &lane->sub->topic->order;
    if (lane->at >= order->count)
        return false;
    *head = order->places[lane->at];
    return true;
}

static bool matches(const struct filter *filter, const struct run *run)
{
    struct facts facts = facts_of(run);
    return filter_matches(filter, &facts);
}

/* Steps every lane that stands at rev over it; true when one of them wants the run. */
static bool step_lanes(struct lane_place *lanes, uint32_t count, uint64_t rev,
                       struct tracked **found)
{
    bool wanted = false;
    for (uint32_t i = 0; i < count; i++) {
        struct place head;
        if (!lane_head(&lanes[i], rev - 1, &head) || head.rev != rev)
            continue;
        lanes[i].at++;
        if (head.run && !wanted && matches(&lanes[i].sub->filter, &head.run->run)) {
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

void walk_end(struct feed *feed)
{
    free(feed->tail);
    free(feed->steps);
    feed->tail = NULL;
    feed->steps = NULL;
    feed->tail_count = feed->step_count = 0;
    feed->walked = 0;
}

/* The walk came to feed->seen. Of a walk that never ends only the newer half is kept. */
static void note_step(struct feed *feed)
{
    uint64_t applied = feed->env->applied;
    if (feed->step_count == STEPS_MAX) {
        feed->step_count /= 2;
        memmove(feed->steps, feed->steps + feed->step_count,
                feed->step_count * sizeof(struct walk_step));
    }
    if (!feed->step_count || feed->steps[feed->step_count - 1].applied != applied) {
        size_t size = (feed->step_count + 1) * sizeof(struct walk_step);
        feed->steps = mem_resize(feed->steps, size);
        feed->steps[feed->step_count++].applied = applied;
    }
    feed->steps[feed->step_count - 1].seen = feed->seen;
}

static void forget_passed(struct feed *feed)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < feed->tail_count; i++)
        if (feed->tail[i] > feed->seen)
            feed->tail[kept++] = feed->tail[i];
    feed->tail_count = kept;
}

static uint32_t places_left(const struct lane_place *lanes, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        if (lanes[i].sub->filter.kind != TOPIC_RUN)
            left += lanes[i].sub->topic->order.count - lanes[i].at;
    return left;
}

static const struct lane_place *longest_of(const struct lane_place *lanes, uint32_t count)
{
    const struct lane_place *longest = &lanes[0];
    for (uint32_t i = 1; i < count; i++)
        if (lanes[i].sub->topic->order.count - lanes[i].at >
            longest->sub->topic->order.count - longest->at)
            longest = &lanes[i];
    return longest;
}

/* The newest runs of the longest list, as many as fit, newest first; seen stays. */
static bool walk_tail(struct feed *feed, const struct lane_place *lanes, uint32_t count)
{
    const struct lane_place *longest = longest_of(lanes, count);
    const struct order *order = &longest->sub->topic->order;
    uint64_t newest[TAIL_ROWS];
    uint32_t looked = 0;

    if (feed->tail_count + TAIL_ROWS > TAIL_MAX)
        forget_passed(feed);
    if (feed->tail_count + TAIL_ROWS > TAIL_MAX)
        return false;
    frame_start();
    for (uint32_t i = order->count; i > longest->at && frame.count < TAIL_ROWS; i--) {
        struct place place = order->places[i - 1];
        if (++looked > PLACES)
            break;
        if (!place.run || !matches(&longest->sub->filter, &place.run->run) ||
            sent_ahead(feed, place.rev))
            continue;
        if (!frame_add(feed->view, &place.run->run, feed->base))
            break;
        count_conflated(feed, &place.run->run);
        newest[frame.count - 1] = place.rev;
    }
    if (!frame.count)
        return false;
    feed->tail =
        mem_resize(feed->tail, (feed->tail_count + frame.count) * sizeof(uint64_t));
    memcpy(feed->tail + feed->tail_count, newest, frame.count * sizeof(uint64_t));
    feed->tail_count += (uint32_t)frame.count;
    frame_send(feed, -1, feed->seen, true);
    return true;
}

bool walk_live(struct feed *feed)
{
    struct environment *env = feed->env;
    if (feed->seen < env->cold) {
        feed->ops->lost(feed);
        return false;
    }
    struct lane_place *lanes = mem_new_array(struct lane_place, feed->subscriptions);
    uint32_t count = open_lanes(feed, lanes), looked = 0;
    uint64_t at = feed->seen, rev = 0;
    bool more = false;

    if (places_left(lanes, count) > LONG_WALK && ++feed->walked % 8 == 0 &&
        walk_tail(feed, lanes, count)) {
        free(lanes);
        return false;
    }
    frame_start();
    while (lowest(lanes, count, at, &rev)) {
        struct tracked *run = NULL;
        if (++looked > PLACES) {
            more = true;
            break;
        }
        if (step_lanes(lanes, count, rev, &run) && !sent_ahead(feed, rev)) {
            if (!frame_add(feed->view, &run->run, feed->base)) {
                more = true;
                break;
            }
            count_conflated(feed, &run->run);
        }
        at = rev;
    }
    free(lanes);
    feed->seen = more ? at : env->applied;
    if (more) {
        note_step(feed);
    } else {
        feed->base = feed->seen;
        walk_end(feed);
    }
    if (more && !frame.count)
        return false; /* only cleared places so far */
    return frame_send(feed, -1, feed->seen, more) && !more;
}

/* ---- one catching subscription ---- */

/* Its part of the orders. True when nothing is left; the last frame is not sent then, so
 * that it can go without `more` when the live ones are complete too. */
static bool collect(struct feed *feed, struct subscription *sub, uint64_t *at)
{
    const struct order *order = &sub->topic->order;
    uint32_t looked = 0;

    *at = sub->seen;
    if (sub->filter.kind == TOPIC_RUN) {
        struct tracked *run = own_run(sub);
        if (run && run->run.rev > sub->seen && matches(&sub->filter, &run->run))
            frame_add(feed->view, &run->run, sub->base);
        return true;
    }
    for (uint32_t i = order_after(order, sub->seen); i < order->count; i++) {
        const struct place *place = &order->places[i];
        if (++looked > PLACES)
            return false;
        if (place->run && matches(&sub->filter, &place->run->run) &&
            !frame_add(feed->view, &place->run->run, sub->base))
            return false;
        *at = place->rev;
    }
    return true;
}

static void to_the_end_of_the_line(struct feed *feed, struct subscription *sub)
{
    list_remove(&sub->link);
    list_append(&feed->catching, &sub->link);
}

static bool walk_memory(struct feed *feed, struct subscription *sub, bool live_clean)
{
    uint64_t applied = feed->env->applied, at;

    frame_start();
    if (!collect(feed, sub, &at)) {
        sub->seen = at;
        to_the_end_of_the_line(feed, sub);
        if (frame.count)
            frame_send(feed, sub->id, sub->seen, true);
        return true;
    }
    if (!live_clean) {
        to_the_end_of_the_line(feed, sub);
        return false; /* it joins when the live ones are complete */
    }
    list_remove(&sub->link);
    list_append(&feed->live, &sub->link);
    sub->state = SUBSCRIPTION_LIVE;
    feed->seen = feed->base = applied;
    frame_send(feed, sub->id, applied, false);
    return true;
}

/* ---- the store, below cold ---- */

struct feed_read {
    struct store_walk walk;
    struct store_load load; /* of a filter by run */
    struct feed *feed;      /* NULL: abandoned */
    struct subscription *sub;
    size_t next; /* rows of the page already sent */
    bool arrived, failed;
};

static void read_destroy(struct feed_read *read)
{
    for (size_t i = 0; i < read->walk.count; i++)
        run_finish(&read->walk.runs[i]);
    free(read->walk.runs);
    bytes_unref(read->walk.name);
    bytes_unref(read->load.name);
    free(read);
}

bool walk_is_for(const struct feed *feed, const struct subscription *sub)
{
    return feed->read && feed->read->sub == sub;
}

bool walk_is_waiting(const struct feed *feed)
{
    return feed->read && !feed->read->arrived;
}

void walk_abandon(struct feed *feed)
{
    struct feed_read *read = feed->read;
    feed->read = NULL;
    if (read && read->arrived)
        read_destroy(read);
    else if (read)
        read->feed = NULL;
}

static void arrived(struct feed_read *read, enum store_status status)
{
    read->arrived = true;
    read->failed = status != STORE_OK && status != STORE_MISSING;
    if (read->feed)
        hub_visit(&read->feed->env->hub, read->feed);
    else
        read_destroy(read);
}

static void on_page(struct store_walk *walk, enum store_status status)
{
    arrived(container_of(walk, struct feed_read, walk), status);
}

/* One run becomes a page of one. */
static void on_run(struct store_load *load, enum store_status status)
{
    struct feed_read *read = container_of(load, struct feed_read, load);
    if (status == STORE_OK) {
        read->walk.runs = mem_new(struct run);
        read->walk.runs[0] = load->run;
        read->walk.count = 1;
    }
    arrived(read, status);
}

static void read_begin(struct feed *feed, struct subscription *sub)
{
    struct environment *env = feed->env;
    struct feed_read *read = mem_new(struct feed_read);
    const struct filter *filter = &sub->filter;

    read->feed = feed;
    read->sub = sub;
    feed->read = read;
    read->walk = (struct store_walk){ .env = env->number,
                                      .kind = WALK_ALL,
                                      .after = sub->seen,
                                      .up_to = env->cold,
                                      .created_from = filter->created_from,
                                      .limit = PAGE_RUNS,
                                      .byte_limit = PAGE_BYTES,
                                      .done = on_page };
    if (filter->kind == TOPIC_RUN) {
        read->load = (struct store_load){ .env = env->number,
                                          .name = bytes_ref(filter->name),
                                          .done = on_run };
        env->store->ops->load(env->store, &read->load);
        return;
    }
    if (filter->kind == TOPIC_TAG) {
        read->walk.kind = WALK_TAG;
        read->walk.name = bytes_ref(filter->tags[0]);
    } else if (filter->kind == TOPIC_BATCH) {
        read->walk.kind = WALK_BATCH;
        read->walk.name = bytes_ref(filter->name);
    }
    env->store->ops->walk(env->store, &read->walk);
}

static void walk_page(struct feed *feed, struct feed_read *read)
{
    struct subscription *sub = read->sub;
    frame_start();
    while (read->next < read->walk.count) {
        const struct run *run = &read->walk.runs[read->next];
        if (run->rev > sub->seen && run->rev <= read->walk.up_to &&
            matches(&sub->filter, run) && !frame_add(feed->view, run, sub->base))
            break;
        if (run->rev > sub->seen && run->rev <= read->walk.up_to)
            sub->seen = run->rev;
        read->next++;
    }
    if (read->next == read->walk.count) {
        if (!read->walk.more && sub->seen < read->walk.up_to)
            sub->seen = read->walk.up_to;
        feed->read = NULL;
        read_destroy(read);
    }
    if (frame.count)
        frame_send(feed, sub->id, sub->seen, true);
}

bool walk_catching(struct feed *feed, bool live_clean)
{
    struct subscription *sub = container_of(feed->catching.next, struct subscription, link);
    struct feed_read *read = feed->read;

    if (read && read->failed) {
        walk_abandon(feed);
        feed->ops->lost(feed);
        return false;
    }
    if (read) {
        walk_page(feed, read);
        return true;
    }
    if (sub->seen < feed->env->cold) {
        read_begin(feed, sub);
        return false;
    }
    return walk_memory(feed, sub, live_clean);
}

int64_t feed_count(struct environment *env, const struct filter *filter, uint64_t after)
{
    struct hub *hub = &env->hub;
    if (after < env->cold)
        return -1;
    if (filter->kind == TOPIC_RUN) {
        struct tracked *run = environment_find(env, bytes_slice(filter->name));
        return run && run->run.rev > after && matches(filter, &run->run);
    }
    struct slice name = filter->kind == TOPIC_TAG ? bytes_slice(filter->tags[0])
                                                  : bytes_slice(filter->name);
    struct topic *topic = hub_topic(hub, filter->kind, name, false);
    if (!topic)
        return 0;
    if (!after && filter->tag_count < 2 && !filter->task_count && !filter->created_from)
        return topic->order.runs;
    const struct order *order = &topic->order;
    uint32_t from = order_after(order, after);
    int64_t count = 0;
    if (order->count - from > 4 * PLACES)
        return -1;
    for (uint32_t i = from; i < order->count; i++)
        count += order->places[i].run && matches(filter, &order->places[i].run->run);
    return count;
}
