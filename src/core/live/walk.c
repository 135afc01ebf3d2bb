/* walk.c - a walk in the order of changes, one frame at a time.
 *
 *   orders of the live topics:   tag a  … 41 ── 57 ── 60 ── 71
 *                                tag b  … 44 ── 57 ────── 66          merged: 41 44 57 60 …
 *   seen = 40 ───────────────────────────►  a frame's worth, then seen = 60, more
 *
 * A frame ends at 64 KiB of rows, or after a bounded number of places, so that one walk
 * costs little of a turn. A run that stands in several lists has one rev and goes once.
 * Some frames leave seen where it is and take from the end what never rests (ahead.c).
 *
 * Below cold only the store has every run: who fell so far behind reads its pages first
 * (catch_up.c). */
#include "core/live/walk.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/catch_up.h"
#include "core/live/frame.h"

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

bool walk_live(struct feed *feed)
{
    struct environment *env = feed->env;
    if (!catch_up_is_for_live(feed) && !feed_has_room(feed))
        return false;
    if (feed->seen < env->cold) {
        catch_up_visit_live(feed);
        return false;
    }
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
        return false; /* only cleared places so far */
    return frame_send(feed, -1, feed->seen, more) && !more;
}
