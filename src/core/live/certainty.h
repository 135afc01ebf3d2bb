/* certainty.h - whether this process may still report what its memory holds.
 *
 *   certain ─► in doubt: another process may have written since ─┬─► certain again: waiters
 *                                                                └─► memory is given up
 *
 * Memory is in doubt when another gateway may lead by now. In doubt, no "in sync" is sent,
 * and no subscription gets its response. Connections stay, because most doubts end when the
 * database confirms that nothing has changed. */
#pragma once

#include "base/loop.h"

/* Embedded by an owner that waits for certainty. */
struct certainty_waiter {
    void (*fn)(struct certainty_waiter *waiter);
    struct list link; // certainty::waiting; linked while it waits
};

struct certainty {
    struct loop *loop;
    bool (*is_certain)(void *owner); /* called each time; NULL: always certain */
    void *owner;
    struct list waiting; // certainty_waiter::link
    struct deferred deferred;
};

/* is_certain and owner are the caller's to set. */
void certainty_init(struct certainty *certainty, struct loop *loop);

/* Afterwards no waiter is called. */
void certainty_finish(struct certainty *certainty);

static inline bool certainty_holds(const struct certainty *certainty)
{
    return !certainty->is_certain || certainty->is_certain(certainty->owner);
}

void certainty_waiter_init(struct certainty_waiter *waiter,
                           void (*fn)(struct certainty_waiter *waiter));

/* Calls the waiter's fn once, on the loop, when there is certainty again. Does nothing if
 * it is waiting already. */
void certainty_wait(struct certainty *certainty, struct certainty_waiter *waiter);

/* Does nothing if it is not waiting. */
void certainty_forget(struct certainty_waiter *waiter);

/* The doubt has ended: calls the waiters, as many per turn as there is time for. A waiter
 * may run into the next doubt, and then waits again. */
void certainty_return(struct certainty *certainty);
