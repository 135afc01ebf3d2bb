/* An archived branch: nothing new starts in it, and unfinished runs end. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "core/engine/calls.h"
#include "tests/support/world/calls.h"

enum { CANCEL_MS = 2000 };

static int create_world(void **state)
{
    struct world_options options = { .engine = { .cancel_ms = CANCEL_MS } };
    struct world *world = world_create(&options);
    register_worker(world, "1", "hello", 3);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void archive(struct world *world)
{
    engine_retire_environment(world->engine, world->env);
    world_settle(world);
}

static void unfinished_runs_of_an_archived_branch_are_canceled_with_a_reason(void **state)
{
    struct world *world = *state;
    struct triggered queued = trigger(world, (struct wish){ 0 });
    execute(world, queued.id);
    struct triggered waiting = trigger(world, (struct wish){ 0 });
    execute(world, waiting.id);
    assert_int_equal(wait_for(world, waiting.id, 3600 * 1000), OK);
    struct triggered delayed = trigger(world, (struct wish){ .delay_ms = 3600 * 1000 });
    struct triggered versionless = trigger(world, (struct wish){ .task = "unknown" });
    struct triggered last = trigger(world, (struct wish){ 0 });
    engine_retire_environment(world->engine, world->env);
    world->env->budget = 1 << 20; /* ended runs stay in memory for the checks */
    world_settle(world);
    const char *ids[] = { queued.id, waiting.id, delayed.id, versionless.id, last.id };
    for (size_t i = 0; i < 5; i++) {
        assert_status(world, ids[i], RUN_CANCELED);
        assert_string_equal(
            run_now(world, ids[i])->error->data,
            "{\"type\":\"STRING_ERROR\","
            "\"raw\":\"Canceled because its branch was archived or its project deleted\"}");
    }
    assert_int_equal(world->env->unfinished, 0);
}

enum { BRANCHES = 8, RUNS_OF_EACH = 40 };

/* As when a project with many branches is deleted. */
static void runs_of_many_branches_are_canceled_over_several_turns(void **state)
{
    struct world *world = *state;
    struct environment *own = world->env, *branches[BRANCHES];
    for (uint32_t i = 0; i < BRANCHES; i++) {
        branches[i] = engine_add_environment(world->engine, 10 + i, "branch", false);
        world->env = branches[i];
        for (size_t j = 0; j < RUNS_OF_EACH; j++)
            trigger(world, (struct wish){ 0 });
    }
    world->env = own;
    world_settle(world);
    loop_set_budget(world->loop, 0); /* no time at all: one unit per turn */
    for (size_t i = 0; i < BRANCHES; i++)
        engine_retire_environment(world->engine, branches[i]);
    loop_turn(world->loop, 0);
    assert_in_range(world->engine->flights.count, 1, RUNS_OF_EACH);
    loop_set_budget(world->loop, 1000);
    world_settle(world);
    for (size_t i = 0; i < BRANCHES; i++)
        assert_int_equal(branches[i]->unfinished, 0);
}

static void cancel_of_an_archived_branch_times_out_without_its_worker(void **state)
{
    struct world *world = *state;
    struct triggered run = trigger(world, (struct wish){ 0 });
    execute(world, run.id);
    archive(world);
    assert_int_equal(run_now(world, run.id)->execution, EXECUTION_PENDING_CANCEL);
    world_pass(world, CANCEL_MS);
    assert_int_equal(world->env->runs.count, 0);
}

static void late_trigger_is_canceled_too(void **state)
{
    struct world *world = *state;
    struct triggering late = { 0 };
    struct wish wish = { 0 };
    assert_int_equal(trigger_all(world, &late, &wish, 1), OK);
    engine_retire_environment(world->engine, world->env);
    triggering_wait(world, &late);
    world_settle(world);
    assert_int_equal(late.status, OK);
    assert_int_equal(world->env->unfinished, 0);
    assert_int_equal(world->env->runs.count, 0);
    triggering_finish(&late);
}

/* The run changes during the sweep and then stands where the sweep has already passed. */
static void run_that_changes_meanwhile_is_canceled_too(void **state)
{
    struct world *world = *state;
    struct triggered run = trigger(world, (struct wish){ 0 });
    engine_retire_environment(world->engine, world->env);
    change(world, run.id, 2); /* its commit was in flight */
    world_settle(world);
    assert_int_equal(world->env->unfinished, 0);
}

static void worker_gets_no_run_of_an_archived_branch(void **state)
{
    struct world *world = *state;
    trigger(world, (struct wish){ 0 });
    engine_retire_environment(world->engine, world->env);
    assert_string_equal(dequeue(world), "");
}

static void retirement_continues_after_a_restart(void **state)
{
    struct world *world = *state;
    struct fault *fault = fake_store_fault(world->fake);
    for (int i = 0; i < 50; i++)
        trigger(world, (struct wish){ 0 });
    *fault = (struct fault){ .countdown = 20, .repeat = -1 };
    archive(world);
    *fault = (struct fault){ 0 };
    world_restart(world);
    assert_int_equal(world->env->unfinished, 50 - 19);
    archive(world);
    assert_int_equal(world->env->unfinished, 0);
    assert_int_equal(world->env->runs.count, 0);
}

/* ---- out of memory ---- */

static void archived_branch_leaves_memory_when_unused(void **state)
{
    struct world *world = *state;
    struct environment *gone =
        engine_add_environment(world->engine, 2, "env_gone", !world->is_prod);
    struct environment *kept = world->env;
    world->env = gone;
    assert_false(engine_may_drop_environment(world->engine, gone)); /* not archived yet */
    archive(world);
    assert_true(engine_may_drop_environment(world->engine, gone));
    environment_hold(gone);
    assert_false(engine_may_drop_environment(world->engine, gone));
    environment_release(gone);
    engine_drop_environment(world->engine, gone);
    assert_null(engine_environment(world->engine, 2));
    world->env = kept;
    assert_status(world, trigger(world, (struct wish){ 0 }).id, RUN_QUEUED);
}

static void archived_branch_stays_in_memory_while_in_use(void **state)
{
    struct world *world = *state;
    struct triggering late = { 0 };
    struct wish wish = { 0 };
    assert_int_equal(trigger_all(world, &late, &wish, 1), OK);
    engine_retire_environment(world->engine, world->env);
    assert_false(engine_may_drop_environment(world->engine, world->env));
    triggering_wait(world, &late);
    triggering_finish(&late);
    world_settle(world);
    assert_true(engine_may_drop_environment(world->engine, world->env));
}

/* A search for runs to evict continues where the last one ended. It may have passed runs
 * that had not ended at that time. */
static void runs_that_end_later_leave_memory_too(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 40; i++) {
        execute(world, trigger(world, (struct wish){ 0 }).id);
        world_pass(world, 50);
    }
    archive(world);
    for (int ms = 0; ms < 2 * CANCEL_MS; ms += 20)
        world_pass(world, 20);
    engine_may_drop_environment(world->engine, world->env);
    world_settle(world);
    engine_may_drop_environment(world->engine, world->env);
    world_settle(world);
    assert_true(engine_may_drop_environment(world->engine, world->env));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(unfinished_runs_of_an_archived_branch_are_canceled_with_a_reason),
        IN_WORLD(runs_of_many_branches_are_canceled_over_several_turns),
        IN_WORLD(cancel_of_an_archived_branch_times_out_without_its_worker),
        IN_WORLD(late_trigger_is_canceled_too),
        IN_WORLD(run_that_changes_meanwhile_is_canceled_too),
        IN_WORLD(worker_gets_no_run_of_an_archived_branch),
        IN_WORLD(retirement_continues_after_a_restart),
        IN_WORLD(archived_branch_leaves_memory_when_unused),
        IN_WORLD(archived_branch_stays_in_memory_while_in_use),
        IN_WORLD(runs_that_end_later_leave_memory_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
