/* commit_report.h - reports finished commits to their callers, some per turn of the loop.
 *
 * Applying a change to its subscribers often costs more than committing it. So projects
 * take turns, commit by commit (commit_turns.h): a project with costly changes delays its
 * own callers, but those of another project only by one time slice. Commits of one
 * environment are reported in the order in which they were committed. A commit that spans
 * several environments waits for all commits before it, and those after it wait for it.
 *
 * Loop thread only. */
#pragma once

#include "store/commit_turns.h"
#include "store/positions.h"

struct commit_report {
    struct store *store; /* its failing and full flags are set by commit_report_state */
    struct positions *positions; /* updated as commits are reported */
    /* Commits to report. The first one of each environment may be partly applied. */
    struct commit_turns turns;
    bool spans; /* turns has a single commit, which spans several environments */
};

void commit_report_init(struct commit_report *report, struct store *store,
                        struct positions *positions);

/* Requires that everything was reported. */
void commit_report_finish(struct commit_report *report);

/* Takes commits from done, in order, up to the first that must wait. */
void commit_report_take(struct commit_report *report, struct list *done);

/* Reports commits until the time slice ends. Returns false if some are left. */
bool commit_report_run(struct commit_report *report);

/* Adds bytes, which may be negative, to the stored bytes of the environment.
 *
 * Calls store::on_stored. */
void commit_report_growth(struct commit_report *report, uint32_t env, int64_t bytes);

/* Sets the state of the store, and logs a change with the reason, which is borrowed. */
void commit_report_state(struct commit_report *report, bool failing, bool full,
                         const char *reason);

/* The clock for times of commits: monotonic µs. */
int64_t commit_report_now_us(void);
