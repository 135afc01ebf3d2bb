/* runner_end.h - what to tell the gateway when the process of a run has ended; pure.
 *
 *   nothing was started           ─► release: no attempt is spent
 *   its attempt was completed     ─► nothing
 *   an attempt was open           ─► look at the newest snapshot: it may have ended elsewhere
 *        ├─ the run is canceled ─► complete: TASK_RUN_CANCELLED
 *        ├─ it still executes here ─► complete with the code of the end, to be queued anew
 *        └─ anything else       ─► nothing */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text.h"
#include "os/process/process.h"

struct runner_facts {
    bool started;    /* the gateway has answered a start of this process */
    bool open;       /* that attempt, or one behind it, was not completed */
    int64_t attempt; /* the number of the newest one */
    bool killed;     /* by us */
};

enum runner_end { RUNNER_END_NOTHING, RUNNER_END_RELEASE, RUNNER_END_LOOK };

enum runner_end runner_end_of(const struct runner_facts *facts);

enum runner_verdict {
    RUNNER_VERDICT_NOTHING,
    RUNNER_VERDICT_CANCELED,
    RUNNER_VERDICT_FAILED
};

/* Reads the answer to snapshots/latest. */
struct runner_newest {
    char snapshot[96];
    enum runner_verdict verdict;
};

struct runner_newest runner_end_judge(const struct runner_facts *facts,
                                      struct slice answer);

/* Why a process has ended, as figures name it. */
enum runner_cause {
    RUNNER_CAUSE_DONE, /* it had no run any more */
    RUNNER_CAUSE_EXIT,
    RUNNER_CAUSE_SIGNAL,
    RUNNER_CAUSE_MEMORY,
    RUNNER_CAUSE_KILLED, /* by this role */
    RUNNER_CAUSE_NOT_STARTED,
    RUNNER_CAUSES
};

/* has_run: it was given one, and that one was not taken back. */
enum runner_cause runner_end_cause(const struct runner_facts *facts, bool has_run,
                                   const struct process_end *end);

/* The code of an internal error. */
const char *runner_end_code(const struct runner_facts *facts,
                            const struct process_end *end);

/* The body that completes the attempt. trace: the last output of the process, any bytes. */
void runner_end_completion(struct buf *out, const char *run, const char *code,
                           const char *message, struct slice trace);

/* What the answer to a complete says of the attempt: false when the same process goes on, with
 * another try or to confirm a cancel. */
bool runner_end_is_final(struct slice answer);

/* Why a run is given back, for people: at most 256 bytes, as the gateway takes it. */
void runner_end_release(struct buf *out, const char *reason);
