/* queue_heap.c - binary heaps whose nodes know their index. */
#include "core/queues/queue_heap.h"

#include <assert.h>

#include "base/mem.h"
#include "core/queues/queue.h"

bool queue_item_before(queue_item_id_fn *id, const struct queue_item *a,
                       const struct queue_item *b)
{
    if (a->position != b->position)
        return a->position < b->position;
    return slice_compare(id(a), id(b)) < 0;
}

static void put_node(struct queue_heap *heap, uint32_t place, struct queue_node node)
{
    heap->nodes[place - 1] = node;
    *node.place = place;
}

static bool node_before(queue_item_id_fn *id, const struct queue_node *a,
                        const struct queue_node *b)
{
    return a->round != b->round ? a->round < b->round
                                : queue_item_before(id, a->item, b->item);
}

/* Finds the place of a node, beginning at an empty one. */
static void sift(struct queue_heap *heap, queue_item_id_fn *id, uint32_t place,
                 struct queue_node node)
{
    struct queue_node *nodes = heap->nodes;
    while (place > 1 && node_before(id, &node, &nodes[place / 2 - 1])) {
        put_node(heap, place, nodes[place / 2 - 1]);
        place /= 2;
    }
    for (;;) {
        uint32_t child = place * 2;
        if (child < heap->count && node_before(id, &nodes[child], &nodes[child - 1]))
            child++;
        if (child > heap->count || !node_before(id, &nodes[child - 1], &node))
            break;
        put_node(heap, place, nodes[child - 1]);
        place = child;
    }
    put_node(heap, place, node);
}

void queue_heap_put(struct queue_heap *heap, queue_item_id_fn *id, struct queue_node node)
{
    if (*node.place) {
        sift(heap, id, *node.place, node);
        return;
    }
    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity ? heap->capacity * 2 : 4;
        heap->nodes = mem_resize(heap->nodes, heap->capacity * sizeof(heap->nodes[0]));
    }
    heap->count++;
    sift(heap, id, heap->count, node);
}

void queue_heap_remove(struct queue_heap *heap, queue_item_id_fn *id, uint32_t place)
{
    assert(place > 0 && place <= heap->count);
    *heap->nodes[place - 1].place = 0;
    struct queue_node last = heap->nodes[--heap->count];
    if (place <= heap->count)
        sift(heap, id, place, last);
}

/* If a node is not before the item, nothing below that node is either, so this looks at
 * about twice as many nodes as it counts. */
static uint32_t count_below(const struct queue_heap *heap, queue_item_id_fn *id,
                            uint32_t place, const struct queue_item *item, uint32_t most)
{
    if (place > heap->count || !most ||
        !queue_item_before(id, heap->nodes[place - 1].item, item))
        return 0;
    uint32_t count = 1;
    count += count_below(heap, id, place * 2, item, most - count);
    return count + count_below(heap, id, place * 2 + 1, item, most - count);
}

uint32_t queue_heap_count_before(const struct queue_heap *heap, queue_item_id_fn *id,
                                 const struct queue_item *item, uint32_t most)
{
    return count_below(heap, id, 1, item, most);
}
