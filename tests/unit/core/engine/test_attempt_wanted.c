/* Which completions may still change a run: the bodies of other completions are dropped. */
#include "tests/support/world/unit.h"

#include "core/engine/attempts.h"
#include "tests/support/world/calls.h"

static int create_world(void **state)
{
    *state = world_create(NULL);
    register_worker(*state, "1", "hello", 3);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static bool is_wanted(struct world *world, const char *id, const char *snapshot)
{
    return attempt_may_complete(world->env, slice_of(id), slice_of(snapshot), false);
}

static void only_the_newest_snapshot_of_an_unfinished_run_is_wanted(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    char leased[64], started[64];
    assert_string_equal(dequeue(world), got.id);
    run_snapshot_id(run_now(world, got.id), leased);
    assert_true(is_wanted(world, got.id, leased)); /* the start may have been lost */
    assert_int_equal(start(world, got.id), OK);
    run_snapshot_id(run_now(world, got.id), started);
    assert_false(is_wanted(world, got.id, leased));
    assert_true(is_wanted(world, got.id, started));
    assert_false(is_wanted(world, "run_nobodys", started));
    assert_int_equal(succeed(world, got.id, "1"), OK);
    assert_false(is_wanted(world, got.id, started));
}

static void canceled_attempt_that_its_worker_still_has_is_wanted(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    char snapshot[64];
    execute(world, got.id);
    assert_int_equal(cancel(world, got.id), OK);
    run_snapshot_id(run_now(world, got.id), snapshot);
    assert_true(is_wanted(world, got.id, snapshot));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_newest_snapshot_of_an_unfinished_run_is_wanted),
        TEST(canceled_attempt_that_its_worker_still_has_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
