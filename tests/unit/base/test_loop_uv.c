/* Turns of the loop with libuv: their end, their time, and what keeps the libuv loop
 * alive. */
#include "tests/support/world/unit.h"

#include <stdlib.h>
#include <time.h>
#include <uv.h>

#include "base/loop.h"
#include "base/metrics.h"

struct world {
    struct loop *loop;
    uv_loop_t uv;
    uint32_t timer_kind, forever_kind;
    struct timer timer;
    struct deferred first;
    struct flusher flusher;
    int flushes; /* how often the flusher still requests a call */
    char heard[64];
};

static struct world world;

static void hear(char what)
{
    size_t len = strlen(world.heard);
    if (len + 1 < sizeof(world.heard))
        world.heard[len] = what;
}

static void assert_heard(const char *expected)
{
    assert_string_equal(world.heard, expected);
    memset(world.heard, 0, sizeof(world.heard));
}

static void on_timer(struct timer *timer)
{
    (void)timer;
    hear('t');
}

static void on_forever(struct timer *timer)
{
    hear('t');
    loop_set_timer(world.loop, timer, world.forever_kind, 0);
}

static void on_first(struct deferred *deferred)
{
    (void)deferred;
    hear('1');
}

static bool on_flush(struct flusher *flusher)
{
    (void)flusher;
    hear('f');
    return --world.flushes > 0;
}

static int set_up(void **state)
{
    (void)state;
    world = (struct world){ 0 };
    if (uv_loop_init(&world.uv))
        return -1;
    world.loop = loop_create(&world.uv);
    world.timer_kind = timers_kind(loop_timers(world.loop), on_timer);
    world.forever_kind = timers_kind(loop_timers(world.loop), on_forever);
    world.first.fn = on_first;
    world.flusher.fn = on_flush;
    loop_add_flusher(world.loop, &world.flusher);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    timers_clear(loop_timers(world.loop), &world.timer);
    loop_cancel_deferred(&world.first);
    loop_remove_flusher(&world.flusher);
    loop_destroy(world.loop);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    return uv_loop_close(&world.uv);
}

static void loop_without_work_ends_at_once(void **state)
{
    (void)state;
    assert_ptr_equal(loop_uv(world.loop), &world.uv);
    assert_int_equal(uv_run(&world.uv, UV_RUN_DEFAULT), 0);
}

static void call_deferred_before_the_run_is_called_in_it(void **state)
{
    (void)state;
    world.flushes = 2;
    loop_defer(world.loop, &world.first);
    loop_wake(world.loop, &world.flusher);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("1ff");
}

static void armed_timer_keeps_the_loop_alive_until_it_is_due(void **state)
{
    (void)state;
    int64_t start = loop_now_ms(world.loop);
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 20);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("t");
    assert_true(loop_now_ms(world.loop) >= start + 20);
}

static void on_stop(struct timer *timer)
{
    on_timer(timer);
    uv_stop(&world.uv);
}

static void a_nearer_deadline_moves_the_alarm(void **state)
{
    (void)state;
    struct timer far = { 0 };
    int64_t start = loop_now_ms(world.loop);
    loop_set_timer(world.loop, &far, world.timer_kind, 3600000);
    loop_set_timer(world.loop, &world.timer, timers_kind(loop_timers(world.loop), on_stop),
                   1);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("t");
    assert_true(loop_now_ms(world.loop) < start + 3600000);
    timers_clear(loop_timers(world.loop), &far);
    uv_run(&world.uv, UV_RUN_DEFAULT); /* the alarm is off: nothing to wait for */
    assert_heard("");
}

static void on_thrice(struct timer *timer)
{
    on_timer(timer);
    if (strlen(world.heard) < 3)
        loop_set_timer(world.loop, timer, world.timer_kind, 2);
}

static void timer_that_sets_itself_again_keeps_the_loop_alive(void **state)
{
    (void)state;
    world.timer_kind = timers_kind(loop_timers(world.loop), on_thrice);
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 2);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("ttt");
}

static void armed_timer_limits_the_wait_of_a_stepped_loop(void **state)
{
    (void)state;
    struct timer far = { 0 };
    uv_async_t other; /* keeps the libuv loop alive */
    uv_async_init(&world.uv, &other, NULL);
    loop_set_timer(world.loop, &far, world.timer_kind, 3600000);
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 0);
    while (!world.heard[0])
        uv_run(&world.uv, UV_RUN_NOWAIT);
    assert_heard("t");
    int wait_ms = uv_backend_timeout(&world.uv);
    timers_clear(loop_timers(world.loop), &far);
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_in_range(wait_ms, 0, 3600000);
}

static void on_uv_timer(uv_timer_t *timer)
{
    hear('u');
    loop_defer(world.loop, &world.first);
    uv_close((uv_handle_t *)timer, NULL);
}

static void on_polled(uv_check_t *check)
{
    hear('p');
    uv_close((uv_handle_t *)check, NULL);
}

/* The call comes before the loop polls; a check handle would be called after that. */
static void call_deferred_by_a_callback_runs_in_the_same_turn(void **state)
{
    (void)state;
    uv_timer_t timer;
    uv_check_t check;
    uv_timer_init(&world.uv, &timer);
    uv_timer_start(&timer, on_uv_timer, 0, 0);
    uv_check_init(&world.uv, &check);
    uv_check_start(&check, on_polled);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("u1p");
}

static void timers_that_set_themselves_do_not_starve_others(void **state)
{
    (void)state;
    loop_set_timer(world.loop, &world.timer, world.forever_kind, 0);
    loop_defer(world.loop, &world.first);
    for (int turn = 0; turn < 3; turn++)
        uv_run(&world.uv, UV_RUN_NOWAIT);
    assert_non_null(strchr(world.heard, '1'));
    assert_true(strlen(world.heard) <= 4);
}

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Uses up the turn, measured with the CPU clock. */
static bool on_burn(struct flusher *flusher)
{
    (void)flusher;
    int64_t start = cpu_us();
    while (loop_time_left(world.loop))
        assert_true(cpu_us() - start < 10000);
    hear('b');
    return false;
}

static void on_long(struct timer *timer)
{
    (void)timer;
    while (loop_time_left(world.loop))
        ;
    hear('l');
}

static void timers_that_use_up_the_turn_take_turns(void **state)
{
    (void)state;
    struct timer timers[10] = { 0 };
    uint32_t kind = timers_kind(loop_timers(world.loop), on_long);
    for (int i = 0; i < 10; i++)
        loop_set_timer(world.loop, &timers[i], kind, 0);
    for (size_t before = 0; before < 10; before = strlen(world.heard)) {
        uv_run(&world.uv, UV_RUN_NOWAIT);
        assert_in_range(strlen(world.heard), before, before + 1);
    }
}

static void turn_has_half_a_millisecond_of_cpu_time(void **state)
{
    (void)state;
    world.flusher.fn = on_burn;
    uv_run(&world.uv, UV_RUN_NOWAIT); /* a turn begins */
    int64_t start = cpu_us();
    loop_wake(world.loop, &world.flusher);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("b");
    assert_true(cpu_us() - start >= 400);
}

static void waiting_uses_up_no_turn_time(void **state)
{
    (void)state;
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 20);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_true(loop_time_left(world.loop));
}

/* Reads the count from the metrics that operators see. */
static long turns_counted(void)
{
    struct buf out = { 0 };
    metrics_print(&out);
    buf_add_char(&out, '\0');
    static const char name[] = "\nruncast_loop_turn_cpu_seconds_count ";
    const char *line = strstr(out.ptr, name);
    assert_non_null(line);
    long count = strtol(line + strlen(name), NULL, 10);
    buf_finish(&out);
    return count;
}

static void turns_with_work_are_measured(void **state)
{
    (void)state;
    uv_run(&world.uv, UV_RUN_NOWAIT);
    long before = turns_counted();
    world.flushes = 3;
    loop_wake(world.loop, &world.flusher);
    uv_run(&world.uv, UV_RUN_DEFAULT);
    assert_heard("fff");
    assert_true(turns_counted() >= before + 3);
}

static void wall_clock_is_that_of_the_system(void **state)
{
    (void)state;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    assert_true(loop_wall_ms(world.loop) >= ms);
    assert_true(loop_wall_ms(world.loop) < ms + 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loop_without_work_ends_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(call_deferred_before_the_run_is_called_in_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(armed_timer_keeps_the_loop_alive_until_it_is_due,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_nearer_deadline_moves_the_alarm, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(timer_that_sets_itself_again_keeps_the_loop_alive,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(armed_timer_limits_the_wait_of_a_stepped_loop,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(call_deferred_by_a_callback_runs_in_the_same_turn,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers_that_set_themselves_do_not_starve_others,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers_that_use_up_the_turn_take_turns, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(turn_has_half_a_millisecond_of_cpu_time, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(waiting_uses_up_no_turn_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(turns_with_work_are_measured, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wall_clock_is_that_of_the_system, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
