/* dequeued_message.h - writes the messages for workers, as JSON.
 *
 * Each function appends one JSON value. Required members are always present; optional ones
 * are left out when unset. Statuses are the internal words. Ids and friendly ids are the
 * same. */
#pragma once

#include "accounts/accounts.h"
#include "base/buf.h"
#include "core/engine/attempts.h"
#include "core/fleet/worker_versions.h"
#include "runcast/run.h"

/* A run that was leased, for its message. */
struct dequeued {
    const struct run *run;
    const struct account *account;
    const struct worker *worker; /* that the run is bound to; NULL: forgotten */
    int64_t at;                  /* Unix ms */
    double cents_per_ms;
};

/* Appends one element of dequeuedMessages. */
void message_add_dequeued(struct buf *out, const struct dequeued *dequeued);

/* {id, friendlyId, executionStatus, description, createdAt} */
void message_add_snapshot(struct buf *out, const struct run *run);

/* {id, friendlyId, status, attemptNumber} */
void message_add_run(struct buf *out, const struct run *run);

/* {version, snapshot, run, completedWaitpoints, batch?}; waitpoints: from
 * completed_waits.h. */
void message_add_state(struct buf *out, const struct run *run, struct slice waitpoints);

/* Appends the response of snapshots/latest: {execution: {…}}. */
void message_add_latest(struct buf *out, const struct run *run, struct slice waitpoints);

/* Facts that a task's process needs about where it runs. */
struct task_home {
    const struct account *account;
    struct slice base_url;
    bool needs_key;      /* its worker does not have the environment's secret key */
    double cents_per_ms; /* of the run; unused if there is none */
    int64_t log_rows;    /* spans and logs that a run may have */
};

/* Appends the response of attempts/start, with an empty payload. Returns the offset inside
 * the payload's quotes where its text belongs. worker NULL: the version was forgotten. */
size_t message_add_start(struct buf *out, const struct run *run,
                         const struct task_home *home, const struct worker *worker);

/* Appends the response of attempts/complete: {result: {…}}. */
void message_add_result(struct buf *out, const struct run *run, enum attempt_result result);

/* Appends {NAME: "value"}, a task process's variables; the environment's own come first.
 * run NULL: for the project. */
void message_add_variables(struct buf *out, const struct run *run,
                           const struct task_home *home);
