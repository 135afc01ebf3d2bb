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
 * Below cold only the store has every run: who fell so far behind reads its pages first
 * (catching.c). */
#include "live/walk.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "live/catching.h"
#include "live/frame.h"

enum {
    PLACES = 4096,   /* looked at in one visit */
    LONG_WALK = 256, /* places left from which tail frames are worth it */
    TAIL_ROWS = 64,
    TAIL_MAX = 4096, /* revs remembered; above, those that the walk has passed go */
    STEPS_MAX = 1024,
};

/* ---- what was sent, what was skipped ---- */

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

void walk_count_conflated(const struct feed *feed, const struct run *run)
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

/* ---- the live subscriptions, merged ---- */

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

/* The place with the lowest rev above `after` of one lane; its run is NULL when cleared. */
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

void walk_end(struct feed *feed)
{
    free(feed->tail);
    free(feed->steps);
    feed->tail = NULL;
    feed->steps = NULL;
    feed->tail_count = feed->step_count = 0;
    feed->walked = 0;
}

/* Of a walk that never ends only the newer half is kept. */
void walk_note_step(struct feed *feed, uint64_t known)
{
    uint64_t applied = known < feed->env->applied ? known : feed->env->applied;
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
    for (uint32_t i = order->count; i > longest->at && frame_count() < TAIL_ROWS; i--) {
        struct place place = order_place(order, i - 1);
        if (++looked > PLACES)
            break;
        if (!place.run || !filter_wants(&longest->sub->filter, &place.run->run) ||
            sent_ahead(feed, place.rev))
            continue;
        if (!frame_add(feed->view, &place.run->run, feed->base))
            break;
        walk_count_conflated(feed, &place.run->run);
        newest[frame_count() - 1] = place.rev;
    }
    if (!frame_count())
        return false;
    feed->tail =
        mem_resize(feed->tail, (feed->tail_count + frame_count()) * sizeof(uint64_t));
    memcpy(feed->tail + feed->tail_count, newest, frame_count() * sizeof(uint64_t));
    feed->tail_count += (uint32_t)frame_count();
    frame_send(feed, -1, feed->seen, true);
    return true;
}

bool walk_live(struct feed *feed)
{
    struct environment *env = feed->env;
    if (feed->seen < env->cold) {
        catching_visit_live(feed);
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
            walk_count_conflated(feed, &run->run);
        }
        at = rev;
    }
    free(lanes);
    feed->seen = more ? at : env->applied;
    if (more) {
        walk_note_step(feed, env->applied);
    } else {
        feed->base = feed->seen;
        walk_end(feed);
    }
    if (more && !frame_count())
        return false; /* only cleared places so far */
    return frame_send(feed, -1, feed->seen, more) && !more;
}
