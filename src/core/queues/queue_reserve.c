/* queue_reserve.c - counts who is passed over, and decides whose slots are kept. */
#include "core/queues/queue_reserve.h"

/* ---- who is older ---- */

static const struct queue_item *head_of(const struct subqueue_share *share)
{
    return share->items.nodes[0].item;
}

/* Items that resume go before those that have not run. */
static bool is_older(const struct queues *queues, const struct subqueue_share *a,
                     const struct subqueue_share *b)
{
    return share_resumes(a) != share_resumes(b)
               ? share_resumes(a)
               : queue_item_before(queues->id, head_of(a), head_of(b));
}

/* ---- passes ---- */

/* An item takes its slots. */
struct slot_taking {
    const struct queues *queues;
    const struct queue_item *item;      /* NULL: it did not wait */
    const struct subqueue_share *share; /* in which it waited, perhaps a lane; or NULL */
    struct subqueue_share *starved;     /* the oldest that should keep slots */
};

static bool passes_over(const struct slot_taking *taking, const struct queue_item *head)
{
    return !taking->share || share_resumes(taking->share) ||
           queue_item_before(taking->queues->id, head, taking->item);
}

/* The head waits in the share, or in a lane of it. */
static void pass_over_head(struct slot_taking *taking, struct queue_item *head)
{
    struct subqueue_share *share = head->share;
    uint32_t most = taking->queues->passes_max;
    if (share == taking->share || !passes_over(taking, head))
        return;
    share->passes += share->passes < most;
    if (share->passes >= most && !share->keeps &&
        (!taking->starved || is_older(taking->queues, share, taking->starved)))
        taking->starved = share;
}

static void pass_over_share(struct slot_taking *taking, const struct subqueue_share *share)
{
    if (share->items.count)
        pass_over_head(taking, share->items.nodes[0].item);
}

/* The shares of a class take turns. */
static void pass_over_class(struct slot_taking *taking, const struct slot_class *class)
{
    if (class->ready.count && !(taking->share && taking->share->class == class))
        pass_over_head(taking, class->ready.nodes[0].item);
}

/* Returns true if the head of the offer lacks a slot of another limit. */
static bool lacks_other(const struct group_offer *offer, const struct queue *limit)
{
    const struct subqueue_share *head = offer->ready.nodes[0].item->share;
    for (uint32_t i = 0; i < offer->group->count; i++) {
        const struct group_need *need = &offer->group->needs[i];
        if (need->limit != limit && !group_need_is_open(need, head))
            return true;
    }
    return false;
}

static void pass_over_group(struct slot_taking *taking, const struct slot_group *group,
                            const struct queue *limit)
{
    list_each (link, &group->offers) {
        const struct group_offer *offer = container_of(link, struct group_offer, link);
        if (offer->ready.count && lacks_other(offer, limit))
            pass_over_head(taking, offer->ready.nodes[0].item);
    }
}

/* Returns true if one more takes the last slot that others than the share may take. */
static bool becomes_full(uint32_t running, uint32_t kept, uint32_t limit)
{
    return running + kept + 1 >= limit;
}

static void take_of_key(struct slot_taking *taking, const struct subqueue *subqueue)
{
    uint32_t kept = subqueue_kept_from(subqueue, taking->share);
    if (!becomes_full(subqueue->running, kept, subqueue_limit(subqueue)))
        return;
    list_each (link, &subqueue->shares)
        pass_over_share(taking, container_of(link, struct subqueue_share, link));
    list_each (link, &subqueue->users)
        pass_over_share(taking, container_of(link, struct share_need, link)->share);
    list_each (link, &subqueue->groups)
        pass_over_group(taking, container_of(link, struct group_need, in_pool)->group,
                        subqueue->queue);
}

static void take_of_all_keys(struct slot_taking *taking, const struct queue *queue)
{
    uint32_t kept = queue_kept_from(queue, taking->share);
    if (!becomes_full(queue->running, kept, queue_total_of(queue)))
        return;
    list_each (of, &queue->offers)
        list_each (link, &container_of(of, struct offer, link)->classes)
            pass_over_class(taking, container_of(link, struct slot_class, link));
    list_each (link, &queue->classes)
        pass_over_class(taking, container_of(link, struct class_need, link)->class);
    list_each (link, &queue->groups)
        pass_over_group(taking, container_of(link, struct group_need, link)->group, queue);
}

static void take_of_queues(struct slot_taking *taking, const struct subqueue *subqueue,
                           const struct slot_set *set)
{
    take_of_key(taking, subqueue);
    take_of_all_keys(taking, subqueue->queue);
    for (uint32_t i = 0; i < slot_set_count(set); i++)
        if (set->limits[i] != subqueue->queue)
            take_of_all_keys(taking, set->limits[i]);
}

static void take_of_pools(struct slot_taking *taking, const struct subqueue_share *share)
{
    for (uint32_t i = 0; i < share->count; i++)
        if (share->needs[i].pool != share->subqueue)
            take_of_key(taking, share->needs[i].pool);
}

struct subqueue_share *reserve_pass_over(const struct queues *queues,
                                         const struct queue_item *item)
{
    const struct subqueue_share *share = item->share;
    const struct slot_group *group = share->class->among->group;
    struct slot_taking taking = { .queues = queues, .item = item, .share = share };
    take_of_queues(&taking, item->subqueue, share->class->set);
    take_of_pools(&taking, share);
    if (share->within)
        take_of_pools(&taking, share->within);
    for (uint32_t i = 0; i < group->count; i++)
        if (group->needs[i].pool && group->needs[i].pool != item->subqueue)
            take_of_key(&taking, group->needs[i].pool);
    return taking.starved;
}

struct subqueue_share *reserve_pass_over_at_once(const struct queues *queues,
                                                 struct subqueue *subqueue,
                                                 const struct slot_demand *demand)
{
    struct slot_taking taking = { .queues = queues };
    struct subqueue *pools[SLOT_SET_MAX];
    uint32_t count = slot_demand_pools(demand, subqueue, pools);
    take_of_queues(&taking, subqueue, slot_demand_set(demand));
    for (uint32_t i = 0; i < count; i++)
        take_of_key(&taking, pools[i]);
    return taking.starved;
}

/* ---- kept slots ---- */

uint32_t reserve_needs(const struct subqueue_share *share,
                       struct subqueue *needs[RESERVE_NEEDS_MAX])
{
    needs[0] = share->subqueue;
    return 1 + slot_demand_pools(share->demand, share->subqueue, needs + 1);
}

/* Returns true if the queue or limit gives slots to items of the share's audience: a bucket
 * without a token may stay so for longer than any item executes. */
static bool gives_slots(const struct subqueue *need, const struct subqueue_share *share)
{
    const struct queue *queue = need->queue;
    return subqueue_limit(need) && queue_total_of(queue) &&
           ((!queue->settings.paused && !queue->is_closed) || share_resumes(share)) &&
           !subqueue_is_dry(need, share);
}

bool reserve_may_keep(const struct queues *queues, const struct subqueue_share *share)
{
    struct subqueue *needs[RESERVE_NEEDS_MAX];
    uint32_t count = reserve_needs(share, needs);
    for (uint32_t i = 0; i < count; i++) {
        const struct subqueue_share *keeper = needs[i]->queue->keeper;
        if (!gives_slots(needs[i], share) ||
            (keeper && keeper != share && is_older(queues, keeper, share)))
            return false;
    }
    return true;
}

struct subqueue_share *reserve_find_other(const struct subqueue_share *share)
{
    struct subqueue *needs[RESERVE_NEEDS_MAX];
    uint32_t count = reserve_needs(share, needs);
    for (uint32_t i = 0; i < count; i++)
        if (needs[i]->queue->keeper && needs[i]->queue->keeper != share)
            return needs[i]->queue->keeper;
    return NULL;
}

static void set_keeper(const struct subqueue_share *share, struct subqueue_share *keeper)
{
    struct subqueue *needs[RESERVE_NEEDS_MAX];
    uint32_t count = reserve_needs(share, needs);
    for (uint32_t i = 0; i < count; i++)
        needs[i]->keeper = needs[i]->queue->keeper = keeper;
}

void reserve_begin(struct queues *queues, struct subqueue_share *share)
{
    share->keeps = ++queues->reservations;
    list_append(&queues->keepers, &share->keeping);
    set_keeper(share, share);
}

void reserve_end(struct subqueue_share *share)
{
    share->keeps = 0;
    list_remove(&share->keeping);
    set_keeper(share, NULL);
}

bool queue_keeper_has_room(const struct queue *queue)
{
    struct subqueue *needs[RESERVE_NEEDS_MAX];
    uint32_t count = reserve_needs(queue->keeper, needs);
    for (uint32_t i = 0; i < count; i++)
        if (needs[i]->queue == queue && needs[i]->running >= subqueue_limit(needs[i]))
            return false;
    return true;
}

uint32_t reserve_count(const struct queue *queue)
{
    return queue_kept_from(queue, NULL) && queue->running < queue_total_of(queue);
}
