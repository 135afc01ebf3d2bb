/* queue.c - lanes of waiting items, and which of their heads is next.
 *
 * Two kinds of heap with the same order: each lane has one of its items, the environment
 * has one of lane heads. A lane stands in the second while it has an item, its queue is
 * not paused and it has a free slot; refresh puts it in, moves it or takes it out after
 * anything of that has changed. So choosing is looking at the top, and no change costs
 * more than the logarithm of what waits - but limits and pauses, which visit the lanes of
 * their queue.
 *
 * Lanes live while they have an item, queues while they have a lane or a setting: what
 * clients can name does not stay. */
#include "run/queue.h"

#include <assert.h>

#include "base/mem.h"

struct queue_node {
    struct queue_item *item;
    uint32_t *place; /* where it is noted that it stands here, from 1; 0: in no heap */
};

struct lane {
    struct queue *queue;
    struct queue_heap items;
    uint32_t running;
    uint32_t ready_place; /* in queues::ready */
    size_t key_len;
    char key[];
};

struct queue {
    struct table lanes;
    uint32_t running, waiting;
    uint32_t limit;
    bool paused;
    bool set_up; /* has had a limit or a pause: stays */
    size_t name_len;
    char name[];
};

/* ---- heaps ---- */

static bool before(const struct queues *queues, const struct queue_item *a,
                   const struct queue_item *b)
{
    if (a->position != b->position)
        return a->position < b->position;
    struct slice x = queues->id(a), y = queues->id(b);
    int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    return order ? order < 0 : x.len < y.len;
}

static void put_node(struct queue_heap *heap, uint32_t place, struct queue_node node)
{
    heap->nodes[place - 1] = node;
    *node.place = place;
}

/* Finds the place of a node, starting at a free one. */
static void sift(const struct queues *queues, struct queue_heap *heap, uint32_t place,
                 struct queue_node node)
{
    struct queue_node *nodes = heap->nodes;
    while (place > 1 && before(queues, node.item, nodes[place / 2 - 1].item)) {
        put_node(heap, place, nodes[place / 2 - 1]);
        place /= 2;
    }
    for (;;) {
        uint32_t child = place * 2;
        if (child < heap->count && before(queues, nodes[child].item, nodes[child - 1].item))
            child++;
        if (child > heap->count || !before(queues, nodes[child - 1].item, node.item))
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

/* ---- queues and lanes ---- */

static struct slice queue_key(const void *value)
{
    const struct queue *queue = value;
    return (struct slice){ queue->name, queue->name_len };
}

static struct slice lane_key(const void *value)
{
    const struct lane *lane = value;
    return (struct slice){ lane->key, lane->key_len };
}

/* The name of no concurrencyKey is the empty one. */
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
    queue->limit = UINT32_MAX;
    queue->name_len = name.len;
    memcpy(queue->name, name.ptr, name.len);
    table_init(&queue->lanes, lane_key);
    table_insert(&queues->by_name, queue);
    return queue;
}

static struct lane *lane_named(struct queues *queues, struct slice queue_name,
                               struct slice key)
{
    struct queue *queue = queue_named(queues, queue_name);
    key = present(key);
    struct lane *lane = table_find(&queue->lanes, key);
    if (lane)
        return lane;
    lane = mem_new_flex(struct lane, key.len);
    lane->queue = queue;
    lane->key_len = key.len;
    memcpy(lane->key, key.ptr, key.len);
    table_insert(&queue->lanes, lane);
    return lane;
}

static void free_queue(struct queue *queue)
{
    assert(queue->lanes.count == 0);
    table_finish(&queue->lanes);
    free(queue);
}

static void free_lane_if_empty(struct queues *queues, struct lane *lane)
{
    struct queue *queue = lane->queue;
    if (lane->items.count > 0 || lane->running > 0)
        return;
    table_remove(&queue->lanes, lane_key(lane));
    free(lane->items.nodes);
    free(lane);
    if (queue->lanes.count > 0 || queue->set_up)
        return;
    table_remove(&queues->by_name, queue_key(queue));
    free_queue(queue);
}

static bool may_offer(const struct lane *lane)
{
    return lane->items.count > 0 && !lane->queue->paused &&
           lane->running < lane->queue->limit;
}

static void refresh(struct queues *queues, struct lane *lane)
{
    if (!may_offer(lane)) {
        if (lane->ready_place)
            heap_remove(queues, &queues->ready, lane->ready_place);
        return;
    }
    struct queue_node head = { lane->items.nodes[0].item, &lane->ready_place };
    if (lane->ready_place)
        sift(queues, &queues->ready, lane->ready_place, head);
    else
        heap_insert(queues, &queues->ready, head);
}

static void refresh_lanes(struct queues *queues, struct queue *queue)
{
    size_t at = 0;
    for (struct lane *lane; (lane = table_next(&queue->lanes, &at));)
        refresh(queues, lane);
}

/* Leaves the lane alive, so that the item can come back to it; returns it, or NULL. The
 * head that queues::ready compares by must be among the living: hence the refresh. */
static struct lane *detach(struct queues *queues, struct queue_item *item)
{
    struct lane *lane = item->lane;
    if (!lane)
        return NULL;
    if (item->running) {
        lane->running--;
        lane->queue->running--;
        queues->running--;
    } else {
        heap_remove(queues, &lane->items, item->place);
        lane->queue->waiting--;
        queues->waiting--;
    }
    item->lane = NULL;
    item->running = false;
    refresh(queues, lane);
    return lane;
}

/* ---- the public part ---- */

void queues_init(struct queues *queues, uint32_t limit, queue_item_id_fn *id)
{
    *queues = (struct queues){ .limit = limit, .id = id };
    table_init(&queues->by_name, queue_key);
}

void queues_finish(struct queues *queues)
{
    assert(queues->running == 0 && queues->waiting == 0);
    size_t at = 0;
    for (struct queue *queue; (queue = table_next(&queues->by_name, &at));)
        free_queue(queue);
    table_finish(&queues->by_name);
    free(queues->ready.nodes);
    *queues = (struct queues){ 0 };
}

void queues_wait(struct queues *queues, struct queue_item *item, struct slice queue,
                 struct slice key, int64_t position)
{
    struct lane *old = detach(queues, item);
    struct lane *lane = lane_named(queues, queue, key);
    item->lane = lane;
    item->position = position;
    heap_insert(queues, &lane->items, (struct queue_node){ item, &item->place });
    lane->queue->waiting++;
    queues->waiting++;
    refresh(queues, lane);
    if (old)
        free_lane_if_empty(queues, old);
}

void queues_run(struct queues *queues, struct queue_item *item, struct slice queue,
                struct slice key)
{
    struct lane *old = detach(queues, item);
    struct lane *lane = lane_named(queues, queue, key);
    item->lane = lane;
    item->running = true;
    lane->running++;
    lane->queue->running++;
    queues->running++;
    refresh(queues, lane);
    if (old)
        free_lane_if_empty(queues, old);
}

void queues_leave(struct queues *queues, struct queue_item *item)
{
    struct lane *lane = detach(queues, item);
    if (lane)
        free_lane_if_empty(queues, lane);
}

struct queue_item *queues_next(struct queues *queues)
{
    if (queues->running >= queues->limit || queues->ready.count == 0)
        return NULL;
    return queues->ready.nodes[0].item;
}

void queues_set_limit(struct queues *queues, struct slice queue, uint32_t limit)
{
    struct queue *q = queue_named(queues, queue);
    q->set_up = true;
    q->limit = limit;
    refresh_lanes(queues, q);
}

void queues_set_paused(struct queues *queues, struct slice queue, bool paused)
{
    struct queue *q = queue_named(queues, queue);
    q->set_up = true;
    q->paused = paused;
    refresh_lanes(queues, q);
}

void queues_set_environment_limit(struct queues *queues, uint32_t limit)
{
    queues->limit = limit;
}

struct queue_figures queues_figures(const struct queues *queues, struct slice queue)
{
    const struct queue *q = table_find(&queues->by_name, present(queue));
    if (!q)
        return (struct queue_figures){ .limit = UINT32_MAX };
    return (struct queue_figures){
        .running = q->running,
        .waiting = q->waiting,
        .limit = q->limit,
        .paused = q->paused,
        .known = true,
    };
}
