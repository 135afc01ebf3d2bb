/* dequeued_message.h - what workers are told, as JSON.
 *
 * Each function appends one JSON value. Required members are always there, optional ones
 * are left out when unset. Statuses are the internal words; ids and friendly ids are the
 * same. */
#pragma once

#include "accounts/accounts.h"
#include "base/buf.h"
#include "core/engine/attempts.h"
#include "core/fleet/worker_versions.h"
#include "runcast/run.h"

/* A run with its lease. */
struct dequeued {
    const struct run *run;
    const struct account *account;
    const struct worker *worker; /* that the run is bound to; NULL: it has gone */
    int64_t at;                  /* Unix ms */
    double cents_per_ms;
};

/* One element of dequeuedMessages. */
void message_add_dequeued(struct buf *out, const struct dequeued *dequeued);

/* {id, friendlyId, executionStatus, description, createdAt} */
void message_add_snapshot(struct buf *out, const struct run *run);

/* {id, friendlyId, status, attemptNumber} */
void message_add_run(struct buf *out, const struct run *run);

/* {version, snapshot, run, completedWaitpoints, batch?}. waitpoints: the array of
 * completed_waits.h. */
void message_add_state(struct buf *out, const struct run *run, struct slice waitpoints);

/* What snapshots/latest answers: {execution: {…}}. */
void message_add_latest(struct buf *out, const struct run *run, struct slice waitpoints);

/* Where a task's process runs, and what it has to be told of that. */
struct task_home {
    const struct account *account;
    struct slice base_url;
    bool needs_key;      /* its worker has not the secret key of the environment */
    double cents_per_ms; /* of the run; unused where there is none */
};

/* What attempts/start answers, with an empty payload. Gives the offset, inside its quotes,
 * where the text belongs. worker NULL: the version has gone. */
size_t message_add_start(struct buf *out, const struct run *run,
                         const struct task_home *home, const struct worker *worker);

/* What attempts/complete answers: {result: {…}}. */
void message_add_result(struct buf *out, const struct run *run, enum attempt_result result);

/* {NAME: "value"}: what a task process of the environment gets, its own variables first;
 * run NULL: for the project. */
void message_add_variables(struct buf *out, const struct run *run,
                           const struct task_home *home);
