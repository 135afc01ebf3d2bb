/* timers.h - a heap of deadlines.
 *
 * A timer is embedded in its owner's struct and takes 16 bytes; its function is stored once
 * per kind of timer. The heap has no clock: the loop calls timers_next, sleeps, and calls
 * timers_run. Deadlines are on the monotonic clock of the loop, in milliseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct timer;
typedef void timer_fn(struct timer *timer);

struct timer {
    int64_t at_ms;
    uint32_t place; /* in the heap, from 1; 0: not armed */
    uint32_t kind;  /* index from timers_kind, which selects the function */
};

struct timers {
    struct timer **heap; /* from 1 */
    uint32_t count, capacity;
    timer_fn *kinds[64]; /* timers_kind asserts that no more are registered */
    uint32_t kind_count;
};

void timers_init(struct timers *timers);
void timers_finish(struct timers *timers);

/* Returns the kind of timers that call fn; registers it at the first call. */
uint32_t timers_kind(struct timers *timers, timer_fn *fn);

/* Arms or moves the timer. */
void timers_set(struct timers *timers, struct timer *timer, uint32_t kind, int64_t at_ms);

/* Does nothing if the timer is not armed. */
void timers_clear(struct timers *timers, struct timer *timer);

/* Returns the nearest deadline, or INT64_MAX. */
int64_t timers_next(const struct timers *timers);

/* Disarms and calls timers due at now_ms, at most limit; returns true if more are due. */
bool timers_run(struct timers *timers, int64_t now_ms, unsigned limit);
