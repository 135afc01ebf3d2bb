/* figures.h - what is counted of an environment since the start, for those who run the gateway.
 *
 *   environment 1 ──────────► the figures of 1        each of the first 50 that come has
 *   environment 4 ──────────► the figures of 4        its own
 *   branch 7 of preview 4 ───────────▲
 *   environments 51, 52, … ─► the rest, together
 *
 * So their number is bounded, however many environments there are, and nothing is added up
 * when somebody reads them. Figures that were given away belong to their environment until
 * that leaves memory with its branches: a count never goes from one to another, which would
 * look like a burst. */
#pragma once

#include "base/buckets.h"
#include "runcast/run.h"

enum { FIGURES_MAX = 50, FIGURES_ENDS = RUN_STATUS_COUNT - RUN_CANCELED };

struct figures {
    uint32_t number; /* of the environment; 0: of nobody yet, or of the rest */
    uint32_t users;  /* environments that count here: this one, its branches */
    int64_t triggers;
    int64_t ends[FIGURES_ENDS]; /* by final status, from RUN_CANCELED on */
    struct buckets queue_waits; /* of bounds_of_queues */
};

/* The zero value is empty. */
struct figures_table {
    struct figures first[FIGURES_MAX];
    struct figures rest;
};

/* The figures of the environment with this number; an environment of its own, or a branch of
 * it, counts there from now on, until figures_leave. */
struct figures *figures_join(struct figures_table *table, uint32_t number);
void figures_leave(struct figures *figures);

/* The place of figures in the table; FIGURES_MAX: the rest. */
size_t figures_place(const struct figures_table *table, const struct figures *figures);

/* A run was made (no status before: -1), or has another status. */
void figures_note_run(struct figures *figures, int before, enum run_status after);
/* A worker got a run that has waited in its queue for so long. */
void figures_note_wait(struct figures *figures, int64_t us);
