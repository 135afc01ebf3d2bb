/* order.h - runs of one topic by last change.
 *
 * An array of runs: a change appends the run and clears its old place, the array is
 * squeezed when half of it is empty. A place is found by binary search, so a position alone
 * is enough to go on from.
 *
 * A million runs stand in three orders each, so a place is one word: the run, whose rev is
 * the one it came with until it is cleared, or the rev that was cleared. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracked;

struct order {
    uint64_t *places;         /* order_place */
    uint32_t count, capacity; /* places, cleared ones too */
    uint32_t runs;            /* places that hold a run */
};

struct place {
    uint64_t rev;
    struct tracked *run; /* NULL: cleared */
};

void order_finish(struct order *order);

struct place order_place(const struct order *order, uint32_t at);

/* Its rev is above every other in the order, and stays until the run is cleared. */
void order_append(struct order *order, struct tracked *run);

/* Inserts anywhere: at start, when runs come newest first. */
void order_insert(struct order *order, struct tracked *run);

/* Takes the run of this rev out; harmless when it is not there. */
void order_clear(struct order *order, uint64_t rev);

/* Index of the first place with a rev above the given one; count when there is none. */
uint32_t order_after(const struct order *order, uint64_t rev);
