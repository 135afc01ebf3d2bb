/* sqlite_positions.h - where each environment stands; the loop thread's copy. */
#pragma once

#include "runcast/store.h"

struct sqlite_positions {
    struct store_position *entries; /* by env */
    size_t count, capacity;
};

void sqlite_positions_finish(struct sqlite_positions *positions);

/* Zeros for an environment never written to. */
struct store_position sqlite_positions_get(const struct sqlite_positions *positions,
                                           uint32_t env);

/* Replaces what is known, except that seq never goes back. */
void sqlite_positions_put(struct sqlite_positions *positions,
                          struct store_position position);

/* What the changes of a commit moved. */
void sqlite_positions_note(struct sqlite_positions *positions,
                           const struct store_commit *req);

void sqlite_positions_grow(struct sqlite_positions *positions, uint32_t env, int64_t bytes);
