/* work.h - jobs for the threads of libuv's pool, each of which can be stopped and has a bound.
 *
 *   loop: work_begin ─► thread: run … work_goes_on … ─► loop: done
 *   loop: work_stop  ───────────────────┘ false from now on
 *
 * The pool has four threads, which all jobs of the process share, so no job may keep one
 * for as long as a stranger's input decides. works.def lists every kind of job with its
 * limit and with what ends it. A job that is longer than its limit ends its run, and its
 * owner begins it again: by then the jobs that waited have had their turn. */
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

/* Embedded by its owner, who sets run and done. Zeroed is fine. */
struct work {
    void (*run)(struct work *work);  /* on a thread of the pool */
    void (*done)(struct work *work); /* on the loop, once; may free it or begin it again */
    enum work_kind kind;
    atomic_bool stopped;
    uint64_t begun_ns, ended_ns; /* of the run; uv_hrtime */
    uv_work_t request;
};

/* Begins the job, which must not be in progress. A job that was stopped before starts afresh. */
void work_begin(uv_loop_t *loop, struct work *work, enum work_kind kind);

/* On the loop. run ends soon, and done is called as usual. Does nothing unless the job is in
 * progress. */
void work_stop(struct work *work);

/* On the thread: false after work_stop, and when the limit of the kind has passed. NULL: always
 * true. */
bool work_goes_on(const struct work *work);

/* Returns true if work_stop was called since the job began. */
bool work_is_stopped(const struct work *work);
