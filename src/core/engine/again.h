/* again.h - retries operations that failed because of the store and that no caller repeats.
 *
 *     failed ─► again_later ─► STORE_AGAIN_MS ─► fn: begins it again
 *
 * Operations that still wait when the engine ends are dropped. After the next start, the
 * sweep derives them from the states of the runs. */
#pragma once

#include "base/list.h"

struct engine;

/* The first member of a heap allocation. again_later takes ownership of the allocation, and
 * fn gets it back. again_finish frees it if fn was not called. */
struct again {
    struct engine *engine;
    void (*fn)(struct again *again);
    struct list link; // engine::again
};

void again_init(struct engine *engine);
void again_finish(struct engine *engine);

void again_later(struct engine *engine, struct again *again,
                 void (*fn)(struct again *again));
