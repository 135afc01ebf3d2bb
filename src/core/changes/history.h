/* history.h - counts how often a run has changed since a position.
 *
 * For each of the last HISTORY_SIZE changes it has the seq of the same run's previous
 * change. Following this chain from a run's rev down to a position counts the versions in
 * between, so that skipped versions are counted exactly, at 8 bytes per change. The array
 * grows with the changes, so environments with few of them (most preview branches) cost
 * little. */
#pragma once

#include <stdint.h>

enum { HISTORY_SIZE = 1 << 16 };

struct history {
    uint64_t *before;  /* by seq modulo the capacity */
    uint32_t capacity; /* a power of two up to HISTORY_SIZE; 0 before the first change */
    uint64_t first;    /* lowest seq in it; 0: none */
    uint64_t last;
};

void history_finish(struct history *history);
void history_note(struct history *history, uint64_t seq, uint64_t rev_before);

/* Returns the seq of the same run's previous change; 0 if this one created the run, or if
 * the history does not reach back that far. */
uint64_t history_before(const struct history *history, uint64_t seq);
