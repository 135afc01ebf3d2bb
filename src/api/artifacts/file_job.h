/* file_job.h - a job on files that runs off the loop thread.
 *
 *   loop: file_job_begin ─► another thread: work ─► loop: done
 *   loop: file_job_cancel ──────────────────┘ does not begin, or ends at its next piece
 *
 * A disk may be slow, so the loop never waits for one. work reads and writes only the
 * struct that embeds the job; names of these functions end in `_work`. done is called once,
 * even while the gateway is stopping. */
#pragma once

#include <stdbool.h>

#include "base/work.h"

struct loop;

struct file_job {
    void (*work)(struct file_job *job);
    void (*done)(struct file_job *job);
    int error;        /* errno of the failure in work; ECANCELED: canceled; 0: success */
    struct work pool; /* private */
};

/* Begins a job. The caller has set work and done. */
void file_job_begin(struct loop *loop, struct file_job *job);

/* Cancels a job whose result is not needed any more: its client has left, or the gateway
 * stops. done is called as usual, with ECANCELED unless the job had done its last step.
 * Does nothing if the job is not in progress. */
void file_job_cancel(struct file_job *job);

/* Returns false once the job is canceled. A job of several pieces calls it before each one,
 * and then sets ECANCELED. On its thread. */
bool file_job_may_continue(const struct file_job *job);
