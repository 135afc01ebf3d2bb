/* batch_blocking.h - makes a run wait for a batch that it has triggered. */
#pragma once

#include "api/batches/batch.h"
#include "api/triggers/blocking.h"

/* Returns true if all items have arrived and the parent waits for them. */
static inline bool batch_blocks(const struct batch *batch)
{
    return batch->sealed_at && batch->resume && batch->parent &&
           batch->count + batch->error_count;
}

/* Makes the parent wait for all items; a wait for an item that became an error ends at
 * once. The caller keeps batch valid until done. */
void blocking_begin_batch(struct blocking *blocking, struct api_call *call,
                          const struct batch *batch,
                          void (*done)(struct blocking *blocking, enum err status));
