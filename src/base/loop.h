/* loop.h - what happens once per turn of the loop.
 *
 *   poll: sockets, store reports, timers ─► deferred calls ─► flushers ─► late ones ─► poll …
 *
 * It is the world of the parts above it: both clocks, the timers, the time left. With a
 * libuv loop it runs by itself; without one (tests, simulation) the test steps it and
 * owns the clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timers.h"

struct loop;
struct uv_loop_s;

/* A call that comes at the end of this turn, once. Embedded by whoever needs it; it may
 * free the memory it is in. */
struct deferred {
    void (*fn)(struct deferred *deferred);
    struct list link; // loop::deferred; linked while waiting
};

/* Called at the end of each turn after something asked for it with loop_wake. True: not
 * finished (the turn's time is over), call again next turn. Even when no time is left it is
 * called and does one unit of work: it works in a stint. */
struct flusher {
    bool (*fn)(struct flusher *flusher);
    bool
        late; /* called behind all others, for what they have gathered: in this turn, too */
    bool awake;
    struct list link; // loop::awake or late; linked while awake
};

struct loop *loop_create(struct uv_loop_s *uv); /* uv NULL: stepped by loop_turn */

/* NULL is fine. No timer is armed and nothing deferred or awake any more. The libuv handles
 * are closed; they are gone after the next run of the libuv loop, and so is the loop. */
void loop_destroy(struct loop *loop);

struct uv_loop_s *loop_uv(struct loop *loop);
struct timers *loop_timers(struct loop *loop);

/* Wall clock, Unix milliseconds; never used for deadlines. */
int64_t loop_wall_ms(struct loop *loop);

/* Monotonic milliseconds of this turn. */
int64_t loop_now_ms(struct loop *loop);

/* The same clock read now, and it goes on while the machine sleeps: for what must be known
 * however long this process stood still. */
int64_t loop_boot_ms(struct loop *loop);

/* Arms the timer ms from now (0: next turn; from inside a timer at least 1). An armed timer
 * keeps the libuv loop alive, and so does what is deferred or awake. */
void loop_set_timer(struct loop *loop, struct timer *timer, uint32_t kind, int64_t ms);

/* Harmless when it waits already. Deferred by a deferred call it comes next turn. */
void loop_defer(struct loop *loop, struct deferred *deferred);
void loop_cancel_deferred(struct deferred *deferred);

void loop_add_flusher(struct loop *loop, struct flusher *flusher);
void loop_remove_flusher(struct flusher *flusher);
void loop_wake(struct loop *loop, struct flusher *flusher);

/* False when this turn has used its share of thread CPU time (CLOCK_THREAD_CPUTIME_ID):
 * half a millisecond, so that a client whose request costs little waits about that long for
 * those whose requests cost much, and no turn exceeds 5 ms. Long work asks through a stint. */
bool loop_time_left(struct loop *loop);

/* Gives the rest of this turn a share of its own, whatever was used before. Sockets that are
 * ready have one: otherwise a turn whose commits cost more than its share would serve a single
 * socket, and a client would wait for as many turns as others have sockets that are ready. */
void loop_begin_share(struct loop *loop);

/* What one piece of long work does in one turn: one unit, and more while there is time.
 *
 *     struct stint stint = loop_stint(loop);
 *     while (there is more && stint_goes_on(&stint))
 *         one unit, well below 1 ms;
 *     if (there is more)
 *         loop_defer(loop, deferred);
 *
 * The first unit is done however late it is: work that asked before it would stand still
 * for as long as the gateway is busy. */
struct stint {
    struct loop *loop;
    unsigned units; /* begun */
};

static inline struct stint loop_stint(struct loop *loop)
{
    return (struct stint){ .loop = loop };
}

/* For units so short that only every so many of them are worth a look at the clock. */
static inline bool stint_goes_on_by(struct stint *stint, unsigned units)
{
    bool ask = stint->units && stint->units % units == 0;
    stint->units++;
    return !ask || loop_time_left(stint->loop);
}

static inline bool stint_goes_on(struct stint *stint)
{
    return stint_goes_on_by(stint, 1);
}

/* Stepped loops only: sets both clocks forward by ms, runs due timers, deferred calls and
 * flushers. True when something is left for another turn without waiting. */
bool loop_turn(struct loop *loop, int64_t ms);

/* Stepped loops only: where the wall clock stands. */
void loop_set_wall(struct loop *loop, int64_t unix_ms);

/* Stepped loops only: how often loop_time_left says yes in one turn, instead of a clock, so
 * that a simulation repeats. 1000 unless set. */
void loop_set_budget(struct loop *loop, unsigned asks);
