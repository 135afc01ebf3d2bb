/* positions.h - the loop thread's copy of the position of each environment.
 *
 * A position (struct store_position) has the sequence number of the last change, how far
 * retention has got, and the stored bytes. */
#pragma once

#include "runcast/store.h"

struct positions {
    struct store_position *entries; /* sorted by env */
    size_t count, capacity;
};

void positions_finish(struct positions *positions);

/* Returns zeros for an environment that was never written to. */
struct store_position positions_get(const struct positions *positions, uint32_t env);

/* Replaces the position; seq never decreases. */
void positions_put(struct positions *positions, struct store_position position);

/* Advances the positions by the changes of a commit. */
void positions_note(struct positions *positions, const struct store_commit *req);

/* Adds bytes, which may be negative, to the stored bytes. */
void positions_grow(struct positions *positions, uint32_t env, int64_t bytes);
