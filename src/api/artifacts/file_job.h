/* file_job.h - one piece of work on files, done off the loop.
 *
 *   loop: file_job_begin ─► another thread: work ─► loop: done
 *
 * A disk may take as long as it likes: the loop never waits for one. work reads and writes
 * nothing but what is in the struct that embeds the job; names of such functions end in
 * `_work`. done is called once, also while the gateway stops. */
#pragma once

struct loop;

struct file_job {
    void (*work)(struct file_job *job);
    void (*done)(struct file_job *job);
    int error; /* errno of what failed in work; 0: all went well */
};

/* With work and done set. */
void file_job_begin(struct loop *loop, struct file_job *job);
