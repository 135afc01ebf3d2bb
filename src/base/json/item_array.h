/* item_array.h - reads {"items": [ … ], …} as it arrives, one item after the other.
 *
 *   pieces ─┬─ outside of the array ─► an envelope: {"items":[],"parentRunId":"…"}
 *           └─ inside: up to each comma ─► an envelope of the item ─► on_item
 *
 * So a batch of 1 MB is read while it comes, as a stream of lines is. */
#pragma once

#include "base/json/envelope.h"

struct item_array {
    struct envelope outer; /* the body without what is in the array */
    struct envelope item;
    size_t count; /* items that have ended */
    enum err (*on_item)(struct item_array *array);
    struct failure *why;

    bool inside, in_string, after_backslash;
    size_t depth; /* in the item */
};

/* on_item and why are set; everything else is zero. Returns what on_item returned if that
 * was an error, or ERR_INVALID with the text. */
enum err item_array_feed(struct item_array *array, struct slice piece);

/* All has come: a JSON object whose items are an array. */
enum err item_array_close(struct item_array *array);

void item_array_finish(struct item_array *array);
