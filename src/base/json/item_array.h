/* item_array.h - reads {"items": [ … ], …} item by item, as it arrives.
 *
 *   pieces ─┬─ outside of the array ─► an envelope: {"items":[],"parentRunId":"…"}
 *           └─ inside: up to each comma ─► an envelope of the item ─► on_item
 *
 * A batch of 1 MB is thus read while it arrives, like a stream of lines. */
#pragma once

#include "base/json/envelope.h"

struct item_array {
    struct envelope outer; /* the body without the content of the array */
    struct envelope item;
    size_t count; /* items that have ended */
    enum err (*on_item)(struct item_array *array);
    struct failure *why;

    bool inside, in_string, after_backslash;
    size_t depth; /* inside the item */
};

/* Reads a piece. on_item and why must be set, everything else zero at first. Returns the
 * error that on_item returned, or ERR_INVALID with a text in why. */
enum err item_array_feed(struct item_array *array, struct slice piece);

/* Call this after the last piece. OK: a JSON object whose items are an array. */
enum err item_array_close(struct item_array *array);

void item_array_finish(struct item_array *array);
