/* queue_stale.c - visits the keys of a queue or limit after another limit or rate for each.
 *
 *   change ─► concerned keys are stale ─► visits, VISITS_MAX at a time ─► none is left
 *                                         is_stale: no key may start or resume anything
 *
 * While some are stale, their heads in the heaps say what the old settings allowed, so the
 * queue or limit is closed as a whole. Keys that are new meanwhile are not stale. */
#include "core/queues/queue_parts.h"

static void move_busy_to_stale(struct queue *queue)
{
    list_each (link, &queue->busy) {
        struct subqueue *pool = container_of(link, struct subqueue, busy);
        list_remove(&pool->link);
        list_append(&queue->stale, &pool->link);
    }
}

/* May free the pool. */
static void visit_stale_pool(struct queues *queues, struct subqueue *pool)
{
    struct queue *queue = pool->queue;
    list_remove(&pool->link);
    list_append(&queue->fresh, &pool->link);
    queue_refresh_pool(queues, pool);
    if (queue->has_stale_rate)
        rate_bucket_change(queues, pool->bucket);
}

/* The caller refreshes the limit as a whole. */
static void visit_stale_pools(struct queues *queues, struct queue *queue)
{
    queue->uses++; /* it stays while its pools are visited */
    for (uint32_t i = 0; i < queues->visits_max && !list_empty(&queue->stale); i++)
        visit_stale_pool(queues, container_of(queue->stale.next, struct subqueue, link));
    queue->uses--;
    queue->is_stale = !list_empty(&queue->stale);
    queue->has_stale_rate &= queue->is_stale;
    list_remove(&queue->in_stale);
    if (queue->is_stale)
        list_append(&queues->stale, &queue->in_stale);
}

/* A pool in which nothing runs is free unless its limit is 0. */
void queue_refresh_all(struct queues *queues, struct queue *queue, uint32_t was)
{
    uint32_t now = queue_limit_of(queue);
    bool concerns_all = (queue->is_limit || queue->uses) && (!now || !was);
    queue_check_keeper(queues, queue);
    if (queue->has_stale_rate || (now != was && concerns_all))
        list_move_all(&queue->stale, &queue->fresh);
    else if (now != was)
        move_busy_to_stale(queue);
    visit_stale_pools(queues, queue);
    queue_refresh_total(queues, queue);
}

bool queues_refresh_stale(struct queues *queues)
{
    if (!queues_are_stale(queues))
        return false;
    struct queue *queue = container_of(queues->stale.next, struct queue, in_stale);
    visit_stale_pools(queues, queue);
    if (!queue->is_stale) {
        queue_refresh_total(queues, queue);
        queue_free_if_unused(queues, queue);
    }
    return queues_are_stale(queues);
}
