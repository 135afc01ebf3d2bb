/* order.h - the runs of one topic, ordered by their last change.
 *
 * An array of runs: a change appends the run and clears its old place. The array is
 * compacted when more than half of it is empty. A place is found by binary search, so a
 * position is enough to continue from.
 *
 * There may be a million runs in three orders each, so a place is one word: the run (whose
 * rev does not change until its place is cleared), or the rev of a cleared place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracked;

struct order {
    uint64_t *places;         /* read them with order_place */
    uint32_t count, capacity; /* places, including cleared ones */
    uint32_t runs;            /* places that hold a run */
};

struct place {
    uint64_t rev;
    struct tracked *run; /* NULL: cleared */
};

void order_finish(struct order *order);

struct place order_place(const struct order *order, uint32_t at);

/* The run's rev must be above every other in the order, and stay unchanged until
 * order_clear. */
void order_append(struct order *order, struct tracked *run);

/* Inserts the run anywhere: for startup, when runs arrive newest first. */
void order_insert(struct order *order, struct tracked *run);

/* Removes the run with this rev. Does nothing if it is not in the order. */
void order_clear(struct order *order, uint64_t rev);

/* Returns the index of the first place with a rev above the given one, or count. */
uint32_t order_after(const struct order *order, uint64_t rev);
