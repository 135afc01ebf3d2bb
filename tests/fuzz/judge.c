/* judge.c - measures CPU time between two calls of loop_time_left. */
#include "tests/fuzz/judge.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/loop.h"

bool __real_loop_time_left(struct loop *loop);
bool __real_loop_turn(struct loop *loop, int64_t ms);
int __real_uv_run(uv_loop_t *uv, uv_run_mode mode);
bool __wrap_loop_time_left(struct loop *loop);
bool __wrap_loop_turn(struct loop *loop, int64_t ms);
int __wrap_uv_run(uv_loop_t *uv, uv_run_mode mode);

static struct judgement judgement;
static int64_t since_ns;
static bool paused, measures;

/* Shared with a copy of this process. */
static struct outcome {
    struct judgement judgement;
    int result;
} * outcome;

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void judge_begin(void)
{
    judgement = (struct judgement){ 0 };
    paused = false;
    measures = true;
    since_ns = cpu_ns();
}

void judge_rest(void)
{
    if (paused)
        return; /* without a system call at each question for time left */
    int64_t now = cpu_ns();
    int64_t stretch_ns = now - since_ns;
    judgement.whole_ns += stretch_ns;
    if (stretch_ns > judgement.longest_ns)
        judgement.longest_ns = stretch_ns;
    since_ns = now;
}

void judge_pause(void)
{
    judge_rest();
    paused = true;
}

void judge_resume(void)
{
    paused = false;
    since_ns = cpu_ns();
}

bool judge_in_copy(int *result)
{
    int status, options = MAP_SHARED | MAP_ANONYMOUS;
    outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, options, -1, 0);
    assert(outcome != MAP_FAILED);
    fflush(NULL);
    pid_t copy = fork();
    assert(copy >= 0);
    if (!copy)
        return true;
    if (waitpid(copy, &status, 0) != copy || status)
        abort();
    judgement = outcome->judgement;
    *result = outcome->result;
    munmap(outcome, sizeof(*outcome));
    return false;
}

void judge_leave(int result)
{
    *outcome = (struct outcome){ .judgement = judgement, .result = result };
    _exit(0);
}

struct judgement judge_end(void)
{
    judge_rest();
    return judgement;
}

bool judge_measures(void)
{
    return measures;
}

bool __wrap_loop_time_left(struct loop *loop)
{
    judge_rest();
    return __real_loop_time_left(loop);
}

bool __wrap_loop_turn(struct loop *loop, int64_t ms)
{
    judge_rest();
    bool more = __real_loop_turn(loop, ms);
    judge_rest();
    return more;
}

int __wrap_uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    judge_rest();
    int alive = __real_uv_run(uv, mode);
    judge_rest();
    return alive;
}
