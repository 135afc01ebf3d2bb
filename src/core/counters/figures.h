/* figures.h - counters of an environment since the gateway's start, for its metrics.
 *
 *   environment 1 ──────────► the figures of 1        each of the first 50 environments has
 *   environment 4 ──────────► the figures of 4        figures of its own
 *   branch 7 of preview 4 ───────────▲
 *   environments 51, 52, … ─► the rest, together
 *
 * So their number is bounded, however many environments there are, and a reader need not
 * add them up. Figures belong to their environment until it leaves memory along with its
 * branches. Handing a count from one environment to another would look like a burst. */
#pragma once

#include "base/buckets.h"
#include "runcast/run.h"

enum { FIGURES_MAX = 50, FIGURES_ENDS = RUN_STATUS_COUNT - RUN_CANCELED };

struct figures {
    uint32_t number; /* of the environment; 0: unused, or the rest */
    uint32_t users;  /* environments that count here: this one and its branches */
    int64_t triggers;
    int64_t ends[FIGURES_ENDS]; /* by final status, from RUN_CANCELED on */
    struct buckets queue_waits; /* with bounds_of_queues */
};

/* Zeroed: empty. */
struct figures_table {
    struct figures first[FIGURES_MAX];
    struct figures rest;
};

/* Returns the figures of the environment with this number, for itself or one of its
 * branches. The caller counts there until figures_leave. */
struct figures *figures_join(struct figures_table *table, uint32_t number);
void figures_leave(struct figures *figures);

/* Returns the index of figures in the table; FIGURES_MAX: the rest. */
size_t figures_place(const struct figures_table *table, const struct figures *figures);

/* A run was created (before: -1) or has changed its status. */
void figures_note_run(struct figures *figures, int before, enum run_status after);
/* A worker got a run that had waited in its queue for this long. */
void figures_note_wait(struct figures *figures, int64_t us);
