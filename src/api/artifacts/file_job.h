/* file_job.h - a job on files that runs outside of the loop thread.
 *
 *   loop: file_job_begin ─► another thread: work ─► loop: done
 *
 * A disk may be slow, so the loop never waits for one. work reads and writes only the
 * struct that embeds the job; names of such functions end in `_work`. done is called once,
 * also while the gateway stops. */
#pragma once

struct loop;

struct file_job {
    void (*work)(struct file_job *job);
    void (*done)(struct file_job *job);
    int error; /* errno of the failure in work; 0: success */
};

/* Begins a job. The caller sets work and done before. */
void file_job_begin(struct loop *loop, struct file_job *job);
