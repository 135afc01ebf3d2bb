/* Costs of a run: one for its first start, and those of each attempt on its machine. */
#include "tests/support/world/unit.h"

#include <math.h>

#include "tests/support/world/calls.h"

static const char thrown[] = "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}";
static const char out_of_memory[] =
    "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_OOM_KILLED\"}";

/* A completion reports 10 ms (calls.h). */
static const struct prices prices = {
    .run = 0.5,
    .per_second = { [MACHINE_MICRO] = 200, [MACHINE_LARGE_1X] = 3000 },
};
enum { SMALL = 2, LARGE = 30 }; /* cents for 10 ms */

static struct world *make(bool is_prod)
{
    struct world_options options = { .engine.prices = prices, .is_prod = is_prod };
    struct world *world = world_create(&options);
    register_worker(world, "20260101.1", "hello", 3);
    return world;
}

static int create_prod(void **state)
{
    *state = make(true);
    return 0;
}

static int create_dev(void **state)
{
    *state = make(false);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void assert_costs(struct world *world, const char *id, double base, double cost)
{
    const struct run *run = run_now(world, id);
    assert_true(run->base_cost_cents == base);
    assert_true(fabs(run->cost_cents - cost) < 1e-9);
}

static void each_end_of_an_attempt_adds_its_time_to_the_cost(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .max_attempts = 3 });
    assert_string_equal(dequeue(world), got.id);
    assert_costs(world, got.id, 0, 0);
    assert_int_equal(start(world, got.id), OK);
    assert_costs(world, got.id, 0.5, 0);
    assert_int_equal(break_down(world, got.id, thrown, 1000), OK);
    assert_costs(world, got.id, 0.5, SMALL);
    assert_int_equal(start(world, got.id), OK);
    assert_int_equal(break_down(world, got.id, thrown, 40000), OK);
    assert_costs(world, got.id, 0.5, 2 * SMALL);
    world_restart(world);
    register_worker(world, "20260101.1", "hello", 3);
    assert_costs(world, got.id, 0.5, 2 * SMALL);
    world_pass(world, 40000);
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, thrown, 100), OK);
    assert_status(world, got.id, RUN_FAILED);
    assert_costs(world, got.id, 0.5, 3 * SMALL);
    assert_int_equal(run_now(world, got.id)->usage_ms, 30);
}

static void attempt_costs_the_price_of_its_own_machine(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    world->env->fleet->workers->all[0]->tasks[0].big_machine = MACHINE_LARGE_1X;
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, out_of_memory, -1), OK);
    assert_int_equal(run_now(world, got.id)->machine, MACHINE_LARGE_1X);
    assert_costs(world, got.id, 0.5, SMALL);
    world_pass(world, 1000);
    execute(world, got.id);
    assert_int_equal(succeed(world, got.id, "1"), OK);
    assert_costs(world, got.id, 0.5, SMALL + LARGE);
}

static void canceled_attempt_costs_its_reported_time_and_a_lost_one_nothing(void **state)
{
    struct world *world = *state;
    struct triggered canceled = trigger(world, (struct wish){ 0 });
    execute(world, canceled.id);
    assert_int_equal(cancel(world, canceled.id), OK);
    assert_costs(world, canceled.id, 0.5, 0);
    assert_int_equal(succeed(world, canceled.id, "1"), OK);
    assert_status(world, canceled.id, RUN_CANCELED);
    assert_costs(world, canceled.id, 0.5, SMALL);

    struct triggered lost = trigger(world, (struct wish){ 0 });
    execute(world, lost.id);
    world_pass(world, 300000);
    assert_status(world, lost.id, RUN_RETRYING);
    assert_costs(world, lost.id, 0.5, 0);
}

static void on_answered(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, OK);
}

/* The sum of two attempts would overflow. */
static void huge_reported_time_is_limited_to_the_maximum(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    for (int attempt = 0; attempt < 2; attempt++) {
        char snapshot[64];
        if (attempt)
            assert_int_equal(start(world, got.id), OK);
        else
            execute(world, got.id);
        run_snapshot_id(run_now(world, got.id), snapshot);
        struct complete_attempt op = { .snapshot = slice_of(snapshot),
                                       .error = slice_of(thrown),
                                       .has_retry = true,
                                       .retry_delay_ms = 1000,
                                       .usage_ms = INT64_MAX };
        attempt_complete(world->engine, world->env, slice_of(got.id), &op, on_answered);
        world_settle(world);
        assert_int_equal(run_now(world, got.id)->usage_ms, INT32_MAX);
        assert_true(run_now(world, got.id)->cost_cents == INT32_MAX * 0.2);
    }
}

static void runs_in_dev_cost_nothing(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_true(attempt_cents_per_ms(world->env, run_now(world, got.id)) == 0);
    assert_int_equal(break_down(world, got.id, thrown, 1000), OK);
    assert_int_equal(start(world, got.id), OK);
    assert_int_equal(succeed(world, got.id, "1"), OK);
    assert_int_equal(run_now(world, got.id)->usage_ms, 20);
    assert_costs(world, got.id, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_end_of_an_attempt_adds_its_time_to_the_cost,
                                        create_prod, destroy_world),
        cmocka_unit_test_setup_teardown(attempt_costs_the_price_of_its_own_machine,
                                        create_prod, destroy_world),
        cmocka_unit_test_setup_teardown(
            canceled_attempt_costs_its_reported_time_and_a_lost_one_nothing, create_prod,
            destroy_world),
        cmocka_unit_test_setup_teardown(huge_reported_time_is_limited_to_the_maximum,
                                        create_prod, destroy_world),
        cmocka_unit_test_setup_teardown(runs_in_dev_cost_nothing, create_dev,
                                        destroy_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
