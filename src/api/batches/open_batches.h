/* open_batches.h - items that wait in memory until their batch is whole.
 *
 * A stream of items may break off; what came is kept, and the next stream brings the rest.
 * It is never more than a limit per environment, and twice that per project: then batches
 * of the environment that nobody streams are forgotten, oldest first, because their clients
 * send everything again anyway. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "core/engine/engine.h"

struct open_batches;
struct rooms;

struct batch_item {
    struct trigger trigger;
    uint32_t index;
    bool too_large; /* its line was: it becomes an error instead of a run */
    size_t cost;    /* bytes that it is counted with */
};

void batch_item_destroy(struct batch_item *item);

struct open_batch {
    struct environment *env;
    char key[ID_MAX + 12];     /* the environment's number and the batch's id */
    struct batch_item **items; /* by index; NULL: awaited */
    uint32_t run_count, count;
    bool sealing; /* its items are being committed */
    int64_t touched_ms;
    struct list link;   // open_batches::oldest_first
    struct list of_env; // use::oldest_first
};

struct open_batches *open_batches_create(struct loop *loop, struct rooms *rooms);
/* NULL is fine. */
void open_batches_destroy(struct open_batches *open);

/* False: the environment's items have no room for so many more bytes. */
bool open_batches_take(struct open_batches *open, const struct environment *env,
                       size_t bytes);
void open_batches_give(struct open_batches *open, const struct environment *env,
                       size_t bytes);

/* The one of that id, or a new empty one; NULL: the environment has no room for it. */
struct open_batch *open_batches_get(struct open_batches *open, struct environment *env,
                                    const char *id, uint32_t run_count);

/* Those of the environment are forgotten; none of them is being committed. False when the
 * time is over before they all are. */
bool open_batches_forget(struct open_batches *open, const struct environment *env,
                         struct stint *stint);

/* Its items go with it; their memory is given back. */
void open_batches_drop(struct open_batches *open, struct open_batch *batch);
