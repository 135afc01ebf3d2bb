/* work.c - hands jobs to the thread pool, and logs those that exceeded their time limit. */
#include "base/work.h"

#include <assert.h>

#include "base/list.h"
#include "base/log.h"

enum { NS_PER_MS = 1000 * 1000, LATE_MS = 1000 };

static const struct {
    const char *name;
    uint64_t limit_ms;
} kinds[] = {
#define WORK(code, name, limit_ms, end) [code] = { name, limit_ms },
#include "base/works.def"
#undef WORK
};

static void on_thread(uv_work_t *request)
{
    struct work *work = container_of(request, struct work, request);
    work->begun_ns = uv_hrtime();
    work->run(work);
    work->ended_ns = uv_hrtime();
}

static void on_loop(uv_work_t *request, int status)
{
    struct work *work = container_of(request, struct work, request);
    uint64_t limit_ms = kinds[work->kind].limit_ms;
    uint64_t took_ms = (work->ended_ns - work->begun_ns) / NS_PER_MS;
    assert(status == 0); /* uv_cancel is not used */
    (void)status;
    if (limit_ms && took_ms > limit_ms + LATE_MS)
        log_warn("pool job exceeded its time limit", "job", kinds[work->kind].name,
                 "took_ms", log_number((int64_t)took_ms), NULL);
    work->done(work);
}

void work_begin(uv_loop_t *loop, struct work *work, enum work_kind kind)
{
    work->kind = kind;
    atomic_store(&work->stopped, false);
    int trouble = uv_queue_work(loop, &work->request, on_thread, on_loop);
    assert(trouble == 0); /* it only rejects a missing function */
    (void)trouble;
}

void work_stop(struct work *work)
{
    atomic_store(&work->stopped, true);
}

bool work_may_continue(const struct work *work)
{
    uint64_t limit_ms = work ? kinds[work->kind].limit_ms : 0;
    return !work || (!atomic_load(&work->stopped) &&
                     (!limit_ms || uv_hrtime() - work->begun_ns < limit_ms * NS_PER_MS));
}

bool work_is_stopped(const struct work *work)
{
    return atomic_load(&work->stopped);
}
