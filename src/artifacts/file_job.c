/* file_job.c - hands jobs to the threads of libuv. */
#include "artifacts/file_job.h"

#include <assert.h>
#include <uv.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/mem.h"

struct file_request {
    uv_work_t uv;
    struct file_job *job;
};

static void on_work(uv_work_t *uv)
{
    struct file_job *job = container_of(uv, struct file_request, uv)->job;
    job->work(job);
}

static void on_done(uv_work_t *uv, int status)
{
    struct file_request *request = container_of(uv, struct file_request, uv);
    struct file_job *job = request->job;
    (void)status; /* nobody cancels one */
    free(request);
    job->done(job);
}

void file_job_begin(struct loop *loop, struct file_job *job)
{
    struct file_request *request = mem_new(struct file_request);
    request->job = job;
    job->error = 0;
    int status = uv_queue_work(loop_uv(loop), &request->uv, on_work, on_done);
    assert(!status);
    (void)status;
}
