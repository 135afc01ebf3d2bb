/* kept_sweep.h - removes files from the store that nobody needs, a page of names after the other.
 *
 * It is what a gateway left that ended while it wrote or removed one. What cannot be removed now is
 * found by the next sweep. */
#pragma once

#include "runcast/store.h"

struct kept_sweep {
    struct store *store;
    bool (*is_needed)(void *owner, const struct store_file_name *name);
    void *owner;
    void (*done)(struct kept_sweep *sweep);
    bool stopping; /* the owner's: it is to end soon */

    struct store_file request; /* the rest is ours */
    struct store_file_name *names;
    size_t count, next;
};

/* done comes once, later. */
void kept_sweep_begin(struct kept_sweep *sweep);
