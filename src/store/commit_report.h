/* commit_report.h - reports commits to their callers, a portion in each turn of the loop.
 *
 * Applying a change costs what its subscribers decide, often more than committing it. So
 * projects take turns, commit by commit: a project with costly changes delays its own
 * callers, and the others by one slice of a turn. Commits of one environment are reported
 * in the order in which they were committed. A commit of several environments waits for all
 * commits before it, and those after it wait for it.
 *
 * Loop thread only. */
#pragma once

#include "store/commit_turns.h"
#include "store/positions.h"

struct commit_report {
    struct store *store;         /* whose failing and full follow what is told */
    struct positions *positions; /* follow what is reported */
    struct commit_turns
        turns;  /* the first commit of each environment may be half applied */
    bool spans; /* the only commit in turns is of several environments */
};

void commit_report_init(struct commit_report *report, struct store *store,
                        struct positions *positions);

/* Everything was reported. */
void commit_report_finish(struct commit_report *report);

/* Takes commits from done, in its order, up to one that has to wait. */
void commit_report_take(struct commit_report *report, struct list *done);

/* Tells callers until the turn's time is over; false: something is left for the next turn. */
bool commit_report_run(struct commit_report *report);

/* What an environment stores has changed by so much. */
void commit_report_growth(struct commit_report *report, uint32_t env, int64_t bytes);

/* How the store is; what has changed is logged with the reason, which the caller keeps. */
void commit_report_state(struct commit_report *report, bool failing, bool full,
                         const char *reason);

/* What commits take the time by: monotonic µs. */
int64_t commit_report_now_us(void);
