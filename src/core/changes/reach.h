/* reach.h - waits until memory has the changes that a page of the store already includes.
 *
 *   memory:  … 57 58 59 │            applied = 59
 *   page of the store:  │ … 62      reach = 62: its reader waits for 60, 61 and 62
 *
 * The store may be ahead of memory by commits that are not applied yet. At a gateway that
 * follows, it may be so for long. A run that has changed since is in neither of both, if it
 * has left memory.
 *
 * Changes of an environment may wait at a gateway that follows, while those of others are
 * applied. Its memory then lacks what has arrived, so it may be shown only for a while. */
#pragma once

#include "base/loop.h"

/* Embedded by an owner that waits. */
struct reach {
    uint64_t seq;
    void (*fn)(struct reach *reach);
    struct list link; // reaches::waiting; linked while it waits
};

/* All of one environment. */
struct reaches {
    struct loop *loop;
    const uint64_t *applied; /* every change up to here is in memory */
    uint64_t arrived;        /* up to here, changes are in memory or wait at this gateway */
    int64_t shown_until;     /* loop_boot_ms; INT64_MAX: no change waits */
    struct list waiting;     // reach::link
    struct deferred calling;
};

void reaches_init(struct reaches *reaches, struct loop *loop, const uint64_t *applied);

/* Returns true if memory is too old to be shown, because changes have waited for too long. */
static inline bool reaches_are_late(const struct reaches *reaches)
{
    return reaches->shown_until != INT64_MAX &&
           loop_boot_ms(reaches->loop) >= reaches->shown_until;
}

/* Requires that none is left. */
void reaches_finish(struct reaches *reaches);

/* Call it when *applied has moved. */
static inline void reaches_note(struct reaches *reaches)
{
    if (!list_empty(&reaches->waiting))
        loop_defer(reaches->loop, &reaches->calling);
}

void reach_init(struct reach *reach, void (*fn)(struct reach *reach));

/* Calls fn once, on the loop, when memory has every change up to reach->seq, which it lacks
 * now. Does nothing if it is waiting already. */
void reach_wait(struct reaches *reaches, struct reach *reach);

/* Does nothing if it is not waiting. */
void reach_forget(struct reach *reach);

static inline bool reach_waits(const struct reach *reach)
{
    return !list_empty(&reach->link);
}
