/* late_change.h - a change as at a gateway that follows: the store has it before memory. */
#pragma once

#include "runcast/store.h"
#include "tests/support/world/world.h"

struct late_change {
    struct world *world;
    struct change change;
    struct store_commit commit;
};

/* Writes the next version of a run, and lets 60 ms pass: the store has it. Memory gets it 40 ms
 * later. */
void change_late(struct world *world, struct late_change *late, const char *id);
