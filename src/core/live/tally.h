/* tally.h - how many runs a filter wants, by status: counted once by the store, then kept.
 *
 *   begin ─► the store counts up to seq R ──────────────┐
 *            changes are noted meanwhile ─► those above R ┴─► exact, and kept by each change
 *
 * So a count is exact at every position, and costs a look at the run that changes. What is
 * behind a moving period is counted by the store, too, and taken away. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/timers.h"
#include "core/model/query.h"

struct environment;
struct window;
struct tally_load;

struct tally {
    uint64_t counts[RUN_STATUS_COUNT];
    uint64_t step;  /* how often they have changed */
    uint32_t users; /* watches that show them; without any nothing is counted */
    bool exact;
    bool stale;   /* retention has removed runs since: they are counted anew */
    bool refused; /* they are too many to be counted in the time that a read has */
    struct tally_load *load; /* the store is counting; NULL: it is not */
    /* The store has counted, or the period has moved. */
    void (*changed)(struct window *window);
    struct timer timer; /* of the next message about them */
};

/* Before and after a change of a run: its status, or TALLY_NONE where the filter did not want
 * it. */
enum { TALLY_NONE = 0xff };
void tally_note(struct tally *tally, const struct run *run, uint8_t before, uint8_t after);

/* Has the store count for the window if its tally has users, and is not exact. */
void tally_begin(struct window *window);

/* The filter's runs count from a later time on: when those before it were taken away the filter
 * says so. Until a count that is under way has ended nothing happens. */
void tally_advance(struct window *window, int64_t from);

/* The last user has left, or the window ends: what the store counts is for nobody. */
void tally_stop(struct window *window);
