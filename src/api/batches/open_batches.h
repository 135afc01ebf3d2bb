/* open_batches.h - keeps items in memory until their batch is complete.
 *
 * If a stream of items breaks off, the items received so far are kept, and the next stream
 * adds the missing ones. Memory is limited per environment and per project (quotas.h). When
 * the limit is reached, open batches of the environment that are not being committed are
 * forgotten, least recently used first: their clients send all items again anyway. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "core/engine/engine.h"

struct open_batches;
struct quotas;

struct batch_item {
    struct trigger trigger;
    uint32_t index;
    bool too_large; /* its line was too large: it becomes an error instead of a run */
    size_t cost;    /* bytes that it accounts for */
};

void batch_item_destroy(struct batch_item *item);

struct open_batch {
    struct environment *env;
    char key[ID_MAX + 12];     /* the environment's number and the batch's id */
    struct batch_item **items; /* by index; NULL: missing */
    uint32_t run_count, count;
    bool sealing; /* its items are being committed */
    int64_t touched_ms;
    struct list link;   // open_batches::oldest_first
    struct list of_env; // use::oldest_first
};

struct open_batches *open_batches_create(struct loop *loop, struct quotas *quotas);
/* Ignores NULL. */
void open_batches_destroy(struct open_batches *open);

/* Reserves memory for items; forgets idle open batches of the environment if necessary.
 * Returns false, and reserves nothing, if that is not enough. */
bool open_batches_take(struct open_batches *open, const struct environment *env,
                       size_t bytes);
void open_batches_give(struct open_batches *open, const struct environment *env,
                       size_t bytes);

/* Returns the open batch of that id, or a new empty one. Returns NULL if the memory
 * budget is exhausted. */
struct open_batch *open_batches_get(struct open_batches *open, struct environment *env,
                                    const char *id, uint32_t run_count);

/* Forgets the open batches of an environment; none of them may be committing. Returns
 * false if the time slice ends before all are forgotten: call it again. */
bool open_batches_forget(struct open_batches *open, const struct environment *env,
                         struct timeslice *timeslice);

/* Frees the batch, its items and the memory reserved for them. */
void open_batches_drop(struct open_batches *open, struct open_batch *batch);
