/* commit_report.h - what was committed goes back to its callers, a portion a turn, in order.
 *
 * Loop thread only. */
#pragma once

#include "store/positions.h"

struct commit_report {
    struct store *store;         /* whose failing and full follow what is told */
    struct positions *positions; /* follow what is reported */
    struct list reporting;       /* store_commit::link; the first may be half applied */
};

void commit_report_init(struct commit_report *report, struct store *store,
                        struct positions *positions);

/* Takes from done, in its order, what is reported in one turn; nothing as long as something is
 * left of what was taken before. */
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
