/* history.h - how often a run changed since a position.
 *
 * For each of the last HISTORY_SIZE changes: the position of the same run's change before
 * it. Following the chain from a run's rev down to a position counts the versions between,
 * so that what was conflated is counted exactly, at 8 bytes a change. It grows
 * with the changes: environments of which most see few (preview branches) cost little. */
#pragma once

#include <stdint.h>

enum { HISTORY_SIZE = 1 << 16 };

struct history {
    uint64_t *before;  /* by seq modulo the capacity */
    uint32_t capacity; /* a power of two up to HISTORY_SIZE; 0 before the first change */
    uint64_t first;    /* lowest seq that is noted; 0: none */
    uint64_t last;
};

void history_finish(struct history *history);
void history_note(struct history *history, uint64_t seq, uint64_t rev_before);

/* The change of the same run before this one; 0: it was created by this one, or the
 * history does not reach back to it. */
uint64_t history_before(const struct history *history, uint64_t seq);
