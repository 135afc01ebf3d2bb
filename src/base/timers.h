/* timers.h - one heap of deadlines.
 *
 * A timer is embedded in what it belongs to and costs 16 bytes beside its function. The
 * heap knows no clock: the loop asks timers_next, sleeps, and calls timers_run. Deadlines
 * are on the monotonic clock of the loop, in milliseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct timer;
typedef void timer_fn(struct timer *timer);

struct timer {
    int64_t at_ms;
    uint32_t place; /* in the heap, from 1; 0: not armed */
    uint32_t kind;  /* whose function: index from timers_kind */
};

struct timers {
    struct timer **heap; /* from 1 */
    uint32_t count, capacity;
    timer_fn *kinds[64]; /* the gateway has 46 in one loop */
    uint32_t kind_count;
};

void timers_init(struct timers *timers);
void timers_finish(struct timers *timers);

/* Registers what timers of one kind do when they are due; the same function again is the
 * same kind. */
uint32_t timers_kind(struct timers *timers, timer_fn *fn);

/* Arms or moves the timer. */
void timers_set(struct timers *timers, struct timer *timer, uint32_t kind, int64_t at_ms);

/* Harmless when not armed. */
void timers_clear(struct timers *timers, struct timer *timer);

/* The nearest deadline, or INT64_MAX. */
int64_t timers_next(const struct timers *timers);

/* Disarms and calls what is due at now_ms, at most limit of them; true when more is due. */
bool timers_run(struct timers *timers, int64_t now_ms, unsigned limit);
