/* runner_end.h - decides what to report to the gateway when a run's process has ended;
 * pure.
 *
 *   nothing was started           ─► release: no attempt is used up
 *   its attempt was completed     ─► nothing
 *   an attempt was open           ─► get the newest snapshot: it may have ended elsewhere
 *        ├─ the run is canceled ─► complete: TASK_RUN_CANCELLED
 *        ├─ it still executes here ─► complete with an error code, to be queued again
 *        └─ anything else       ─► nothing */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"
#include "os/process/process.h"

struct runner_facts {
    bool started;    /* the gateway has accepted a start by this process */
    bool open;       /* this process's newest attempt was not completed */
    int64_t attempt; /* number of the newest attempt */
    bool killed;     /* by us */
};

enum runner_end { RUNNER_END_NOTHING, RUNNER_END_RELEASE, RUNNER_END_LOOK };

enum runner_end runner_end_of(const struct runner_facts *facts);

enum runner_verdict {
    RUNNER_VERDICT_NOTHING,
    RUNNER_VERDICT_CANCELED,
    RUNNER_VERDICT_FAILED
};

/* Verdict from the response to snapshots/latest. */
struct runner_newest {
    char snapshot[96];
    enum runner_verdict verdict;
};

struct runner_newest runner_end_decide(const struct runner_facts *facts,
                                       struct slice answer);

/* Causes of an end, as metrics name them. */
enum runner_cause {
    RUNNER_CAUSE_DONE, /* it no longer had a run */
    RUNNER_CAUSE_EXIT,
    RUNNER_CAUSE_SIGNAL,
    RUNNER_CAUSE_MEMORY,
    RUNNER_CAUSE_KILLED, /* by this supervise role */
    RUNNER_CAUSE_NOT_STARTED,
    RUNNER_CAUSES
};

/* has_run: it has a run, which was not taken back. */
enum runner_cause runner_end_cause(const struct runner_facts *facts, bool has_run,
                                   const struct process_end *end);

/* Returns the code of the INTERNAL_ERROR to report. */
const char *runner_end_code(const struct runner_facts *facts,
                            const struct process_end *end);

/* Appends the request that completes the attempt. trace: its last output, any bytes. */
void runner_end_completion(struct buf *out, const char *run, const char *code,
                           const char *message, struct slice trace);

/* Returns true if the response to a complete call ends the attempt for this process.
 *
 * Returns false if the process continues: with another attempt, or to confirm a
 * cancellation. */
bool runner_end_is_final(struct slice answer);

/* Appends the request that releases a run. reason: for people, cut after 256 bytes. */
void runner_end_release(struct buf *out, const char *reason);
