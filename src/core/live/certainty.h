/* certainty.h - whether this process may still report what its memory holds.
 *
 *   certain ─► in doubt: another process may have written since ─┬─► certain again: waiters
 *                                                                └─► memory is given up
 *
 * Memory is in doubt when another gateway may lead by now. In doubt, no "in sync" is sent,
 * and no subscription gets its response. Connections stay, because most doubts end when the
 * database confirms that nothing has changed.
 *
 * The memory of a gateway that follows may be certain, but lack the leader's newest changes.
 * A client that begins there may have seen more at another gateway. So it waits until memory
 * has what the leader had when the client began:
 *
 *   confirm ─► unasked ──end of the turn: one question──► asked ──answered──► waiting ─► called
 *                                                                   in doubt: stays there
 *
 * If changes of the environment that it is about have arrived, but wait (core/changes/reach.h),
 * it is called once these are in memory, too. */
#pragma once

#include "core/changes/reach.h"

enum {
    CERTAINTY_QUESTIONS = 64, /* without an answer; the next one waits for one */
    /* From one question to the next. A leader ends a connection with more than 1,000 messages
     * a second, whoever the clients are that make a follower ask. */
    CERTAINTY_EVERY_MS = 2,
};

/* Embedded by an owner that waits for certainty. */
struct certainty_waiter {
    void (*fn)(struct certainty_waiter *waiter);
    struct certainty *certainty; /* while it waits */
    struct reaches *reaches;     /* of the environment that it has to confirm; NULL: none */
    struct reach reach;          /* for changes of it that wait */
    uint64_t number;             /* of its question, while it is in certainty::asked */
    struct list link;            // certainty::unasked, ::asked or ::waiting
};

struct certainty {
    struct loop *loop;
    bool (*is_certain)(void *owner); /* called each time; NULL: always certain */
    /* Asks the leader how far it is, and returns the number of the question, which is above
     * those of earlier ones. A question may be lost, but then a later one is answered.
     * NULL: this process decides, so its memory never lags. */
    uint64_t (*ask)(void *owner);
    void *owner;
    bool follows;              /* certainty_follow */
    uint64_t number, answered; /* the last question; the last answer */
    int64_t asked_ms;          /* the last question, monotonic */
    struct timer pause;        /* until the next one */
    struct list unasked;       // certainty_waiter::link
    struct list asked;         // certainty_waiter::link, by number
    struct list waiting;       // certainty_waiter::link; called once memory is certain
    struct deferred deferred, asking;
};

/* is_certain, ask and owner are the caller's to set. */
void certainty_init(struct certainty *certainty, struct loop *loop);

/* Afterwards no waiter is called. */
void certainty_finish(struct certainty *certainty);

static inline bool certainty_holds(const struct certainty *certainty)
{
    return !certainty->is_certain || certainty->is_certain(certainty->owner);
}

/* Returns true if another gateway leads, so that memory may lack its newest changes. */
static inline bool certainty_asks(const struct certainty *certainty)
{
    return certainty->follows && certainty->ask;
}

void certainty_waiter_init(struct certainty_waiter *waiter,
                           void (*fn)(struct certainty_waiter *waiter));

/* Calls the waiter's fn once, on the loop, when there is certainty again. Does nothing if
 * it is waiting already. */
void certainty_wait(struct certainty *certainty, struct certainty_waiter *waiter);

/* Calls the waiter's fn once, on the loop, when memory is certain and has everything that
 * the leader had applied at some moment after this call: all accounts, and all runs of the
 * environment of reaches. NULL: no run is needed. Without certainty_asks, memory has it already.
 * Does nothing if it is waiting already. */
void certainty_confirm(struct certainty *certainty, struct certainty_waiter *waiter,
                       struct reaches *reaches);

static inline bool certainty_waits(const struct certainty_waiter *waiter)
{
    return !list_empty(&waiter->link) || reach_waits(&waiter->reach);
}

/* Does nothing if it is not waiting. Call it before the environment is destroyed. */
void certainty_forget(struct certainty_waiter *waiter);

/* The doubt has ended: calls the waiters, as many per turn as there is time for. A waiter
 * may run into the next doubt, and then waits again. */
void certainty_return(struct certainty *certainty);

/* Memory has everything that the leader had applied when it answered the question of this
 * number, or a later one. */
void certainty_answered(struct certainty *certainty, uint64_t number);

/* From now on, this process follows another one, or decides itself (false, the default). Then
 * no question is needed any more. */
void certainty_follow(struct certainty *certainty, bool follows);
