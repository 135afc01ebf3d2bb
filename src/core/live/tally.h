/* tally.h - counts the runs that match a query, by status.
 *
 * The store counts them once, and changes then keep the counts current:
 *
 *   begin ─► the store counts up to seq R ──────────────┐
 *            changes are noted meanwhile ─► those above R ┴─► exact; changes keep it so
 *
 * A count is thus exact at every position, and costs only one look at each run that
 * changes. When a period moves, the store also counts the runs before its new start, and
 * they are subtracted. */
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
    uint64_t step;  /* rises each time the counts change */
    uint32_t users; /* watches that show the counts; without any, nothing is counted */
    bool exact;
    bool stale;              /* retention has removed runs since then: count again */
    bool refused;            /* the store could not count them within a read's time limit */
    struct tally_load *load; /* a count by the store in progress; NULL: none */
    /* Called when the store has counted, or the period has moved. */
    void (*changed)(struct window *window);
    struct timer timer; /* for the next message with the counts */
};

/* Updates the counts after a change of a run. before and after: its status, or TALLY_NONE
 * where the query did not match it. */
enum { TALLY_NONE = 0xff };
void tally_note(struct tally *tally, const struct run *run, uint8_t before, uint8_t after);

/* Makes the store count for the window, if its tally has users and is not exact. */
void tally_begin(struct window *window);

/* Moves the start of the query's period to `from`. If there are exact counts, they are
 * corrected first: the period moves once the runs before it have been counted and
 * subtracted. Does nothing while a count is in progress. */
void tally_advance(struct window *window, int64_t from);

/* Discards the counts, and one in progress, because the last user has left or the window
 * ends. */
void tally_stop(struct window *window);
