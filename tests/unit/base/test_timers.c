/* Timers are called once, in the order of their deadlines. */
#include "tests/support/world/unit.h"

#include "base/list.h"
#include "base/timers.h"

enum { COUNT = 500 };

struct world {
    struct timers timers;
    struct probe {
        struct timer timer;
        int calls;
    } probes[COUNT];
    uint32_t probe_kind, retry_kind, clear_kind;
    int64_t last_at;
    int calls;
};

static struct world world;

static void on_probe(struct timer *timer)
{
    struct probe *probe = container_of(timer, struct probe, timer);
    assert_int_equal(timer->place, 0); /* disarmed before it is called */
    assert_true(timer->at_ms >= world.last_at);
    world.last_at = timer->at_ms;
    probe->calls++;
    world.calls++;
}

static void on_again(struct timer *timer)
{
    world.calls++;
    timers_set(&world.timers, timer, world.retry_kind, timer->at_ms + 10);
}

static void on_clear(struct timer *timer)
{
    (void)timer;
    world.calls++;
    timers_clear(&world.timers, &world.probes[1].timer);
}

static int set_up(void **state)
{
    (void)state;
    world = (struct world){ 0 };
    timers_init(&world.timers);
    world.probe_kind = timers_kind(&world.timers, on_probe);
    world.retry_kind = timers_kind(&world.timers, on_again);
    world.clear_kind = timers_kind(&world.timers, on_clear);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    timers_finish(&world.timers);
    return 0;
}

static void set(int probe, int64_t at_ms)
{
    timers_set(&world.timers, &world.probes[probe].timer, world.probe_kind, at_ms);
}

static void no_timer_means_no_deadline(void **state)
{
    (void)state;
    assert_true(timers_next(&world.timers) == INT64_MAX);
    assert_false(timers_run(&world.timers, INT64_MAX, 10));
}

static void a_timer_is_called_when_due_and_not_before(void **state)
{
    (void)state;
    set(0, 100);
    assert_int_equal(timers_next(&world.timers), 100);
    assert_false(timers_run(&world.timers, 99, 10));
    assert_int_equal(world.calls, 0);
    assert_false(timers_run(&world.timers, 100, 10));
    assert_int_equal(world.calls, 1);
    assert_false(timers_run(&world.timers, 1000, 10));
    assert_int_equal(world.calls, 1);
}

static void setting_a_timer_again_moves_its_deadline(void **state)
{
    (void)state;
    set(0, 100);
    set(1, 200);
    set(0, 300);
    assert_int_equal(timers_next(&world.timers), 200);
    set(1, 50);
    assert_int_equal(timers_next(&world.timers), 50);
    timers_run(&world.timers, 250, 10);
    assert_int_equal(world.probes[1].calls, 1);
    assert_int_equal(world.probes[0].calls, 0);
    assert_int_equal(timers_next(&world.timers), 300);
}

static void a_cleared_timer_is_not_called(void **state)
{
    (void)state;
    set(0, 100);
    set(1, 50);
    timers_clear(&world.timers, &world.probes[1].timer);
    timers_clear(&world.timers, &world.probes[1].timer);
    timers_clear(&world.timers, &world.probes[2].timer); /* never armed */
    timers_run(&world.timers, 1000, 10);
    assert_int_equal(world.probes[0].calls, 1);
    assert_int_equal(world.probes[1].calls, 0);
}

static void timer_call_may_set_its_own_timer_again(void **state)
{
    (void)state;
    timers_set(&world.timers, &world.probes[0].timer, world.retry_kind, 10);
    assert_false(timers_run(&world.timers, 35, 10));
    assert_int_equal(world.calls, 3); /* at 10, 20 and 30 */
    assert_int_equal(timers_next(&world.timers), 40);
}

static void timer_call_may_clear_another_due_timer(void **state)
{
    (void)state;
    timers_set(&world.timers, &world.probes[0].timer, world.clear_kind, 10);
    set(1, 10);
    set(1, 11);
    timers_run(&world.timers, 100, 10);
    assert_int_equal(world.calls, 1);
    assert_int_equal(world.probes[1].calls, 0);
}

static void limit_leaves_other_due_timers_for_later(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        set(i, i);
    assert_true(timers_run(&world.timers, 100, 3));
    assert_int_equal(world.calls, 3);
    assert_false(timers_run(&world.timers, 100, 3));
    assert_int_equal(world.calls, 5);
}

static void timers_are_called_in_the_order_of_deadlines(void **state)
{
    (void)state;
    uint32_t random = 7;
    bool armed[COUNT] = { false };
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525 + 1013904223;
        int probe = (int)((random >> 8) % COUNT);
        armed[probe] = (random >> 28) != 0;
        if (armed[probe])
            set(probe, (random >> 12) % 1000);
        else
            timers_clear(&world.timers, &world.probes[probe].timer);
    }
    timers_run(&world.timers, 1000, COUNT); /* the callback checks the order */
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(world.probes[i].calls, armed[i]);
}

static void finishing_disarms_remaining_timers(void **state)
{
    (void)state;
    set(0, 100);
    timers_finish(&world.timers);
    assert_int_equal(world.probes[0].timer.place, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_timer_means_no_deadline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_timer_is_called_when_due_and_not_before, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(setting_a_timer_again_moves_its_deadline, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cleared_timer_is_not_called, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timer_call_may_set_its_own_timer_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(timer_call_may_clear_another_due_timer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(limit_leaves_other_due_timers_for_later, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(timers_are_called_in_the_order_of_deadlines, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(finishing_disarms_remaining_timers, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
