/* loop.h - the work of each turn of the event loop, its clocks, and its time slices.
 *
 *   poll: sockets, store reports, timers ─► deferred calls ─► flushers ─► last ones ─► poll
 *
 * A turn is one pass through this circle. Code above this layer knows its environment only
 * through this header: both clocks, the timers, and the time left. With a libuv loop it
 * runs by itself. Without one (tests, simulation), the test steps it and controls the
 * clocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timers.h"

struct loop;
struct uv_loop_s;

/* A function to be called once, at the end of this turn. Embedded in its owner's struct;
 * the function may free that memory. */
struct deferred {
    void (*fn)(struct deferred *deferred);
    struct list link; // loop::deferred; linked while waiting
};

/* Called at the end of each turn in which loop_wake was called for it. Returns true if it
 * has more to do (the turn's time is used up) and must be called in the next turn. It is
 * called even if no time is left, and then does one unit of work (struct timeslice). */
struct flusher {
    bool (*fn)(struct flusher *flusher);
    /* Called after all others in the same turn: for what they collected. While others have
     * more to do than fits into a turn, it is also called before them. */
    bool runs_last;
    bool awake;
    struct list link; // loop::awake or last; linked while awake
};

struct loop *loop_create(struct uv_loop_s *uv); /* uv NULL: stepped by loop_turn */

/* Ignores NULL. No timer may be armed, and nothing deferred or awake. Closes the libuv
 * handles; they and the loop are freed in the next run of the libuv loop. */
void loop_destroy(struct loop *loop);

struct uv_loop_s *loop_uv(struct loop *loop);
struct timers *loop_timers(struct loop *loop);

/* Wall clock, Unix ms; never use it for deadlines. */
int64_t loop_wall_ms(struct loop *loop);

/* Monotonic milliseconds of this turn. */
int64_t loop_now_ms(struct loop *loop);

/* Reads the clock that also runs while the machine sleeps (monotonic, not cached). For
 * deadlines that must hold however long this process was suspended. */
int64_t loop_boot_ms(struct loop *loop);

/* Arms the timer, ms from now (0: next turn; inside a timer at least 1). Armed timers keep
 * the libuv loop alive, and so do deferred calls and awake flushers. */
void loop_set_timer(struct loop *loop, struct timer *timer, uint32_t kind, int64_t ms);

/* Does nothing if it is deferred already. From inside a deferred call: next turn. */
void loop_defer(struct loop *loop, struct deferred *deferred);
void loop_cancel_deferred(struct deferred *deferred);

void loop_add_flusher(struct loop *loop, struct flusher *flusher);
void loop_remove_flusher(struct flusher *flusher);
void loop_wake(struct loop *loop, struct flusher *flusher);

/* Returns false once this turn has used its share of thread CPU time. The share is half a
 * millisecond (CLOCK_THREAD_CPUTIME_ID): a client with cheap requests waits about that long
 * for those with expensive ones, and no turn exceeds 5 ms. Long work uses struct timeslice
 * instead. */
bool loop_time_left(struct loop *loop);

/* Gives the rest of this turn a new share, whatever was used before. Ready sockets get one.
 * Otherwise a turn whose commits cost more than its share would serve a single socket, and
 * a client would wait for as many turns as there are ready sockets. */
void loop_begin_share(struct loop *loop);

/* A time slice: the part of long work that is done in one turn. It is one unit, and more
 * while there is time.
 *
 *     struct timeslice timeslice = loop_timeslice(loop);
 *     while (there is more && timeslice_left(&timeslice))
 *         one unit, well below 1 ms;
 *     if (there is more)
 *         loop_defer(loop, deferred);
 *
 * The first unit is done even if no time is left. Otherwise the work would make no progress
 * while earlier work uses up every turn. */
struct timeslice {
    struct loop *loop;
    unsigned units; /* units that were begun */
};

static inline struct timeslice loop_timeslice(struct loop *loop)
{
    return (struct timeslice){ .loop = loop };
}

/* For units so short that the clock is read only every `units` of them. */
static inline bool timeslice_left_every(struct timeslice *timeslice, unsigned units)
{
    bool ask = timeslice->units && timeslice->units % units == 0;
    timeslice->units++;
    return !ask || loop_time_left(timeslice->loop);
}

static inline bool timeslice_left(struct timeslice *timeslice)
{
    return timeslice_left_every(timeslice, 1);
}

/* Stepped loops only: advances both clocks by ms and runs what is due: timers, deferred
 * calls and flushers. Returns true if work is left that another turn could do without
 * waiting. */
bool loop_turn(struct loop *loop, int64_t ms);

/* Stepped loops only: sets the wall clock. */
void loop_set_wall(struct loop *loop, int64_t unix_ms);

/* Stepped loops only: sets how often loop_time_left returns true in one turn. It replaces
 * the clock, so that a simulation is repeatable. Default: 1000. */
void loop_set_budget(struct loop *loop, unsigned asks);
