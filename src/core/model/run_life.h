/* run_life.h - which events a run may undergo in each state, and what its errors mean.
 *
 * run_life.c has the one table of all transitions. Pure: no function here reads a clock,
 * and only run_advance changes a run. */
#pragma once

#include "runcast/run.h"

enum run_event {
    EVENT_DELAY_OVER,
    EVENT_NO_VERSION, /* no worker has the task */
    EVENT_VERSION_CAME,
    EVENT_TTL_OVER,
    EVENT_DEQUEUED,
    EVENT_LEASE_OVER, /* dequeued, but no attempt started in time */
    EVENT_STARTED,
    EVENT_WAIT,
    EVENT_WAIT_OVER,
    EVENT_RETRY_SOON,   /* attempt failed; the worker keeps the run and starts again */
    EVENT_RETRY_QUEUED, /* attempt failed; back to the queue, not before due_at */
    EVENT_SUCCEEDED,
    EVENT_FAILED,
    EVENT_CRASHED,
    EVENT_SYSTEM_FAILURE,
    EVENT_TIMED_OUT,
    EVENT_INTERRUPTED, /* dev session disconnected or silent */
    EVENT_CANCEL,
    EVENT_CANCEL_CONFIRMED,
    EVENT_COUNT
};

/* Makes the transition: sets status, execution, snapshot, finished_at and updated_at. The
 * caller sets due_at and everything else that the event changes. Returns ERR_CONFLICT if
 * the event is not possible in this state. */
enum err run_advance(struct run *run, enum run_event event, int64_t now_ms);

/* Returns true while the run has a slot of its queue and of its environment. A waiting run
 * has none, and does not resume without one when its wait ends. */
bool run_holds_slot(const struct run *run);

/* Returns true while a worker has the run: with a slot, or waiting. */
bool run_is_with_worker(const struct run *run);

/* Returns the event for a run that ends with this error and is not retried.
 * TASK_RUN_CANCELLED, which is an error although no client canceled the run, gives
 * EVENT_INTERRUPTED. */
enum run_event run_event_of_error(struct slice error_json, bool is_dev);

/* Returns true if the process ran out of memory, or the task reports that (the SDK's
 * OutOfMemoryError). */
bool run_error_is_out_of_memory(struct slice error_json);

/* Returns false for error codes that are never retried. */
bool run_error_is_retriable(struct slice error_json);
