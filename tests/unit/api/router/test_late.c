/* A gateway without time left in any turn still does all of its work. Every loop that may
 * be long does one unit in each turn. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "tests/support/world/calls.h"
#include "tests/support/world/reader.h"
#include "tests/support/world/schedule_calls.h"

static const int64_t begin_ms = INT64_C(1772323200000); /* 2026-03-01T00:00:00Z */

static int create_world(void **state)
{
    struct world *world = create_world_at(begin_ms, (struct engine_options){ 0 });
    register_worker(world, "1", "hello", 3);
    loop_set_budget(world->loop, 0);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    free(forgetful);
    return 0;
}

static void run_completes_without_time_left(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .delay_ms = 100 });
    world_pass(world, 100);
    execute(world, got.id);
    assert_int_equal(wait_for(world, got.id, 100), OK);
    world_pass(world, 100);
    assert_status(world, got.id, RUN_EXECUTING);
    assert_int_equal(succeed(world, got.id, "1"), OK);
    assert_status(world, got.id, RUN_COMPLETED);
}

static void every_schedule_fires_without_time_left(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 20; i++)
        make(world, "* * * * *", "UTC");
    pass(world, MINUTE);
    for (int turn = 0; turn < 40; turn++)
        world_pass(world, 1);
    assert_int_equal(fired_by(world, NULL).count, 20);
}

static void every_subscriber_gets_a_change_without_time_left(void **state)
{
    struct world *world = *state;
    struct reader *readers[40];
    create(world, "run_1", "a");
    for (int i = 0; i < 40; i++)
        readers[i] = subscribe(world, "tag:a");
    change(world, "run_1", 2);
    world_settle(world);
    for (int i = 0; i < 40; i++)
        assert_frames(readers[i], "run_1 v2");
}

static void every_waiter_of_a_token_resumes_without_time_left(void **state)
{
    struct world *world = *state;
    struct waitpoint token = { .id = "waitpoint_1" };
    struct triggered got[30];
    write_token(world, &token);
    for (int i = 0; i < 30; i++) {
        struct wait wait = { .type = WAIT_TOKEN, .id = SLICE("waitpoint_1") };
        got[i] = trigger(world, (struct wish){ 0 });
        execute(world, got[i].id);
        assert_int_equal(block_by(world, got[i].id, &wait, 1), OK);
    }
    waits_end(world->engine, world->env, SLICE("waitpoint_1"));
    world_settle(world);
    for (int i = 0; i < 30; i++)
        assert_status(world, got[i].id, RUN_EXECUTING);
}

/* There are so many that the sweep finds them. */
static void all_children_end_with_their_parent_without_time_left(void **state)
{
    enum { CHILDREN = 600 };
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    char ids[CHILDREN][ID_MAX];
    for (int i = 0; i < CHILDREN; i++)
        memcpy(ids[i], trigger(world, (struct wish){ .parent = parent.id }).id, ID_MAX);
    assert_int_equal(cancel(world, parent.id), OK);
    world_settle(world);
    for (int i = 0; i < CHILDREN; i++)
        assert_status(world, ids[i], RUN_CANCELED);
}

static void finished_runs_leave_memory_without_time_left(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(cancel(world, trigger(world, (struct wish){ 0 }).id), OK);
    world->env->budget = 0;
    cancel(world, trigger(world, (struct wish){ 0 }).id);
    world_settle(world);
    assert_int_equal(world->env->runs.count, 0);
}

/* Kept and removed runs alternate, and each run is looked at only once. */
static void runs_removed_by_retention_leave_memory_without_time_left(void **state)
{
    struct world *world = *state;
    uint64_t at = 0;
    int turns = 0;
    for (int i = 0; i < 50; i++) {
        trigger(world, (struct wish){ 0 });
        cancel(world, trigger(world, (struct wish){ 0 }).id);
    }
    struct store_position position = { .env = WORLD_ENV,
                                       .seq = world->env->applied,
                                       .purged = world->env->applied,
                                       .floor = loop_wall_ms(world->loop) + 1 };
    while (environment_purge(world->env, &position, &at))
        turns++;
    assert_in_range(turns, 3, 12);
    assert_int_equal(world->env->runs.count, 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_completes_without_time_left),
        TEST(every_schedule_fires_without_time_left),
        TEST(every_subscriber_gets_a_change_without_time_left),
        TEST(every_waiter_of_a_token_resumes_without_time_left),
        TEST(all_children_end_with_their_parent_without_time_left),
        TEST(finished_runs_leave_memory_without_time_left),
        TEST(runs_removed_by_retention_leave_memory_without_time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
