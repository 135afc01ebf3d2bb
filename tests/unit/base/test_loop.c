/* Turns of the loop: timers, deferred calls and flushers; the test steps the loop. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "base/loop.h"
#include "base/mem.h"

struct world {
    struct loop *loop;
    uint32_t timer_kind, forever_kind;
    struct timer timer;
    struct deferred first, second;
    struct flusher flusher, other;
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

static void on_second(struct deferred *deferred)
{
    (void)deferred;
    hear('2');
}

static void on_first_again(struct deferred *deferred)
{
    hear('1');
    loop_defer(world.loop, deferred);
}

static bool on_flush(struct flusher *flusher)
{
    (void)flusher;
    hear('f');
    return --world.flushes > 0;
}

static bool on_other(struct flusher *flusher)
{
    (void)flusher;
    hear('o');
    return false;
}

static int set_up(void **state)
{
    (void)state;
    world = (struct world){ .loop = loop_create(NULL) };
    world.timer_kind = timers_kind(loop_timers(world.loop), on_timer);
    world.forever_kind = timers_kind(loop_timers(world.loop), on_forever);
    world.first.fn = on_first;
    world.second.fn = on_second;
    world.flusher.fn = on_flush;
    world.other.fn = on_other;
    loop_add_flusher(world.loop, &world.flusher);
    loop_add_flusher(world.loop, &world.other);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    timers_clear(loop_timers(world.loop), &world.timer);
    loop_cancel_deferred(&world.first);
    loop_cancel_deferred(&world.second);
    loop_remove_flusher(&world.flusher);
    loop_remove_flusher(&world.other);
    loop_destroy(world.loop);
    return 0;
}

static void a_turn_runs_timers_then_deferred_calls_then_flushers(void **state)
{
    (void)state;
    loop_wake(world.loop, &world.flusher);
    loop_defer(world.loop, &world.first);
    loop_defer(world.loop, &world.second);
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 5);
    assert_false(loop_turn(world.loop, 5));
    assert_heard("t12f");
    assert_false(loop_turn(world.loop, 100));
    assert_heard("");
}

/* Its work comes from other flushers: it is called after them, in the same turn. */
static bool on_flush_for_the_late(struct flusher *flusher)
{
    (void)flusher;
    hear('f');
    loop_wake(world.loop, &world.other);
    return false;
}

static void late_flusher_is_called_after_the_others_in_the_same_turn(void **state)
{
    (void)state;
    world.other.runs_last = true;
    world.flusher.fn = on_flush_for_the_late;
    loop_wake(world.loop, &world.other);
    loop_wake(world.loop, &world.flusher);
    assert_false(loop_turn(world.loop, 1));
    assert_heard("fo");
    loop_wake(world.loop, &world.flusher);
    assert_false(loop_turn(world.loop, 1));
    assert_heard("fo");
}

/* The other flusher has more to do than fits into a turn. */
static void late_flusher_does_not_wait_for_one_that_is_behind(void **state)
{
    (void)state;
    world.other.runs_last = true;
    world.flushes = 3;
    loop_wake(world.loop, &world.flusher);
    for (int turn = 1; turn <= 3; turn++) {
        loop_wake(world.loop, &world.other);
        loop_turn(world.loop, 1);
        assert_heard(turn == 1 ? "fo" : "of");
    }
    loop_wake(world.loop, &world.flusher);
    loop_wake(world.loop, &world.other);
    loop_turn(world.loop, 1);
    assert_heard("fo");
}

static void both_clocks_advance_together(void **state)
{
    (void)state;
    loop_set_wall(world.loop, 1000000);
    int64_t now = loop_now_ms(world.loop);
    loop_turn(world.loop, 250);
    assert_int_equal(loop_now_ms(world.loop), now + 250);
    assert_int_equal(loop_wall_ms(world.loop), 1000250);
    loop_set_wall(world.loop, 5); /* the wall clock is set back: deadlines do not move */
    assert_int_equal(loop_now_ms(world.loop), now + 250);
}

static void timer_is_not_called_early(void **state)
{
    (void)state;
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 10);
    assert_false(loop_turn(world.loop, 9));
    assert_heard("");
    loop_turn(world.loop, 1);
    assert_heard("t");
}

static void timer_of_zero_ms_is_called_in_the_next_turn(void **state)
{
    (void)state;
    loop_set_timer(world.loop, &world.timer, world.timer_kind, 0);
    assert_heard("");
    loop_turn(world.loop, 0);
    assert_heard("t");
}

static void timer_of_zero_ms_that_sets_itself_does_not_block_the_turn(void **state)
{
    (void)state;
    loop_set_timer(world.loop, &world.timer, world.forever_kind, 0);
    loop_turn(world.loop, 0);
    assert_heard("t");
    loop_turn(world.loop, 1);
    assert_heard("t");
}

static void deadline_beyond_the_clock_does_not_overflow(void **state)
{
    (void)state;
    loop_turn(world.loop, 10);
    loop_set_timer(world.loop, &world.timer, world.timer_kind, INT64_MAX);
    assert_false(loop_turn(world.loop, 1000000000));
    assert_heard("");
}

static void deferred_call_runs_once(void **state)
{
    (void)state;
    loop_defer(world.loop, &world.first);
    loop_defer(world.loop, &world.first);
    loop_turn(world.loop, 0);
    loop_turn(world.loop, 0);
    assert_heard("1");
}

static void canceled_deferred_call_does_not_run(void **state)
{
    (void)state;
    loop_cancel_deferred(&world.first); /* never deferred */
    loop_defer(world.loop, &world.first);
    loop_defer(world.loop, &world.second);
    loop_cancel_deferred(&world.first);
    loop_cancel_deferred(&world.first);
    loop_turn(world.loop, 0);
    assert_heard("2");
}

static void call_deferred_by_a_call_runs_in_the_next_turn(void **state)
{
    (void)state;
    world.first.fn = on_first_again;
    loop_defer(world.loop, &world.first);
    loop_defer(world.loop, &world.second);
    assert_true(loop_turn(world.loop, 0));
    assert_heard("12");
    assert_true(loop_turn(world.loop, 0));
    assert_heard("1");
}

static void on_free(struct deferred *deferred)
{
    hear('x');
    free(deferred);
}

static void a_call_may_free_its_own_memory(void **state)
{
    (void)state;
    struct deferred *own = mem_new(struct deferred);
    own->fn = on_free;
    loop_defer(world.loop, own);
    loop_turn(world.loop, 0);
    assert_heard("x");
}

static void on_cancel_second(struct deferred *deferred)
{
    (void)deferred;
    loop_cancel_deferred(&world.second);
}

static void deferred_call_may_cancel_the_next_one(void **state)
{
    (void)state;
    world.first.fn = on_cancel_second;
    loop_defer(world.loop, &world.first);
    loop_defer(world.loop, &world.second);
    assert_false(loop_turn(world.loop, 0));
    assert_heard("");
}

static void deferred_calls_beyond_the_turns_time_keep_their_order(void **state)
{
    (void)state;
    loop_set_budget(world.loop, 0); /* no time at all: one call per turn */
    struct deferred third = { .fn = on_first };
    loop_defer(world.loop, &world.first);
    loop_defer(world.loop, &world.second);
    loop_defer(world.loop, &third);
    assert_true(loop_turn(world.loop, 0));
    assert_heard("1");
    assert_true(loop_turn(world.loop, 0));
    assert_heard("2");
    assert_false(loop_turn(world.loop, 0));
    assert_heard("1");
}

static void a_flusher_sleeps_until_it_is_woken(void **state)
{
    (void)state;
    loop_turn(world.loop, 0);
    assert_heard("");
    loop_wake(world.loop, &world.flusher);
    loop_wake(world.loop, &world.flusher);
    assert_false(loop_turn(world.loop, 0));
    assert_heard("f");
}

static void flusher_with_more_work_is_called_again(void **state)
{
    (void)state;
    world.flushes = 3;
    loop_wake(world.loop, &world.flusher);
    loop_wake(world.loop, &world.other);
    assert_true(loop_turn(world.loop, 0));
    assert_heard("fo");
    assert_true(loop_turn(world.loop, 0));
    assert_false(loop_turn(world.loop, 0));
    assert_heard("ff");
}

static void without_time_left_every_flusher_is_still_called(void **state)
{
    (void)state;
    loop_set_budget(world.loop, 0);
    loop_wake(world.loop, &world.flusher);
    loop_wake(world.loop, &world.other);
    loop_turn(world.loop, 0);
    assert_heard("fo");
}

static void without_time_left_timers_still_run(void **state)
{
    (void)state;
    struct timer others[200] = { 0 };
    loop_set_budget(world.loop, 0);
    for (int i = 0; i < 200; i++)
        loop_set_timer(world.loop, &others[i], world.timer_kind, 1);
    for (int turns = 0; loop_turn(world.loop, 1); turns++)
        assert_in_range(turns, 0, 200);
    for (int i = 0; i < 200; i++)
        assert_int_equal(others[i].place, 0);
}

static unsigned units_of_a_timeslice(unsigned at_once)
{
    struct timeslice timeslice = loop_timeslice(world.loop);
    unsigned units = 0;
    loop_turn(world.loop, 0);
    while (timeslice_left_every(&timeslice, at_once))
        units++;
    return units;
}

static void time_slice_does_one_unit_and_more_while_there_is_time(void **state)
{
    (void)state;
    loop_set_budget(world.loop, 0);
    assert_int_equal(units_of_a_timeslice(1), 1);
    assert_int_equal(units_of_a_timeslice(16), 16);
    loop_set_budget(world.loop, 2);
    assert_int_equal(units_of_a_timeslice(1), 3);
}

static bool on_remove_other(struct flusher *flusher)
{
    loop_remove_flusher(flusher);
    loop_remove_flusher(&world.other);
    hear('r');
    return false;
}

static void a_flusher_may_remove_itself_and_another(void **state)
{
    (void)state;
    world.flusher.fn = on_remove_other;
    loop_wake(world.loop, &world.flusher);
    loop_wake(world.loop, &world.other);
    assert_false(loop_turn(world.loop, 0));
    assert_heard("r");
}

static void stepped_turn_has_the_budget_that_was_set(void **state)
{
    (void)state;
    loop_set_budget(world.loop, 2);
    loop_turn(world.loop, 0);
    assert_true(loop_time_left(world.loop));
    assert_true(loop_time_left(world.loop));
    assert_false(loop_time_left(world.loop));
    loop_turn(world.loop, 0);
    assert_true(loop_time_left(world.loop));
}

/* Sockets are served even if reports of commits have used up the turn's share. */
static void loop_begin_share_restarts_the_budget(void **state)
{
    (void)state;
    loop_set_budget(world.loop, 1);
    loop_turn(world.loop, 0);
    assert_true(loop_time_left(world.loop));
    assert_false(loop_time_left(world.loop));
    loop_begin_share(world.loop);
    assert_true(loop_time_left(world.loop));
    assert_false(loop_time_left(world.loop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_turn_runs_timers_then_deferred_calls_then_flushers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            late_flusher_is_called_after_the_others_in_the_same_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(late_flusher_does_not_wait_for_one_that_is_behind,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(loop_begin_share_restarts_the_budget, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(both_clocks_advance_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timer_is_not_called_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timer_of_zero_ms_is_called_in_the_next_turn, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            timer_of_zero_ms_that_sets_itself_does_not_block_the_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deadline_beyond_the_clock_does_not_overflow, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(deferred_call_runs_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(canceled_deferred_call_does_not_run, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(call_deferred_by_a_call_runs_in_the_next_turn,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_may_free_its_own_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deferred_call_may_cancel_the_next_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            deferred_calls_beyond_the_turns_time_keep_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flusher_sleeps_until_it_is_woken, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(flusher_with_more_work_is_called_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_time_left_every_flusher_is_still_called,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_time_left_timers_still_run, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            time_slice_does_one_unit_and_more_while_there_is_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_flusher_may_remove_itself_and_another, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stepped_turn_has_the_budget_that_was_set, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
