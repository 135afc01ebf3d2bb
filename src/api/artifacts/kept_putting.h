/* kept_putting.h - writes a file to the store, one piece after another.
 *
 *   one piece:  0 ─► replaces the old file
 *   several:    the old file is removed ─► 1, 2, … ─► 0 ─► the file exists
 *
 * The owner provides each piece when it is needed, so only one is in memory. */
#pragma once

#include "base/error.h"
#include "runcast/store.h"

struct kept_putting {
    struct store *store;
    struct store_file request; /* the owner sets its name and size */
    /* Requests a piece. Respond with kept_putting_give or kept_putting_fail, now or
     * later. */
    void (*need)(struct kept_putting *putting, int64_t offset, size_t len);
    void (*done)(struct kept_putting *putting, enum err status);
};

void kept_putting_begin(struct kept_putting *putting);

/* Provides the requested piece, which must stay valid until the next request or done. */
void kept_putting_give(struct kept_putting *putting, struct slice piece);

/* Reports that the piece is not available. Calls done at once. */
void kept_putting_fail(struct kept_putting *putting, enum err status);
