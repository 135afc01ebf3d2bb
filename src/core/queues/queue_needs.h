/* queue_needs.h - reads which slots an item needs in addition to the slot of its queue.
 *
 *   ["task/a","openai",{"queue":"q"},{"queue":"r","key":"u7"},{"queue":"s","pin":"all"},null]
 *
 *   "openai"                    a limit with this name; "task/a" is that of the task alone
 *   {"queue":"q"}               a gate: a slot of another queue, for the item's own key
 *   {"queue":"r","key":"u7"}    the same for a key of which there may be very many
 *   {"queue":"s","pin":"all"}   the same for a key of which there are few
 *   null, {}                    not a need (core/fleet/versions.h)
 *
 * Rows keep this text. A text without gates is one that older rows have. */
#pragma once

#include "base/buf.h"
#include "core/queues/queue.h"

struct slot_need {
    struct slice name;
    struct slice key; /* of a gate; absent: the item's own */
    bool is_gate, is_pinned;
};

/* Each need once. The slices are in texts. */
struct slot_needs {
    struct slot_need all[SLOT_SET_MAX];
    uint32_t count;
    struct buf texts;
};

/* Reads the text; leaves out elements that are not a need. */
void slot_needs_read(struct slot_needs *needs, struct slice text);
void slot_needs_finish(struct slot_needs *needs);

/* Returns true if the need is a limit of the task alone: the first one, and its name has a
 * slash. */
bool slot_needs_is_own(const struct slot_needs *needs, uint32_t i);

/* Appends the need, without its key if there may be very many of them. */
void slot_need_write(const struct slot_need *need, struct buf *out);

/* Appends all of them, separated by commas: the text of their set. */
void slot_needs_write(const struct slot_needs *needs, struct buf *out);
