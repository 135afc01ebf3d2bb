/* batch_blocking.h - a run that waits for the batch that it has triggered. */
#pragma once

#include "api/batches/batch.h"
#include "api/triggers/blocking.h"

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
