/* queue.c - subqueues of waiting items, and which of their heads comes next.
 *
 * Items wait in heaps of four levels, all in the same order. Each audience has its own:
 *
 *   queues::ready     heads of groups, whose limits have a free slot
 *   └ group           of limits: heads of classes, whose queue has one, and is not paused
 *     └ class         of a queue and a set of limits: heads of shares
 *       └ share       of a subqueue, which has a free slot, as its pools have: its items
 *         └ lane      of keys that gates name: in place of the share's items, their heads
 *
 * After any of that has changed, refresh adds, moves or removes the heads. So the next item
 * is at the top, and a change costs the logarithm of the number of items that wait. When
 * a limit becomes full, or has a slot again, that also visits the groups that need it, and a
 * pool its shares, but no other items. Another limit for each key costs more: it visits the
 * subqueues of its queue, or the pools of its limit, that have something running; from or to
 * 0, all pools of the limit. If there are many, they are visited in parts, and the queue or
 * limit is closed until all were: heads that are stale are below that. A bucket without a
 * token (queue_rates.c) is like a limit, or a pool, that is full.
 *
 * Heads are ordered by their round before anything else. A head that was served, or that is
 * new, belongs to the round after that of the last one served. So everything in the heap
 * now is served once before any of it is served twice, even when new queues come all the
 * time. */
#include "core/queues/queue_reserve.h"

#include <assert.h>
#include <stdlib.h>

#include "base/metrics.h"

enum { LANES_MAX = 64 };

/* ---- free slots ---- */

/* These require that something is ready, and answer for its head. If slots are kept for an
 * item, it is the head wherever its own subqueue and pools have room below. */
static bool group_is_open(const struct group_offer *offer)
{
    const struct subqueue_share *head = offer->ready.nodes[0].item->share;
    for (uint32_t i = 0; i < offer->group->count; i++)
        if (!group_need_is_open(&offer->group->needs[i], head))
            return false;
    return true;
}

/* Whatever the group's limits are. */
static bool class_is_open(const struct slot_class *class)
{
    const struct subqueue_share *head = class->ready.nodes[0].item->share;
    const struct queue *queue = class->offer->queue;
    for (uint32_t i = 0; i < slot_set_own(class->set); i++)
        if (!queue_is_open(class->needs[i].limit, head))
            return false;
    return queue_limit_of(queue) > 0 && queue_is_open(queue, head);
}

/* A limit of 0 of the queue itself is handled by class_is_open: it concerns every subqueue,
 * without a visit to each. A lane is not visited when the subqueue changes. */
static bool share_is_free(const struct subqueue_share *share)
{
    const struct subqueue *own = share->subqueue;
    const struct subqueue_share *head = share->items.nodes[0].item->share;
    uint32_t taken = own->running + subqueue_kept_from(own, head);
    if (!share->within && taken && taken >= queue_limit_of(own->queue))
        return false;
    if (!share->within && subqueue_is_dry(own, head))
        return false;
    for (uint32_t i = 0; i < share->count; i++)
        if (!pool_is_open(share->needs[i].pool, head))
            return false;
    return true;
}

/* ---- heads ---- */

/* Returns the round of the share among those of its class. A new head waits for the next
 * round. An item for which slots are kept is before all rounds. */
static uint64_t round_of(const struct subqueue_share *share)
{
    const struct slot_class *class = share->class;
    uint32_t place = share->ready_place;
    uint64_t round = place ? class->ready.nodes[place - 1].round : KEEPER_ROUND;
    if (share->items.nodes[0].item->share->keeps)
        return KEEPER_ROUND;
    return round == KEEPER_ROUND ? class->offer->round + 1 : round;
}

static void remove_head(const struct queues *queues, struct queue_heap *heap,
                        uint32_t place)
{
    if (place)
        queue_heap_remove(heap, queues->id, place);
}

static void refresh_group(struct queues *queues, struct group_offer *offer)
{
    struct queue_heap *heap = &queues->ready[offer->audience].heap;
    if (offer->ready.count && group_is_open(offer)) {
        struct queue_node head = offer->ready.nodes[0];
        head.place = &offer->ready_place;
        queue_heap_put(heap, queues->id, head);
    } else {
        remove_head(queues, heap, offer->ready_place);
    }
}

/* A queue that had no head waits for the next round. Its classes take its turn together. */
static void put_class(struct queues *queues, struct slot_class *class)
{
    struct offer *offer = class->offer;
    struct queue_item *head = class->ready.nodes[0].item;
    if (!class->ready_place && !offer->heads++)
        offer->turn = queues->ready[offer->audience].round + 1;
    queue_heap_put(
        &class->among->ready, queues->id,
        (struct queue_node){ .item = head,
                             .round = head->share->keeps ? KEEPER_ROUND : offer->turn,
                             .place = &class->ready_place });
}

static void refresh_class(struct queues *queues, struct slot_class *class)
{
    if (class->ready.count && class_is_open(class)) {
        put_class(queues, class);
    } else if (class->ready_place) {
        queue_heap_remove(&class->among->ready, queues->id, class->ready_place);
        class->offer->heads--;
    }
    refresh_group(queues, class->among);
}

/* Heads of lanes take no turns: the oldest item comes first. */
static void refresh_lane(struct queues *queues, struct subqueue_share *lane)
{
    struct queue_heap *heads = &lane->within->items;
    if (lane->items.count && share_is_free(lane))
        queue_heap_put(heads, queues->id,
                       (struct queue_node){ .item = lane->items.nodes[0].item,
                                            .round = KEEPER_ROUND + !lane->keeps,
                                            .place = &lane->ready_place });
    else
        remove_head(queues, heads, lane->ready_place);
}

static void refresh_share(struct queues *queues, struct subqueue_share *share)
{
    struct slot_class *class = share->class;
    if (share->within) {
        refresh_lane(queues, share);
        share = share->within;
    }
    if (share->items.count && share_is_free(share))
        queue_heap_put(&class->ready, queues->id,
                       (struct queue_node){ .item = share->items.nodes[0].item,
                                            .round = round_of(share),
                                            .place = &share->ready_place });
    else
        remove_head(queues, &class->ready, share->ready_place);
    refresh_class(queues, class);
}

static void refresh_offer(struct queues *queues, struct offer *offer)
{
    list_each (link, &offer->classes)
        refresh_class(queues, container_of(link, struct slot_class, link));
}

void queue_refresh_offers(struct queues *queues, struct queue *queue)
{
    list_each (link, &queue->offers)
        refresh_offer(queues, container_of(link, struct offer, link));
}

static void refresh_subqueue(struct queues *queues, struct subqueue *subqueue)
{
    list_each (link, &subqueue->shares)
        refresh_share(queues, container_of(link, struct subqueue_share, link));
}

static void refresh_offers_of(struct queues *queues, struct slot_group *group)
{
    list_each (link, &group->offers)
        refresh_group(queues, container_of(link, struct group_offer, link));
}

void queue_refresh_pool(struct queues *queues, struct subqueue *pool)
{
    refresh_subqueue(queues, pool);
    list_each (link, &pool->users)
        refresh_share(queues, container_of(link, struct share_need, link)->share);
    list_each (link, &pool->groups)
        refresh_offers_of(queues, container_of(link, struct group_need, in_pool)->group);
}

/* The slots of a queue or limit, all its keys together, have changed. */
static void refresh_limit(struct queues *queues, struct queue *limit)
{
    queue_refresh_offers(queues, limit);
    list_each (link, &limit->classes)
        refresh_class(queues, container_of(link, struct class_need, link)->class);
    list_each (link, &limit->groups)
        refresh_offers_of(queues, container_of(link, struct group_need, link)->group);
}

static void refresh(struct queues *queues, struct subqueue *subqueue)
{
    refresh_subqueue(queues, subqueue);
    queue_refresh_offers(queues, subqueue->queue);
}

/* ---- kept slots ---- */

/* The slots that are kept for the share have changed. */
static void refresh_needs(struct queues *queues, struct subqueue_share *share)
{
    struct subqueue *needs[RESERVE_NEEDS_MAX];
    uint32_t count = reserve_needs(share, needs);
    refresh_share(queues, share);
    for (uint32_t i = 0; i < count; i++) {
        queue_refresh_pool(queues, needs[i]);
        refresh_limit(queues, needs[i]->queue);
    }
}

static void stop_keeping(struct queues *queues, struct subqueue_share *share)
{
    reserve_end(share);
    refresh_needs(queues, share);
}

/* Keeps slots for the head of the share, unless an older one has some of them. */
static void keep_slots(struct queues *queues, struct subqueue_share *share)
{
    struct subqueue_share *younger;
    if (!reserve_may_keep(queues, share))
        return;
    while ((younger = reserve_find_other(share)))
        stop_keeping(queues, younger);
    reserve_begin(queues, share);
    refresh_needs(queues, share);
}

/* The item is about to leave its share. The next head begins to count. */
static void forget_passes(struct queues *queues, const struct queue_item *item)
{
    struct subqueue_share *share = item->share;
    if (item->place > 1)
        return;
    share->passes = 0;
    if (share->keeps)
        stop_keeping(queues, share);
}

void queue_check_keeper(struct queues *queues, const struct queue *queue)
{
    if (!queue->keeper)
        return;
    if (reserve_may_keep(queues, queue->keeper))
        refresh_needs(queues, queue->keeper);
    else
        stop_keeping(queues, queue->keeper);
}

/* ---- settings ---- */

void queue_refresh_total(struct queues *queues, struct queue *queue)
{
    queue_check_keeper(queues, queue);
    refresh_limit(queues, queue);
}

/* ---- running items ---- */

static void count_running(struct subqueue *subqueue, int more)
{
    if (!subqueue->running)
        list_append(&subqueue->queue->busy, &subqueue->busy);
    subqueue->running += (uint32_t)more;
    if (!subqueue->running)
        list_remove(&subqueue->busy);
}

/* Counts one more item that runs in the subqueue (1), or one less (-1), in its queue, in the
 * environment, and in the limits and gates of its demand: once in each. */
static void count_slots(struct queues *queues, struct subqueue *subqueue,
                        const struct slot_demand *demand, int more)
{
    const struct slot_set *set = slot_demand_set(demand);
    struct subqueue *pools[SLOT_SET_MAX];
    uint32_t count = slot_demand_pools(demand, subqueue, pools);
    count_running(subqueue, more);
    subqueue->queue->running += (uint32_t)more;
    queues->running += (uint32_t)more;
    metric_add(M_RUNS_EXECUTING, more);
    for (uint32_t i = 0; i < count; i++)
        count_running(pools[i], more);
    for (uint32_t i = 0; i < slot_set_count(set); i++)
        if (set->limits[i] != subqueue->queue)
            set->limits[i]->running += (uint32_t)more;
}

/* Returns true if a limit became full when one more ran (1), or has a free slot again when
 * one less did (-1). */
static bool has_turned(uint32_t running, uint32_t limit, int more)
{
    return more > 0 ? running == limit : running + 1 == limit;
}

/* The rest of what `refresh` does: items of other queues may need these slots. */
static void refresh_turned(struct queues *queues, struct subqueue *pool, int more)
{
    if (pool->queue->keeper || has_turned(pool->running, subqueue_limit(pool), more))
        queue_refresh_pool(queues, pool);
}

static void refresh_total(struct queues *queues, struct queue *limit, int more)
{
    if (limit->keeper || has_turned(limit->running, queue_total_of(limit), more))
        refresh_limit(queues, limit);
}

/* After count_slots. Frees pools that nothing needs any more. */
static void refresh_demand(struct queues *queues, struct subqueue *subqueue,
                           const struct slot_demand *demand, int more)
{
    const struct slot_set *set = slot_demand_set(demand);
    struct subqueue *pools[SLOT_SET_MAX];
    uint32_t count = slot_demand_pools(demand, subqueue, pools);
    refresh_turned(queues, subqueue, more);
    refresh_total(queues, subqueue->queue, more);
    for (uint32_t i = 0; i < slot_set_count(set); i++)
        if (set->limits[i] != subqueue->queue)
            refresh_total(queues, set->limits[i], more);
    for (uint32_t i = 0; i < count; i++) {
        refresh_turned(queues, pools[i], more);
        subqueue_free_if_empty(queues, pools[i]);
    }
}

static uint32_t audience_of(const struct subqueue_share *share)
{
    return share->class->offer->audience;
}

/* Counts one more item that waits in the share (1), or one less (-1). Queues count only
 * those of their own, not those that need a gate. */
static void count_waiting(struct queues *queues, const struct subqueue_share *share,
                          int more)
{
    queues->waiting_for[audience_of(share)] += (uint32_t)more;
    if (audience_of(share) == AUDIENCE_RESUMED)
        return;
    share->subqueue->in_line += (uint32_t)more;
    share->subqueue->queue->waiting += (uint32_t)more;
    queues->waiting += (uint32_t)more;
    for (uint32_t i = 0; i < slot_set_count(share->class->set); i++)
        if (share->class->set->limits[i]->is_limit)
            share->class->set->limits[i]->waiting += (uint32_t)more;
    for (const struct subqueue_share *of = share; of; of = of->within)
        for (uint32_t i = 0; i < of->count; i++)
            of->needs[i].pool->waiting += (uint32_t)more;
    metric_add(M_RUNS_QUEUED, more);
}

/* Takes the item out of its subqueue, and returns the subqueue, or NULL if it had none. The
 * subqueue stays until release, so that the item can return to it. The heads that queues::ready compares
 * must still exist: hence the refresh. */
static struct subqueue *detach(struct queues *queues, struct queue_item *item)
{
    struct subqueue *subqueue = item->subqueue;
    if (!subqueue) {
        limits_discount_set(queues, item->counted);
        item->counted = NULL;
        return NULL;
    }
    subqueue->is_held = true;
    struct subqueue_share *share = item->running ? NULL : item->share;
    struct slot_demand *demand = share ? share->demand : item->demand;
    if (item->running) {
        count_slots(queues, subqueue, demand, -1);
    } else {
        forget_passes(queues, item);
        queue_heap_remove(&share->items, queues->id, item->place);
        count_waiting(queues, share, -1);
    }
    bool ran = item->running;
    item->subqueue = NULL;
    item->share = NULL;
    item->running = false;
    if (share) /* first: other shares look at the heads above it, which are this item */
        refresh_share(queues, share);
    refresh(queues, subqueue);
    if (ran)
        refresh_demand(queues, subqueue, demand, -1);
    if (share)
        subqueue_share_free_if_empty(queues, share);
    slot_demand_unref(queues, demand);
    return subqueue;
}

/* Accepts NULL. */
static void release(struct queues *queues, struct subqueue *left)
{
    if (!left)
        return;
    left->is_held = false;
    subqueue_free_if_empty(queues, left);
}

/* ---- the lines ---- */

/* Returns the line that the item is in; NULL: none. */
static struct list *line_of(struct queues *queues, const struct queue_item *item)
{
    if (!item->subqueue)
        return NULL;
    if (item->running)
        return &queues->executing;
    return audience_of(item->share) == AUDIENCE_RESUMED ? &queues->resuming : &queues->line;
}

/* Moves the item to the end of the line, unless it is in that one. line: NULL: it leaves.
 * Call this before the item waits or runs. */
static void change_line(struct queues *queues, struct queue_item *item, struct list *line)
{
    const struct list *now = line_of(queues, item);
    if (now == line)
        return;
    if (now)
        list_remove(&item->in_line);
    if (line)
        list_append(line, &item->in_line);
}

/* ---- the public part ---- */

static void names_init(struct queue_names *names, bool are_limits)
{
    names->are_limits = are_limits;
    names->configured.limit = QUEUES_CONFIGURED_MAX;
    table_init(&names->by_name, queue_key);
    ranking_init(&names->names, queue_place_key);
}

static void names_finish(struct queue_names *names)
{
    size_t at = 0;
    quota_release(&names->configured, names->configured.used);
    for (struct queue *queue; (queue = table_next(&names->by_name, &at));)
        queue_free(queue);
    table_finish(&names->by_name);
}

void queues_init(struct queues *queues, uint32_t limit, queue_item_id_fn *id)
{
    *queues = (struct queues){
        .limit = limit,
        .id = id,
        .passes_max = RESERVE_PASSES,
        .lanes_max = LANES_MAX,
        .sets_max = SLOT_SETS_MAX,
        .visits_max = VISITS_MAX,
    };
    names_init(&queues->own, false);
    names_init(&queues->limits, true);
    table_init(&queues->demands, slot_demand_key);
    table_init(&queues->sets, slot_set_key);
    table_init(&queues->groups, slot_group_key);
    list_init(&queues->line);
    list_init(&queues->resuming);
    list_init(&queues->executing);
    list_init(&queues->keepers);
    list_init(&queues->stale);
}

/* Overrides of keys keep their pools. */
static void forget_keys(struct queues *queues)
{
    size_t at = 0;
    for (struct queue *limit; (limit = table_next(&queues->limits.by_name, &at));) {
        size_t key = 0;
        for (struct subqueue *pool; (pool = table_next(&limit->subqueues, &key));)
            free(pool);
        table_finish(&limit->subqueues);
        table_init(&limit->subqueues, subqueue_key);
    }
}

void queues_finish(struct queues *queues)
{
    assert(queues->running == 0 && queues->waiting == 0 && queues->demands.count == 0 &&
           queues->sets.count == 0 && queues->groups.count == 0);
    queue_rates_finish(queues);
    forget_keys(queues);
    names_finish(&queues->own);
    names_finish(&queues->limits);
    table_finish(&queues->demands);
    table_finish(&queues->sets);
    table_finish(&queues->groups);
    for (uint32_t i = 0; i < queues->audiences; i++)
        free(queues->ready[i].heap.nodes);
    free(queues->ready);
    free(queues->waiting_for);
    *queues = (struct queues){ 0 };
}

/* Returns true if the item already waits or runs where the seat is. */
static bool is_seated(const struct queue_item *item, struct queue_seat seat)
{
    const struct slot_demand *demand = item->running ? item->demand : item->share->demand;
    bool is_same = demand ? slice_equal(slot_demand_text(demand), seat.limits)
                          : !slot_demand_is_stated(seat.limits);
    return is_same &&
           slice_equal(queue_key(item->subqueue->queue), queue_name_present(seat.queue)) &&
           slice_equal(subqueue_key(item->subqueue), queue_name_present(seat.key));
}

/* An item that is there already stays the head that it is, with its count of passes.
 * Otherwise puts the item into its subqueue. Its old one and its old set are freed last. */
static void wait_in_subqueue(struct queues *queues, struct queue_item *item,
                             struct queue_seat seat, int64_t position)
{
    if (item->place && item->position == position &&
        item->share->class->offer->audience == item->audience && is_seated(item, seat))
        return;
    struct slot_demand *demand = slot_demand_named(queues, seat.limits);
    struct subqueue *old = detach(queues, item);
    struct subqueue *subqueue =
        queue_subqueue(queue_named(&queues->own, seat.queue), seat.key);
    item->subqueue = subqueue;
    item->share = subqueue_share_for(queues, subqueue, item->audience, demand);
    item->position = position;
    queue_heap_put(&item->share->items, queues->id,
                   (struct queue_node){ .item = item, .place = &item->place });
    count_waiting(queues, item->share, 1);
    if (item->share->within)
        refresh_share(queues, item->share);
    refresh(queues, subqueue);
    release(queues, old);
}

void queues_wait(struct queues *queues, struct queue_item *item, struct queue_seat seat,
                 int64_t position)
{
    assert(item->audience < AUDIENCE_RESUMED);
    change_line(queues, item, &queues->line);
    wait_in_subqueue(queues, item, seat, position);
}

void queues_wait_again(struct queues *queues, struct queue_item *item,
                       struct queue_seat seat, int64_t position)
{
    change_line(queues, item, &queues->resuming);
    item->audience = AUDIENCE_RESUMED;
    wait_in_subqueue(queues, item, seat, position);
}

/* Returns the round after this one. The last one served is noted. */
static uint64_t next_round(uint64_t *last, uint64_t round)
{
    if (*last < round)
        *last = round;
    return *last + 1;
}

/* Ends the turn of the item's share among those of its queue, and of its queue. The heads
 * that are not moved here are refreshed when the item leaves the share, which follows
 * next. */
static void serve(struct queues *queues, const struct subqueue_share *share)
{
    struct slot_class *class = share->class;
    struct offer *offer = class->offer;
    uint32_t place = share->within ? share->within->ready_place : share->ready_place;
    if (place) {
        struct queue_node *node = &class->ready.nodes[place - 1];
        node->round = next_round(&offer->round, node->round);
    }
    if (offer->heads)
        offer->turn = next_round(&queues->ready[offer->audience].round, offer->turn);
}

void queues_run(struct queues *queues, struct queue_item *item, struct queue_seat seat)
{
    if (item->running && is_seated(item, seat))
        return;
    struct slot_demand *demand = slot_demand_named(queues, seat.limits);
    change_line(queues, item, &queues->executing);
    struct subqueue_share *starved = NULL;
    bool is_new = !item->subqueue;
    if (item->place) {
        starved = reserve_pass_over(queues, item);
        serve(queues, item->share);
    }
    struct subqueue *old = detach(queues, item);
    struct subqueue *subqueue =
        queue_subqueue(queue_named(&queues->own, seat.queue), seat.key);
    if (is_new)
        starved = reserve_pass_over_at_once(queues, subqueue, demand);
    item->subqueue = subqueue;
    item->demand = demand;
    item->running = true;
    count_slots(queues, subqueue, demand, 1);
    refresh(queues, subqueue);
    refresh_demand(queues, subqueue, demand, 1);
    if (starved)
        keep_slots(queues, starved);
    release(queues, old);
}

void queues_leave(struct queues *queues, struct queue_item *item)
{
    change_line(queues, item, NULL);
    struct subqueue *subqueue = detach(queues, item);
    release(queues, subqueue);
}

void queues_rest(struct queues *queues, struct queue_item *item, struct slice limits)
{
    struct slot_group *counted = slot_group_counted(queues, limits);
    queues_leave(queues, item);
    item->counted = counted;
}

/* Returns true if the queue, which may be NULL, has a free slot for the key. */
static bool has_slot(const struct queue *queue, struct slice key)
{
    const struct subqueue *subqueue =
        queue ? table_find(&queue->subqueues, queue_name_present(key)) : NULL;
    if (!queue)
        return true;
    if (queue->running + queue_kept_from(queue, NULL) >= queue_total_of(queue))
        return false;
    return subqueue ? pool_is_open(subqueue, NULL) : queue_limit_of(queue) > 0;
}

bool queues_has_slot(struct queues *queues, struct queue_seat seat)
{
    struct slot_demand *demand = slot_demand_named(queues, seat.limits);
    const struct slot_set *set = slot_demand_set(demand);
    bool has = queues->running < queues->limit &&
               has_slot(queue_find(&queues->own, seat.queue), seat.key);
    for (uint32_t i = 0; has && set && i < set->keyed_count; i++)
        has = has_slot(set->keyed[i], seat.key);
    for (uint32_t i = 0; has && demand && i < demand->count; i++)
        has = has_slot(demand->gates[i].queue, demand->gates[i].key);
    slot_demand_unref(queues, demand);
    return has;
}

struct queue_item *queues_next(const struct queues *queues, uint32_t audience)
{
    if (queues->running >= queues->limit || audience >= queues->audiences ||
        !queues->ready[audience].heap.count)
        return NULL;
    return queues->ready[audience].heap.nodes[0].item;
}

uint64_t queues_keeps_for(const struct queue_item *item)
{
    return item->place == 1 ? item->share->keeps : 0;
}

/* Returns true if the head of the share may run now. */
static bool is_offered(const struct queues *queues, const struct subqueue_share *share)
{
    const struct subqueue_share *outer = share->within ? share->within : share;
    return queues->running < queues->limit && share->ready_place && outer->ready_place &&
           share->class->ready_place && share->class->among->ready_place;
}

bool queues_free_untaken(struct queues *queues)
{
    bool freed = false;
    list_each (link, &queues->keepers) {
        struct subqueue_share *share = container_of(link, struct subqueue_share, keeping);
        if (!is_offered(queues, share))
            continue;
        share->passes = 0;
        stop_keeping(queues, share);
        freed = true;
    }
    return freed;
}

const struct queue_item *queues_oldest(const struct queues *queues)
{
    return list_empty(&queues->line)
               ? NULL
               : container_of(queues->line.next, const struct queue_item, in_line);
}

const struct queue_item *queues_oldest_of(const struct queues *queues, struct slice queue,
                                          uint32_t most)
{
    const struct queue *q = queue_find(&queues->own, queue);
    if (!q || !q->waiting)
        return NULL;
    list_each (link, &queues->line) {
        const struct queue_item *item =
            container_of(link, const struct queue_item, in_line);
        if (item->subqueue->queue == q)
            return item;
        if (!most--)
            return NULL;
    }
    return NULL;
}

/* Returns how the pool stands to the item. A key whose limit is 0 counts before all keys
 * together, which a run that ends would not help. */
static struct limit_standing pool_standing(const struct subqueue *pool,
                                           const struct queue_item *item)
{
    const struct queue *limit = pool->queue;
    uint32_t kept = queue_kept_from(limit, item->share);
    bool is_total = limit->running + kept >= queue_total_of(limit) &&
                    (subqueue_limit(pool) || !queue_total_of(limit));
    return (struct limit_standing){
        .name = queue_key(limit),
        .is_gate = !limit->is_limit,
        .key = subqueue_key(pool),
        .paused = limit->settings.paused && item->audience != AUDIENCE_RESUMED,
        .is_total = is_total,
        .limit = is_total ? queue_total_of(limit) : subqueue_limit(pool),
        .running = is_total ? limit->running : pool->running,
        .reserved = is_total ? kept : subqueue_kept_from(pool, item->share),
    };
}

/* Returns 0 if the item has a slot; higher if only a change of settings gives it one. */
static int standing_rank(const struct limit_standing *standing)
{
    if (!standing->name.ptr)
        return 0;
    if (standing->paused)
        return 3;
    if (!standing->limit)
        return 2;
    return standing->running + standing->reserved >= standing->limit;
}

/* Keeps the obstacle of the higher rank in worst; of two of a rank, the first. */
static void note_standing(const struct subqueue *pool, const struct queue_item *item,
                          struct limit_standing *worst)
{
    struct limit_standing found = pool_standing(pool, item);
    if (standing_rank(&found) > standing_rank(worst))
        *worst = found;
}

/* The same for the needs of a share or lane; NULL: it has none. */
static void note_share(const struct subqueue_share *share, const struct queue_item *item,
                       struct limit_standing *worst)
{
    for (uint32_t i = 0; share && i < share->count; i++)
        note_standing(share->needs[i].pool, item, worst);
}

static void note_group(const struct slot_group *group, const struct queue_item *item,
                       struct limit_standing *worst)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (group->needs[i].pool)
            note_standing(group->needs[i].pool, item, worst);
}

/* Returns the limit or gate that holds the item back: a paused one, else one of 0, else the
 * first that has no free slot. It has no name if each has a free slot. */
static struct limit_standing limit_standing_of(const struct queue_item *item)
{
    struct limit_standing worst = { 0 };
    note_share(item->share->within, item, &worst);
    note_share(item->share, item, &worst);
    note_group(item->share->class->among->group, item, &worst);
    return worst;
}

struct queue_standing queues_standing(const struct queues *queues,
                                      const struct queue_item *item, uint32_t most)
{
    const struct queue *queue = item->subqueue->queue;
    return (struct queue_standing){
        .paused = queue->settings.paused && item->audience != AUDIENCE_RESUMED,
        .singleton = queue->settings.singleton,
        .limit = queue_limit_of(queue),
        .running = item->subqueue->running,
        .total = queue_total_of(queue),
        .total_running = queue->running,
        .reserved = subqueue_kept_from(item->subqueue, item->share),
        .total_reserved = queue_kept_from(queue, item->share),
        .ahead = queue_heap_count_before(&item->share->items, queues->id, item, most),
        .of_limit = limit_standing_of(item),
    };
}
