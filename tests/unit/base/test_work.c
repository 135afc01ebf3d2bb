/* Jobs of the thread pool: how they are stopped, and that each stops at its limit in
 * works.def. */
#include "tests/support/world/unit.h"

#include "base/list.h"
#include "base/work.h"

/* Runs until it is stopped. */
struct job {
    struct work work;
    unsigned runs, ends;
    bool was_stopped;
};

static void run(struct work *work)
{
    struct job *job = container_of(work, struct job, work);
    job->runs++;
    while (work_may_continue(work))
        uv_sleep(1);
}

static void done(struct work *work)
{
    struct job *job = container_of(work, struct job, work);
    job->ends++;
    job->was_stopped = work_is_stopped(work);
}

static void stop(uv_timer_t *timer)
{
    work_stop(timer->data);
}

/* This job has no limit of its own: without work_stop it would not end. */
static void stopped_job_ends_and_can_begin_again(void **state)
{
    (void)state;
    struct job job = { .work = { .run = run, .done = done } };
    uv_loop_t loop;
    uv_timer_t timer;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &timer);
    timer.data = &job.work;
    for (unsigned i = 1; i <= 2; i++) {
        work_begin(&loop, &job.work, WORK_BUILD);
        uv_timer_start(&timer, stop, 5, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(job.runs, i);
        assert_int_equal(job.ends, i);
        assert_true(job.was_stopped);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void a_job_ends_at_the_limit_of_its_kind(void **state)
{
    (void)state;
    struct job job = { .work = { .run = run, .done = done } };
    uv_loop_t loop;
    uv_loop_init(&loop);
    work_begin(&loop, &job.work, WORK_REMOVAL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(job.ends, 1);
    assert_false(job.was_stopped);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void work_without_a_job_is_never_stopped(void **state)
{
    (void)state;
    assert_true(work_may_continue(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_job_ends_and_can_begin_again),
        cmocka_unit_test(a_job_ends_at_the_limit_of_its_kind),
        cmocka_unit_test(work_without_a_job_is_never_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
