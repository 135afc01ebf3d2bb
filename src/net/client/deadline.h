/* deadline.h - a moment at which something of a client is over; private to client.
 *
 * All of them are one kind of timer: a loop knows a bounded number of kinds. */
#pragma once

#include "base/loop.h"

struct deadline {
    struct timer timer;
    void (*fn)(struct deadline *deadline);
};

/* Calls fn in so many milliseconds; each call replaces the one before. */
void deadline_set(struct loop *loop, struct deadline *deadline, int64_t ms);

/* Harmless when it is not set. */
void deadline_clear(struct loop *loop, struct deadline *deadline);
