/* queue_heap.h - heaps of queue items, or of the heads of other heaps.
 *
 * The top is the node with the lowest round; of those, the item with the lowest position;
 * of those, the one with the lowest id. Each node notes its own index, so that it can be
 * moved or removed. Used by queue.c only. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

struct queue_item;

typedef struct slice queue_item_id_fn(const struct queue_item *item);

struct queue_node {
    struct queue_item *item;
    uint64_t round;
    uint32_t *place; /* where its own index in the heap is noted, from 1; 0: not in it */
};

struct queue_heap {
    struct queue_node *nodes;
    uint32_t count, capacity;
};

/* Returns true if a is before b by position and id. */
bool queue_item_before(queue_item_id_fn *id, const struct queue_item *a,
                       const struct queue_item *b);

/* Adds the node, or moves it to where it belongs now. */
void queue_heap_put(struct queue_heap *heap, queue_item_id_fn *id, struct queue_node node);

/* place: the index of the node to remove. */
void queue_heap_remove(struct queue_heap *heap, queue_item_id_fn *id, uint32_t place);

/* Returns how many items of a heap without rounds are before this one; at most `most`. */
uint32_t queue_heap_count_before(const struct queue_heap *heap, queue_item_id_fn *id,
                                 const struct queue_item *item, uint32_t most);
