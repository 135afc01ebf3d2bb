/* store_retry.h - retries operations that the store failed and that no caller repeats.
 *
 *     failed ─► store_retry_later ─► STORE_RETRY_MS ─► fn: retries it
 *
 * Operations still waiting when the engine ends are dropped. After the next start, the
 * sweep derives them from the states of the runs. */
#pragma once

#include "base/list.h"

struct engine;

/* The first member of a heap allocation. store_retry_later takes ownership of the
 * allocation, and fn gets it back. store_retry_finish frees it if fn was not called. */
struct store_retry {
    struct engine *engine;
    void (*fn)(struct store_retry *retry);
    struct list link; // engine::retries
};

void store_retry_init(struct engine *engine);
void store_retry_finish(struct engine *engine);

void store_retry_later(struct engine *engine, struct store_retry *retry,
                       void (*fn)(struct store_retry *retry));
