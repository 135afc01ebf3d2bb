/* blocking.h - a run that waits for what it has triggered (worker-protocol §1.6). */
#pragma once

#include "api/batch.h"
#include "engine/waits.h"

struct blocking {
    struct block block; /* first */
    struct wait *waits;
    char (*names)[ID_MAX]; /* of what has no run */
    /* OK also when the parent does not execute any more: then nobody waits. */
    void (*done)(struct blocking *blocking, enum err status);
};

/* The parent waits for one run. child is the caller's until done. */
void blocking_begin_run(struct blocking *blocking, struct api_call *call,
                        struct slice parent, struct slice child,
                        void (*done)(struct blocking *blocking, enum err status));

/* A batch whose items are there and whose parent waits for them. */
static inline bool batch_blocks(const struct batch *batch)
{
    return batch->sealed_at && batch->resume && batch->parent &&
           batch->count + batch->error_count;
}

/* Its parent waits for all of them; those that became errors are over. The batch is the
 * caller's until done. */
void blocking_begin_batch(struct blocking *blocking, struct api_call *call,
                          const struct batch *batch,
                          void (*done)(struct blocking *blocking, enum err status));
