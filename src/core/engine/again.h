/* again.h - operations that must happen and that nobody asks for twice: when the store has
 * failed, they are begun again a second later.
 *
 *     failed ─► again_later ─► STORE_AGAIN_MS ─► fn: begins it again
 *
 * What still waits when the engine ends is found from the states of runs after the start. */
#pragma once

#include "base/list.h"

struct engine;

/* First member of an allocation of its own, which is fn's again; freed if fn never comes. */
struct again {
    struct engine *engine;
    void (*fn)(struct again *again);
    struct list link; // engine::again
};

void again_init(struct engine *engine);
void again_finish(struct engine *engine);

void again_later(struct engine *engine, struct again *again,
                 void (*fn)(struct again *again));
