/* file_job.c - runs jobs on the thread pool of libuv. */
#include "api/artifacts/file_job.h"

#include <errno.h>

#include "base/list.h"
#include "base/loop.h"

static void on_work(struct work *pool)
{
    struct file_job *job = container_of(pool, struct file_job, pool);
    if (file_job_may_continue(job))
        job->work(job);
    else
        job->error = ECANCELED;
}

static void on_done(struct work *pool)
{
    struct file_job *job = container_of(pool, struct file_job, pool);
    job->done(job);
}

void file_job_begin(struct loop *loop, struct file_job *job)
{
    job->error = 0;
    job->pool.run = on_work;
    job->pool.done = on_done;
    work_begin(loop_uv(loop), &job->pool, WORK_FILE);
}

void file_job_cancel(struct file_job *job)
{
    work_stop(&job->pool);
}

bool file_job_may_continue(const struct file_job *job)
{
    return work_may_continue(&job->pool);
}
