/* left_runs.h - the runs that a supervise role leaves unfinished when it is killed.
 *
 *   a runner changes ─► left_runs_note ─► supervise.runs is written, once per turn
 *   the next role    ─► left_runs_report ─► a runner without a process reports each run
 *
 * Without the report, such a run would count as executing until its heartbeat timeout.
 *
 * The list names the machine that wrote it. A clone of the machine's disk has the list of a
 * role that may still execute the runs: their attempts must not be failed by the clone. */
#pragma once

#include "base/loop.h"
#include "base/slice.h"
#include "supervisor/runners/runner.h"

enum { MACHINE_TEXT = 17 };

struct left_runs {
    struct runner_shared *shared;
    char machine[MACHINE_TEXT]; /* hash of its ids, in hex; "-": it has none */
    struct deferred noted;      /* private */
};

void left_runs_init(struct left_runs *left, struct runner_shared *shared);

/* Notes that a runner got or lost a run, or that an attempt began or ended. */
void left_runs_note(struct left_runs *left);

/* Reports the runs of the process that used the folder before, on this machine. Call it
 * once, before a run is dequeued. */
void left_runs_report(const struct left_runs *left);

/* Writes what was noted. Nothing may be noted afterwards. */
void left_runs_finish(struct left_runs *left);
