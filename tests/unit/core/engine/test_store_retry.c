/* Work that no client requests again is done even if the store failed when it was due. */
#include "tests/support/world/unit.h"

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

/* After `good` commits, the next `bad` ones fail. */
static void fail_commits(struct world *world, enum store_status with, int good, int bad)
{
    *fake_store_fault(world->fake) =
        (struct fault){ .countdown = good + 1, .repeat = bad - 1 };
    fake_store_fail_with(world->fake, with);
}

static const enum store_status failures[] = { STORE_FAILED, STORE_NO_SPACE };
enum { FAILURES = sizeof(failures) / sizeof(failures[0]) };

/* The end of the child is stored, but the resumption of its parent is not. */
static void run_resumes_after_a_failed_commit_of_its_resumption(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < FAILURES; i++) {
        struct triggered parent = trigger(world, (struct wish){ 0 });
        execute(world, parent.id);
        struct triggered child = trigger(world, (struct wish){ 0 });
        assert_int_equal(wait_for_run(world, parent.id, child.id), OK);
        execute(world, child.id);
        fail_commits(world, failures[i], 1, 2);
        assert_int_equal(succeed(world, child.id, "1"), OK);
        world_settle(world);
        assert_status(world, child.id, RUN_COMPLETED);
        assert_status(world, parent.id, RUN_WAITING);
        world_pass(world, 1000);
        assert_status(world, parent.id, RUN_WAITING);
        world_pass(world, 1000);
        assert_status(world, parent.id, RUN_EXECUTING);
    }
}

static void children_of_a_canceled_parent_end_after_failed_commits(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < FAILURES; i++) {
        struct triggered parent = trigger(world, (struct wish){ 0 });
        struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
        fail_commits(world, failures[i], 1, 1);
        assert_int_equal(cancel(world, parent.id), OK);
        world_settle(world);
        assert_status(world, child.id, RUN_QUEUED);
        world_pass(world, 1000);
        assert_status(world, child.id, RUN_CANCELED);
    }
}

/* The token was completed before the run waited for it, so no notice follows. */
static void token_that_could_not_be_read_is_read_again(void **state)
{
    struct world *world = *state;
    struct waitpoint token = { .id = "waitpoint_1", .completed_at = world_start_ms };
    struct wait wait = { .type = WAIT_TOKEN, .id = SLICE("waitpoint_1") };
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    write_token(world, &token);
    *fake_store_load_fault(world->fake) = (struct fault){ .countdown = 1, .repeat = 1 };
    assert_int_equal(block_by(world, got.id, &wait, 1), OK);
    for (int i = 0; i < 2; i++) {
        world_pass(world, 1); /* the store answers */
        assert_status(world, got.id, RUN_WAITING);
        world_pass(world, 1000);
    }
    world_pass(world, 1);
    assert_status(world, got.id, RUN_EXECUTING);
}

/* Only the store knows how the parent ended. */
static void a_parent_that_could_not_be_read_is_read_again(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    world->env->budget = 0;
    assert_int_equal(cancel(world, parent.id), OK);
    world_settle(world);
    *fake_store_load_fault(world->fake) = (struct fault){ .countdown = 1, .repeat = 1 };
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    world_settle(world);
    world_pass(world, 1000);
    assert_status(world, child.id, RUN_QUEUED);
    world->env->budget = world->options.memory;
    world_pass(world, 1000);
    assert_status(world, child.id, RUN_CANCELED);
}

/* Its deadline stays in the past; that does not keep the loop busy. */
static void due_work_is_retried_once_a_second_on_a_full_disk(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .delay_ms = 100 });
    fail_commits(world, STORE_NO_SPACE, 0, 3);
    world_pass(world, 100);
    for (int i = 0; i < 3; i++) {
        assert_true(world->store->full);
        assert_int_equal(fake_store_fault(world->fake)->repeat, 2 - i);
        assert_status(world, got.id, RUN_DELAYED);
        world_pass(world, 999);
        assert_status(world, got.id, RUN_DELAYED);
        world_pass(world, 1);
    }
    assert_status(world, got.id, RUN_QUEUED);
}

/* No caller waits for the result. */
static void pending_retries_end_with_the_process(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    fail_commits(world, STORE_FAILED, 1, 1);
    assert_int_equal(cancel(world, parent.id), OK);
    world_settle(world);
    world_restart(world);
    world_settle(world);
    assert_status(world, child.id, RUN_CANCELED); /* found by the sweep */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_resumes_after_a_failed_commit_of_its_resumption),
        TEST(children_of_a_canceled_parent_end_after_failed_commits),
        TEST(token_that_could_not_be_read_is_read_again),
        TEST(a_parent_that_could_not_be_read_is_read_again),
        TEST(due_work_is_retried_once_a_second_on_a_full_disk),
        TEST(pending_retries_end_with_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
