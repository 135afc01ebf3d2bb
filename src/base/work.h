/* work.h - jobs for the threads of libuv's pool; each can be stopped and has a time limit.
 *
 *   loop: work_begin ─► thread: run … work_may_continue … ─► loop: done
 *   loop: work_stop  ───────────────────┘ false from now on
 *
 * The pool has four threads, shared by all jobs of the process, so the length of a job must
 * not depend on untrusted input. works.def lists every kind of job with its limit and with
 * what ends it. A job that exceeds its limit returns, and its owner starts it again: by
 * then the jobs that waited have had their turn. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum work_kind {
#define WORK(code, name, limit_ms, end) code,
#include "base/works.def"
#undef WORK
    WORK_KINDS
};

/* Embedded by its owner, who zeroes it and sets run and done. */
struct work {
    void (*run)(struct work *work);  /* on a thread of the pool */
    void (*done)(struct work *work); /* on the loop, once; may free it or start it again */
    enum work_kind kind;
    atomic_bool stopped;
    uint64_t begun_ns, ended_ns; /* of the last run; uv_hrtime */
    uv_work_t request;
};

/* Starts the job, which must not be in progress. Clears an earlier work_stop. */
void work_begin(uv_loop_t *loop, struct work *work, enum work_kind kind);

/* Makes run return soon; done is called as usual. Call it on the loop. Does nothing unless
 * the job is in progress. */
void work_stop(struct work *work);

/* Returns false after work_stop, and once the time limit of the kind has passed. Call it on
 * the thread. Always true for NULL. */
bool work_may_continue(const struct work *work);

/* Returns true if work_stop was called since the job was started. */
bool work_is_stopped(const struct work *work);
