/* deadline.h - a deadline with a function of its own; private to client.
 *
 * All deadlines are one kind of timer, because a loop has a bounded number of kinds. */
#pragma once

#include "base/loop.h"

struct deadline {
    struct timer timer;
    void (*fn)(struct deadline *deadline);
};

/* Calls fn in ms milliseconds; replaces an earlier setting. */
void deadline_set(struct loop *loop, struct deadline *deadline, int64_t ms);

bool deadline_is_set(const struct deadline *deadline);

/* Does nothing if it is not set. */
void deadline_clear(struct loop *loop, struct deadline *deadline);
