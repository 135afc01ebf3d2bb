/* ahead.c - chooses runs from the end of the orders, busiest first. */
#include "core/live/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/feed.h"
#include "core/live/frame.h"

enum {
    EVERY = 8,         /* one of this many frames is for runs sent ahead */
    EVERY_CROWDED = 2, /* the same while not all busy runs fit into one frame */
    ROWS = 64,
    SENT_MAX = 4096,
    /* Above this many remembered rows, only busy runs are sent ahead. */
    SENT_RESTING_MAX = SENT_MAX - 1024,
    STEPS_MAX = 1024,
    LAST_STEPS = 16, /* steps that show how often a run changes */
    WAIT_MAX = 16,   /* frames */
};

/* ---- rows and steps that were sent ---- */

void ahead_forget(struct ahead **place)
{
    struct ahead *ahead = *place;
    if (!ahead)
        return;
    free(ahead->sent);
    free(ahead->steps);
    free(ahead);
    *place = NULL;
}

static struct ahead *ahead_begin(struct ahead **place)
{
    if (!*place)
        *place = mem_new(struct ahead);
    return *place;
}

/* A walk that never ends has many steps: when the array is full, only the newer half is
 * kept. */
void ahead_note_step(struct ahead **place, uint64_t seen, uint64_t applied)
{
    struct ahead *ahead = ahead_begin(place);
    if (ahead->step_count == STEPS_MAX) {
        ahead->step_count /= 2;
        memmove(ahead->steps, ahead->steps + ahead->step_count,
                ahead->step_count * sizeof(struct walk_step));
    }
    if (!ahead->step_count || ahead->steps[ahead->step_count - 1].applied != applied) {
        size_t size = (ahead->step_count + 1) * sizeof(struct walk_step);
        ahead->steps = mem_resize(ahead->steps, size);
        ahead->steps[ahead->step_count++].applied = applied;
    }
    ahead->steps[ahead->step_count - 1].seen = seen;
}

/* The index of the first row sent ahead whose rev is not below the given one. */
static uint32_t place_of(const struct ahead *ahead, uint64_t rev)
{
    uint32_t low = 0, high = ahead->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ahead->sent[middle].rev < rev)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct sent_ahead *find(const struct ahead *ahead, uint64_t rev)
{
    uint32_t at = place_of(ahead, rev);
    return at < ahead->count && ahead->sent[at].rev == rev ? &ahead->sent[at] : NULL;
}

bool ahead_has(const struct ahead *ahead, uint64_t rev)
{
    return ahead && find(ahead, rev);
}

/* Returns true if the version of a run at rev, which was its newest until `next`, was sent:
 * ahead, or because it was still the newest when the walk passed rev. */
static bool was_sent(const struct ahead *ahead, uint64_t rev, uint64_t next)
{
    if (!ahead)
        return false;
    if (find(ahead, rev))
        return true;
    for (uint32_t i = 0; i < ahead->step_count; i++)
        if (rev <= ahead->steps[i].seen)
            return next > ahead->steps[i].applied;
    return false;
}

void ahead_count_conflated(const struct feed *feed, const struct run *run)
{
    uint64_t next = run->rev;
    if (run->whole_rev > feed->base || !feed->base)
        return;
    for (;;) {
        uint64_t rev = history_before(&feed->env->history, next);
        if (rev <= feed->base || was_sent(feed->ahead, rev, next))
            return;
        metric_add(M_CONFLATED, 1);
        next = rev;
    }
}

/* Moves the rows that begin at index `from` to index `to`. */
static void move(struct ahead *ahead, uint32_t to, uint32_t from)
{
    memmove(ahead->sent + to, ahead->sent + from,
            (ahead->count - from) * sizeof(struct sent_ahead));
    ahead->count = ahead->count + to - from;
}

/* Forgets the row of the same run that was sent ahead before this one. It is not looked up
 * again, so even the busiest run takes only one place. */
static void forget_older(struct ahead *ahead, const struct history *history, uint64_t rev)
{
    while (ahead->count && (rev = history_before(history, rev)) >= ahead->sent[0].rev) {
        uint32_t at = place_of(ahead, rev);
        if (at < ahead->count && ahead->sent[at].rev == rev) {
            move(ahead, at, at + 1);
            return;
        }
    }
}

static void remember(struct ahead *ahead, const struct history *history, uint64_t rev)
{
    forget_older(ahead, history, rev);
    uint32_t at = place_of(ahead, rev);
    ahead->sent = mem_resize(ahead->sent, (ahead->count + 1) * sizeof(struct sent_ahead));
    move(ahead, at + 1, at);
    ahead->sent[at] = (struct sent_ahead){ rev, ahead->frames };
}

/* ---- the busiest runs ---- */

struct candidate {
    const struct run *run;
    uint32_t changes; /* in how many of the last steps it had changed */
    uint32_t waits;   /* frames since it was sent ahead, at most WAIT_MAX */
};

static uint32_t first_step(const struct ahead *ahead)
{
    return ahead->step_count > LAST_STEPS ? ahead->step_count - LAST_STEPS : 0;
}

static struct candidate rank(const struct ahead *ahead, const struct history *history,
                             const struct run *run)
{
    struct candidate ranked = { run, 0, WAIT_MAX };
    uint64_t rev = run->rev;
    for (uint32_t i = ahead->step_count; i > first_step(ahead); i--) {
        uint64_t applied = ahead->steps[i - 1].applied;
        ranked.changes += rev > applied;
        for (; rev > applied; rev = history_before(history, rev)) {
            const struct sent_ahead *sent = find(ahead, rev);
            if (sent && ahead->frames - sent->frame < ranked.waits)
                ranked.waits = ahead->frames - sent->frame;
        }
    }
    return ranked;
}

/* The number of changes counts for much more than the wait. Otherwise the many runs that
 * change now and then would come before the one that always changes. */
static uint32_t weight(const struct candidate *one)
{
    return one->changes * one->changes * one->changes * one->waits;
}

static bool never_rests(const struct ahead *ahead, const struct candidate *one)
{
    uint32_t steps = ahead->step_count - first_step(ahead);
    return one->changes && one->changes * 4 >= steps * 3;
}

struct candidates {
    struct candidate list[ROWS]; /* by weight; equal ones newest first */
    uint32_t count;
};

static void add(struct candidates *best, struct candidate one)
{
    uint32_t at = best->count;
    while (at > 0 && weight(&best->list[at - 1]) < weight(&one))
        at--;
    if (at == ROWS)
        return;
    if (best->count < ROWS)
        best->count++;
    memmove(best->list + at + 1, best->list + at,
            (best->count - 1 - at) * sizeof(struct candidate));
    best->list[at] = one;
}

/* ---- the ends of the lists, merged ---- */

struct merged_end {
    const struct subscription *sub;
    uint32_t end; /* places of its topic's order that are not yet visited */
};

/* One walk: of the live subscriptions, or of a subscription that catches up. */
struct walk {
    struct feed *feed;
    struct ahead *ahead;
    struct merged_end *lanes;
    uint32_t count;
    uint64_t seen, base;
    int64_t id; /* the subscription that its frames name */
};

static struct merged_end lane_of(const struct subscription *sub)
{
    return (struct merged_end){ sub, sub->topic->order.count };
}

/* Finds the newest place of one list that is below `before`. */
static bool lane_tail(const struct merged_end *lane, uint64_t before, struct place *tail)
{
    if (lane->sub->filter.kind == TOPIC_RUN) {
        struct tracked *run = subscription_run(lane->sub);
        if (!run || run->run.rev >= before)
            return false;
        *tail = (struct place){ run->run.rev, run };
        return true;
    }
    if (!lane->end)
        return false;
    *tail = order_place(&lane->sub->topic->order, lane->end - 1);
    return true;
}

/* Steps back over the newest place below `before`, in every list that has it. Sets its rev,
 * and its run if a subscription matches it. Returns false if the lists have nothing else
 * above seen. */
static bool step_back(struct walk *walk, uint64_t before, struct place *newest)
{
    struct place tail;
    newest->rev = walk->seen;
    newest->run = NULL;
    for (uint32_t i = 0; i < walk->count; i++)
        if (lane_tail(&walk->lanes[i], before, &tail) && tail.rev > newest->rev)
            newest->rev = tail.rev;
    if (newest->rev == walk->seen)
        return false;
    for (uint32_t i = 0; i < walk->count; i++) {
        struct merged_end *lane = &walk->lanes[i];
        if (!lane_tail(lane, before, &tail) || tail.rev != newest->rev)
            continue;
        if (lane->end)
            lane->end--;
        if (tail.run && filter_wants(&lane->sub->filter, &tail.run->run))
            newest->run = tail.run;
    }
    return true;
}

static void find_candidates(struct walk *walk, struct candidates *best)
{
    const struct ahead *ahead = walk->ahead;
    const struct history *history = &walk->feed->env->history;
    uint64_t rested =
        ahead->step_count ? ahead->steps[first_step(ahead)].applied : UINT64_MAX;
    struct place place = { .rev = UINT64_MAX };
    uint32_t most = frame_places(walk->count);

    for (uint32_t i = 0; i < most && step_back(walk, place.rev, &place); i++) {
        if (best->count == ROWS && place.rev <= rested)
            return; /* older ones have no weight */
        if (place.run && !ahead_has(ahead, place.rev))
            add(best, rank(ahead, history, &place.run->run));
    }
}

/* ---- a frame ---- */

static bool has_room(const struct ahead *ahead, const struct candidate *one)
{
    return ahead->count < (never_rests(ahead, one) ? SENT_MAX : SENT_RESTING_MAX);
}

static bool send_ahead(struct walk *walk)
{
    struct ahead *ahead = walk->ahead;
    struct candidates best = { .count = 0 };
    const struct candidate *one = best.list;

    if (ahead->count + ROWS > SENT_RESTING_MAX)
        move(ahead, 0, place_of(ahead, walk->seen + 1)); /* the walk has passed these */
    find_candidates(walk, &best);
    frame_start();
    for (; one < best.list + best.count && has_room(ahead, one); one++) {
        if (!frame_add(walk->feed->view, one->run, walk->base))
            break;
        if (ahead == walk->feed->ahead)
            ahead_count_conflated(walk->feed, one->run);
        remember(ahead, &walk->feed->env->history, one->run->rev);
    }
    ahead->crowded =
        one < best.list + best.count && one->waits >= EVERY && never_rests(ahead, one);
    if (!frame_count())
        return false;
    frame_send(walk->feed, walk->id, walk->seen, true);
    return true;
}

static bool is_due(struct ahead **place)
{
    struct ahead *ahead = ahead_begin(place);
    ahead->frames++;
    return ahead->frames % (ahead->crowded ? EVERY_CROWDED : EVERY) == 0;
}

bool ahead_visit_live(struct feed *feed)
{
    if (!is_due(&feed->ahead))
        return false;
    struct walk walk = {
        .feed = feed, .ahead = feed->ahead, .seen = feed->seen, .base = feed->base, .id = -1
    };
    walk.lanes = mem_new_array(struct merged_end, feed->subscriptions);
    list_each (link, &feed->live)
        walk.lanes[walk.count++] = lane_of(container_of(link, struct subscription, link));
    bool sent = send_ahead(&walk);
    free(walk.lanes);
    return sent;
}

bool ahead_visit(struct feed *feed, struct subscription *sub)
{
    if (!is_due(&sub->own->ahead))
        return false;
    struct merged_end lane = lane_of(sub);
    struct walk walk = { .feed = feed,
                         .ahead = sub->own->ahead,
                         .lanes = &lane,
                         .count = 1,
                         .seen = sub->own->seen,
                         .base = sub->own->base,
                         .id = sub->id };
    return send_ahead(&walk);
}
