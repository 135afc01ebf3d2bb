/* positions.h - where each environment stands; the loop thread's copy. */
#pragma once

#include "runcast/store.h"

struct positions {
    struct store_position *entries; /* by env */
    size_t count, capacity;
};

void positions_finish(struct positions *positions);

/* Zeros for an environment never written to. */
struct store_position positions_get(const struct positions *positions, uint32_t env);

/* Replaces what is known, except that seq never goes back. */
void positions_put(struct positions *positions, struct store_position position);

/* What the changes of a commit moved. */
void positions_note(struct positions *positions, const struct store_commit *req);

void positions_grow(struct positions *positions, uint32_t env, int64_t bytes);
