/* queue.c - subqueues of waiting items, and which of their heads comes next.
 *
 * Items wait in three levels of heaps, all in the same order. Each audience has its own:
 *
 *   queues::ready     heads of offers, whose queue is not paused and has a limit above 0
 *   └ offer           of a queue: heads of shares whose subqueue has an item and a slot
 *     └ share         of a subqueue: its items
 *
 * After any of this has changed, refresh adds, moves or removes the heads. So the next item
 * is at the top, and a change costs the logarithm of the number of items that wait. Only a
 * new limit costs more: it visits the subqueues of its queue that have something running.
 *
 * Heads are ordered by their round before anything else. A head that was served, or that is
 * new, belongs to the round after that of the last one served. So everything in the heap
 * now is served once before any of it is served twice, even when new queues keep arriving.
 *
 * A subqueue lives while it has an item, a queue while it has a subqueue or a setting:
 * names that clients choose do not stay. */
#include "core/model/queue.h"

#include <assert.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/metrics.h"

struct queue_node {
    struct queue_item *item;
    uint64_t round;  /* 0 in a subqueue's heap */
    uint32_t *place; /* points to its own index in a heap, from 1; 0: not in a heap */
};

/* The items that wait in a subqueue for one audience. */
struct subqueue_share {
    struct offer *offer;
    struct queue_heap items;
    uint32_t ready_place; /* index in offer::ready */
    struct list link;     // subqueue::shares
};

/* The items that a queue has for one audience. */
struct offer {
    uint32_t audience;
    struct queue_heap ready; /* heads of the shares whose subqueues have a free slot */
    uint32_t ready_place;    /* index in queues::ready */
    struct list link;        // queue::offers
};

struct subqueue {
    struct queue *queue;
    struct list shares; // subqueue_share::link; each has an item
    uint32_t running;
    struct list busy; // queue::busy
    size_t key_len;
    char key[];
};

struct queue {
    struct table subqueues;
    struct list offers;  // offer::link
    struct list busy;    // subqueue::busy; subqueues with something running
    struct ranked place; /* in queues::names */
    uint32_t running, waiting;
    uint32_t base;  /* the limit of a subqueue as registered */
    uint32_t total; /* the limit of all subqueues together */
    struct queue_settings settings;
    /* How many worker versions declare it; the queue stays while above 0. */
    uint32_t registered;
    size_t name_len;
    char name[];
};

/* ---- heaps ---- */

static bool before(const struct queues *queues, const struct queue_item *a,
                   const struct queue_item *b)
{
    if (a->position != b->position)
        return a->position < b->position;
    return slice_compare(queues->id(a), queues->id(b)) < 0;
}

static void put_node(struct queue_heap *heap, uint32_t place, struct queue_node node)
{
    heap->nodes[place - 1] = node;
    *node.place = place;
}

static bool node_before(const struct queues *queues, const struct queue_node *a,
                        const struct queue_node *b)
{
    return a->round != b->round ? a->round < b->round : before(queues, a->item, b->item);
}

/* Finds the place of a node, beginning at an empty one. */
static void sift(const struct queues *queues, struct queue_heap *heap, uint32_t place,
                 struct queue_node node)
{
    struct queue_node *nodes = heap->nodes;
    while (place > 1 && node_before(queues, &node, &nodes[place / 2 - 1])) {
        put_node(heap, place, nodes[place / 2 - 1]);
        place /= 2;
    }
    for (;;) {
        uint32_t child = place * 2;
        if (child < heap->count && node_before(queues, &nodes[child], &nodes[child - 1]))
            child++;
        if (child > heap->count || !node_before(queues, &nodes[child - 1], &node))
            break;
        put_node(heap, place, nodes[child - 1]);
        place = child;
    }
    put_node(heap, place, node);
}

static void heap_insert(const struct queues *queues, struct queue_heap *heap,
                        struct queue_node node)
{
    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity ? heap->capacity * 2 : 4;
        heap->nodes = mem_resize(heap->nodes, heap->capacity * sizeof(heap->nodes[0]));
    }
    heap->count++;
    sift(queues, heap, heap->count, node);
}

static void heap_remove(const struct queues *queues, struct queue_heap *heap,
                        uint32_t place)
{
    assert(place > 0 && place <= heap->count);
    *heap->nodes[place - 1].place = 0;
    struct queue_node last = heap->nodes[--heap->count];
    if (place <= heap->count)
        sift(queues, heap, place, last);
}

/* Adds a head to the heap, or moves it to where it belongs now. A new one waits for the
 * next round. */
static void heap_offer(const struct queues *queues, struct queue_heap *heap,
                       struct queue_item *item, uint32_t *place)
{
    struct queue_node head = { .item = item, .round = heap->round + 1, .place = place };
    if (!*place) {
        heap_insert(queues, heap, head);
        return;
    }
    head.round = heap->nodes[*place - 1].round;
    sift(queues, heap, *place, head);
}

/* Ends the turn of a head. It keeps its place until it is offered again or removed, which
 * must follow next. */
static void heap_serve(struct queue_heap *heap, uint32_t place)
{
    if (!place)
        return;
    struct queue_node *node = &heap->nodes[place - 1];
    if (heap->round < node->round)
        heap->round = node->round;
    node->round = heap->round + 1;
}

/* ---- queues and subqueues ---- */

static struct slice queue_key(const void *value)
{
    const struct queue *queue = value;
    return (struct slice){ queue->name, queue->name_len };
}

static struct slice queue_place_key(const struct ranked *place)
{
    return queue_key(container_of(place, const struct queue, place));
}

static struct slice subqueue_key(const void *value)
{
    const struct subqueue *subqueue = value;
    return (struct slice){ subqueue->key, subqueue->key_len };
}

/* Without a concurrencyKey, the name of the subqueue is empty. */
static struct slice present(struct slice name)
{
    return name.ptr ? name : SLICE("");
}

static struct queue *queue_named(struct queues *queues, struct slice name)
{
    name = present(name);
    struct queue *queue = table_find(&queues->by_name, name);
    if (queue)
        return queue;
    queue = mem_new_flex(struct queue, name.len);
    queue->base = queue->total = UINT32_MAX;
    queue->name_len = name.len;
    memcpy(queue->name, name.ptr, name.len);
    table_init(&queue->subqueues, subqueue_key);
    list_init(&queue->offers);
    list_init(&queue->busy);
    table_insert(&queues->by_name, queue);
    ranking_insert(&queues->names, &queue->place);
    return queue;
}

static struct subqueue *subqueue_named(struct queues *queues, struct slice queue_name,
                                       struct slice key)
{
    struct queue *queue = queue_named(queues, queue_name);
    key = present(key);
    struct subqueue *subqueue = table_find(&queue->subqueues, key);
    if (subqueue)
        return subqueue;
    subqueue = mem_new_flex(struct subqueue, key.len);
    subqueue->queue = queue;
    subqueue->key_len = key.len;
    memcpy(subqueue->key, key.ptr, key.len);
    list_init(&subqueue->shares);
    list_init(&subqueue->busy);
    table_insert(&queue->subqueues, subqueue);
    return subqueue;
}

static struct offer *offer_for(struct queues *queues, struct queue *queue,
                               uint32_t audience)
{
    list_each (link, &queue->offers) {
        struct offer *offer = container_of(link, struct offer, link);
        if (offer->audience == audience)
            return offer;
    }
    for (; queues->audiences <= audience; queues->audiences++) {
        size_t count = queues->audiences + 1;
        queues->ready = mem_resize(queues->ready, count * sizeof(queues->ready[0]));
        queues->waiting_for = mem_resize(queues->waiting_for, count * sizeof(uint32_t));
        queues->ready[queues->audiences] = (struct queue_heap){ 0 };
        queues->waiting_for[queues->audiences] = 0;
    }
    struct offer *offer = mem_new(struct offer);
    offer->audience = audience;
    list_append(&queue->offers, &offer->link);
    return offer;
}

static struct subqueue_share *share_for(struct queues *queues, struct subqueue *subqueue,
                                        uint32_t audience)
{
    list_each (link, &subqueue->shares) {
        struct subqueue_share *share = container_of(link, struct subqueue_share, link);
        if (share->offer->audience == audience)
            return share;
    }
    struct subqueue_share *share = mem_new(struct subqueue_share);
    share->offer = offer_for(queues, subqueue->queue, audience);
    list_append(&subqueue->shares, &share->link);
    return share;
}

/* Requires that the share is in no heap. */
static void free_share_if_empty(struct subqueue_share *share)
{
    if (share->items.count)
        return;
    list_remove(&share->link);
    free(share->items.nodes);
    free(share);
}

static void free_queue(struct queue *queue)
{
    assert(queue->subqueues.count == 0);
    table_finish(&queue->subqueues);
    while (!list_empty(&queue->offers)) {
        struct offer *offer = container_of(list_take(&queue->offers), struct offer, link);
        free(offer->ready.nodes);
        free(offer);
    }
    free(queue);
}

static bool is_configured(const struct queue *queue)
{
    return queue->settings.paused || queue->settings.overridden;
}

static void free_queue_if_unused(struct queues *queues, struct queue *queue)
{
    if (queue->subqueues.count > 0 || queue->registered || is_configured(queue))
        return;
    table_remove(&queues->by_name, queue_key(queue));
    ranking_remove(&queues->names, &queue->place);
    free_queue(queue);
}

static void free_subqueue_if_empty(struct queues *queues, struct subqueue *subqueue)
{
    struct queue *queue = subqueue->queue;
    if (!list_empty(&subqueue->shares) || subqueue->running > 0)
        return;
    table_remove(&queue->subqueues, subqueue_key(subqueue));
    free(subqueue);
    free_queue_if_unused(queues, queue);
}

static uint32_t limit_of(const struct queue *queue)
{
    return queue->settings.overridden ? queue->settings.override : queue->base;
}

static bool is_open_for(const struct queue *queue, uint32_t audience)
{
    return limit_of(queue) > 0 && queue->running < queue->total &&
           (!queue->settings.paused || audience == AUDIENCE_RESUMED);
}

static void refresh_queue(struct queues *queues, struct queue *queue)
{
    list_each (link, &queue->offers) {
        struct offer *offer = container_of(link, struct offer, link);
        struct queue_heap *ready = &queues->ready[offer->audience];
        if (offer->ready.count && is_open_for(queue, offer->audience))
            heap_offer(queues, ready, offer->ready.nodes[0].item, &offer->ready_place);
        else if (offer->ready_place)
            heap_remove(queues, ready, offer->ready_place);
    }
}

/* A limit of 0 is handled by refresh_queue: it concerns every subqueue, without a visit to
 * each. */
static void refresh_subqueue(struct queues *queues, struct subqueue *subqueue)
{
    bool is_free = !subqueue->running || subqueue->running < limit_of(subqueue->queue);
    list_each (link, &subqueue->shares) {
        struct subqueue_share *share = container_of(link, struct subqueue_share, link);
        struct queue_heap *ready = &share->offer->ready;
        if (is_free && share->items.count)
            heap_offer(queues, ready, share->items.nodes[0].item, &share->ready_place);
        else if (share->ready_place)
            heap_remove(queues, ready, share->ready_place);
    }
}

static void refresh(struct queues *queues, struct subqueue *subqueue)
{
    refresh_subqueue(queues, subqueue);
    refresh_queue(queues, subqueue->queue);
}

static void refresh_busy(struct queues *queues, struct queue *queue)
{
    list_each (link, &queue->busy)
        refresh_subqueue(queues, container_of(link, struct subqueue, busy));
    refresh_queue(queues, queue);
}

/* Counts a running item in the subqueue, its queue and the environment. */
static void add_running(struct queues *queues, struct subqueue *subqueue)
{
    if (!subqueue->running++)
        list_append(&subqueue->queue->busy, &subqueue->busy);
    subqueue->queue->running++;
    queues->running++;
    metric_add(M_RUNS_EXECUTING, 1);
}

static void drop_running(struct queues *queues, struct subqueue *subqueue)
{
    if (!--subqueue->running)
        list_remove(&subqueue->busy);
    subqueue->queue->running--;
    queues->running--;
    metric_add(M_RUNS_EXECUTING, -1);
}

/* Counts one more item that waits in the subqueue (1), or one less (-1). */
static void count_waiting(struct queues *queues, struct subqueue *subqueue,
                          uint32_t audience, int more)
{
    queues->waiting_for[audience] += (uint32_t)more;
    if (audience == AUDIENCE_RESUMED)
        return;
    subqueue->queue->waiting += (uint32_t)more;
    queues->waiting += (uint32_t)more;
    metric_add(M_RUNS_QUEUED, more);
}

/* Takes the item out of its subqueue, and returns the subqueue, or NULL if it had none. The
 * subqueue stays, so that the item can return to it. The heads that queues::ready compares
 * must still exist: hence the refresh. */
static struct subqueue *detach(struct queues *queues, struct queue_item *item)
{
    struct subqueue *subqueue = item->subqueue;
    struct subqueue_share *share = item->share;
    if (!subqueue)
        return NULL;
    if (item->running) {
        drop_running(queues, subqueue);
    } else {
        heap_remove(queues, &share->items, item->place);
        count_waiting(queues, subqueue, share->offer->audience, -1);
    }
    item->subqueue = NULL;
    item->share = NULL;
    item->running = false;
    refresh(queues, subqueue);
    if (share)
        free_share_if_empty(share);
    return subqueue;
}

/* ---- the line ---- */

/* A zeroed item is not in the line. */
static bool is_in_line(const struct queue_item *item)
{
    return item->in_line.next && !list_empty(&item->in_line);
}

static void leave_line(struct queue_item *item)
{
    if (is_in_line(item))
        list_remove(&item->in_line);
}

/* ---- the public part ---- */

void queues_init(struct queues *queues, uint32_t limit, queue_item_id_fn *id)
{
    *queues = (struct queues){ .limit = limit, .id = id };
    queues->configured.limit = QUEUES_CONFIGURED_MAX;
    table_init(&queues->by_name, queue_key);
    ranking_init(&queues->names, queue_place_key);
    list_init(&queues->line);
}

void queues_finish(struct queues *queues)
{
    assert(queues->running == 0 && queues->waiting == 0);
    size_t at = 0;
    quota_release(&queues->configured, queues->configured.used);
    for (struct queue *queue; (queue = table_next(&queues->by_name, &at));)
        free_queue(queue);
    table_finish(&queues->by_name);
    for (uint32_t i = 0; i < queues->audiences; i++)
        free(queues->ready[i].nodes);
    free(queues->ready);
    free(queues->waiting_for);
    *queues = (struct queues){ 0 };
}

static void wait_in_lane(struct queues *queues, struct queue_item *item, struct slice queue,
                         struct slice key, int64_t position)
{
    struct subqueue *old = detach(queues, item);
    struct subqueue *subqueue = subqueue_named(queues, queue, key);
    item->subqueue = subqueue;
    item->share = share_for(queues, subqueue, item->audience);
    item->position = position;
    heap_insert(queues, &item->share->items,
                (struct queue_node){ .item = item, .place = &item->place });
    count_waiting(queues, subqueue, item->audience, 1);
    refresh(queues, subqueue);
    if (old)
        free_subqueue_if_empty(queues, old);
}

void queues_wait(struct queues *queues, struct queue_item *item, struct slice queue,
                 struct slice key, int64_t position)
{
    assert(item->audience < AUDIENCE_RESUMED);
    wait_in_lane(queues, item, queue, key, position);
    if (!is_in_line(item))
        list_append(&queues->line, &item->in_line);
}

void queues_wait_again(struct queues *queues, struct queue_item *item, struct slice queue,
                       struct slice key, int64_t position)
{
    leave_line(item);
    item->audience = AUDIENCE_RESUMED;
    wait_in_lane(queues, item, queue, key, position);
}

void queues_run(struct queues *queues, struct queue_item *item, struct slice queue,
                struct slice key)
{
    if (item->subqueue && !item->running) {
        struct offer *offer = item->share->offer;
        heap_serve(&offer->ready, item->share->ready_place);
        heap_serve(&queues->ready[offer->audience], offer->ready_place);
    }
    struct subqueue *old = detach(queues, item);
    struct subqueue *subqueue = subqueue_named(queues, queue, key);
    leave_line(item);
    item->subqueue = subqueue;
    item->running = true;
    add_running(queues, subqueue);
    refresh(queues, subqueue);
    if (old)
        free_subqueue_if_empty(queues, old);
}

void queues_leave(struct queues *queues, struct queue_item *item)
{
    struct subqueue *subqueue = detach(queues, item);
    leave_line(item);
    if (subqueue)
        free_subqueue_if_empty(queues, subqueue);
}

bool queues_has_slot(const struct queues *queues, struct slice queue, struct slice key)
{
    const struct queue *q = table_find(&queues->by_name, present(queue));
    const struct subqueue *subqueue = q ? table_find(&q->subqueues, present(key)) : NULL;
    if (queues->running >= queues->limit)
        return false;
    return !q ||
           (q->running < q->total && (subqueue ? subqueue->running : 0) < limit_of(q));
}

struct queue_item *queues_next(const struct queues *queues, uint32_t audience)
{
    if (queues->running >= queues->limit || audience >= queues->audiences ||
        !queues->ready[audience].count)
        return NULL;
    return queues->ready[audience].nodes[0].item;
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
    const struct queue *q = table_find(&queues->by_name, present(queue));
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

/* Counts items before this one, at most `most`. If a node is not before it, nothing below
 * that node is either, so it visits about twice as many nodes as it counts. */
static uint32_t count_before(const struct queues *queues, const struct queue_heap *heap,
                             uint32_t place, const struct queue_item *item, uint32_t most)
{
    if (place > heap->count || !most || !before(queues, heap->nodes[place - 1].item, item))
        return 0;
    uint32_t count = 1;
    count += count_before(queues, heap, place * 2, item, most - count);
    return count + count_before(queues, heap, place * 2 + 1, item, most - count);
}

struct queue_standing queues_standing(const struct queues *queues,
                                      const struct queue_item *item, uint32_t most)
{
    const struct queue *queue = item->subqueue->queue;
    return (struct queue_standing){
        .paused = queue->settings.paused && item->audience != AUDIENCE_RESUMED,
        .limit = limit_of(queue),
        .running = item->subqueue->running,
        .total = queue->total,
        .total_running = queue->running,
        .ahead = count_before(queues, &item->share->items, 1, item, most),
    };
}

void queues_register(struct queues *queues, struct slice queue)
{
    queue_named(queues, queue)->registered++;
}

void queues_set_limit(struct queues *queues, struct slice queue, uint32_t limit)
{
    struct queue *q = queue_named(queues, queue);
    q->registered++;
    q->base = limit;
    refresh_busy(queues, q);
}

void queues_change_limit(struct queues *queues, struct slice queue, uint32_t limit)
{
    struct queue *q = table_find(&queues->by_name, present(queue));
    if (!q || !q->registered || q->base == limit)
        return;
    q->base = limit;
    refresh_busy(queues, q);
}

void queues_set_total(struct queues *queues, struct slice queue, uint32_t total)
{
    struct queue *q = table_find(&queues->by_name, present(queue));
    if (!q || !q->registered)
        return;
    q->total = total;
    refresh_queue(queues, q);
}

void queues_forget_limit(struct queues *queues, struct slice queue)
{
    struct queue *q = table_find(&queues->by_name, present(queue));
    assert(q && q->registered);
    if (--q->registered)
        return;
    q->base = q->total = UINT32_MAX;
    refresh_busy(queues, q);
    free_queue_if_unused(queues, q);
}

void queues_configure(struct queues *queues, struct slice queue,
                      const struct queue_settings *settings)
{
    struct queue *q = queue_named(queues, queue);
    quota_release(&queues->configured, is_configured(q));
    q->settings = *settings;
    quota_take(&queues->configured, is_configured(q));
    refresh_busy(queues, q);
    free_queue_if_unused(queues, q);
}

struct queue_figures queues_figures(const struct queues *queues, struct slice queue)
{
    const struct queue *q = table_find(&queues->by_name, present(queue));
    if (!q)
        return (struct queue_figures){ .limit = UINT32_MAX,
                                       .base = UINT32_MAX,
                                       .total = UINT32_MAX };
    return (struct queue_figures){
        .running = q->running,
        .waiting = q->waiting,
        .limit = limit_of(q),
        .base = q->base,
        .total = q->total,
        .settings = q->settings,
        .known = true,
        .registered = q->registered > 0,
    };
}

struct slice queues_name_at(const struct queues *queues, uint64_t place)
{
    const struct ranked *found = ranking_at(&queues->names, place);
    return found ? queue_place_key(found) : (struct slice){ 0 };
}
