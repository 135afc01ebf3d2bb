/* file_job.c - runs jobs on the thread pool of libuv. */
#include "api/artifacts/file_job.h"

#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/work.h"

struct file_request {
    struct work work;
    struct file_job *job;
};

static void on_work(struct work *work)
{
    struct file_job *job = container_of(work, struct file_request, work)->job;
    job->work(job);
}

static void on_done(struct work *work)
{
    struct file_request *request = container_of(work, struct file_request, work);
    struct file_job *job = request->job;
    free(request);
    job->done(job);
}

void file_job_begin(struct loop *loop, struct file_job *job)
{
    struct file_request *request = mem_new(struct file_request);
    request->job = job;
    job->error = 0;
    request->work.run = on_work;
    request->work.done = on_done;
    work_begin(loop_uv(loop), &request->work, WORK_FILE);
}
