/* kept_putting.h - a file goes into the store, a piece after the other.
 *
 *   one piece:  0 ─► there, instead of what was there
 *   several:    what was there is removed ─► 1, 2, … ─► 0 ─► there
 *
 * The owner has each piece when it is needed, so that one alone is in memory. */
#pragma once

#include "base/error.h"
#include "runcast/store.h"

struct kept_putting {
    struct store *store;
    struct store_file request; /* its name and size are the owner's */
    /* Calls kept_putting_give or _fail, now or later. */
    void (*need)(struct kept_putting *putting, int64_t offset, size_t len);
    void (*done)(struct kept_putting *putting, enum err status);
};

void kept_putting_begin(struct kept_putting *putting);

/* The piece that is needed; borrowed until the next one is, or done. */
void kept_putting_give(struct kept_putting *putting, struct slice piece);

/* It is not to be had: done is called at once. */
void kept_putting_fail(struct kept_putting *putting, enum err status);
