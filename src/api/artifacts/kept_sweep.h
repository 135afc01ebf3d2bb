/* kept_sweep.h - removes files from the store that are not needed, page by page.
 *
 * They are left over from a gateway that exited while writing or removing one. A file that
 * cannot be removed now is found by the next sweep. */
#pragma once

#include "runcast/store.h"

struct kept_sweep {
    struct store *store;
    bool (*is_needed)(void *owner, const struct store_file_name *name);
    void *owner;
    void (*done)(struct kept_sweep *sweep);
    bool stopping; /* set by the owner, to end it soon */

    struct store_file request; /* private from here on */
    struct store_file_name *names;
    size_t count, next;
};

/* Begins a sweep. Calls done once, later. */
void kept_sweep_begin(struct kept_sweep *sweep);
