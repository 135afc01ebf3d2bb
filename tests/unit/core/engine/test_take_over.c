/* Runs that are in memory before this gateway decides are queued, leased and timed as after a
 * restart. */
#include "tests/support/world/unit.h"

#include "core/engine/calls.h"
#include "tests/support/world/calls.h"

enum { RUNS = 40, LOADED_PER_TURN = 16 };

static int create_world(void **state)
{
    struct world *world = *state = world_create(NULL);
    register_worker(world, "20260101.1", "hello", 3);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void take_over(struct world *world)
{
    world->takes_over = true;
    world_restart(world);
    load_worker(world, "20260101.1", "hello", 3);
    engine_sweep_environment(world->engine, world->env);
    world_settle(world);
}

static void queued_runs_keep_their_order(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ 0 });
    world_pass(world, 10);
    struct triggered second = trigger(world, (struct wish){ 0 });
    take_over(world);
    assert_string_equal(dequeue(world), first.id);
    assert_string_equal(dequeue(world), second.id);
    assert_string_equal(dequeue(world), "");
}

static void executing_run_keeps_its_slot_and_its_timeout(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_string_equal(dequeue(world), got.id);
    assert_int_equal(start(world, got.id), OK);
    take_over(world);
    assert_int_equal(queues_figures(&world->env->queues, SLICE("task/hello")).running, 1);
    world_pass(world, world->options.heartbeat_ms - 1);
    assert_status(world, got.id, RUN_EXECUTING);
    world_pass(world, 1);
    assert_int_not_equal(run_now(world, got.id)->status, RUN_EXECUTING);
}

static void delay_ends_at_its_time(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .delay_ms = 5000 });
    take_over(world);
    assert_status(world, got.id, RUN_DELAYED);
    world_pass(world, 5000);
    assert_status(world, got.id, RUN_QUEUED);
}

static void debounce_key_leads_to_its_run(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .debounce = "key" });
    take_over(world);
    struct triggered again = trigger(world, (struct wish){ .debounce = "key" });
    assert_true(again.joined);
    assert_string_equal(again.id, got.id);
}

static void runs_are_placed_in_time_slices(void **state)
{
    struct world *world = *state;
    uint64_t at = 0;
    unsigned turns = 1;
    create_many(world, RUNS, NULL);
    loop_set_budget(world->loop, 0);
    while (engine_take_over(world->engine, world->env, &at))
        turns++;
    loop_set_budget(world->loop, 1000);
    assert_int_equal(turns, (RUNS + LOADED_PER_TURN - 1) / LOADED_PER_TURN);
    engine_sweep(world->engine);
}

/* The clock of the leader before was ahead, and memory has none of its runs. */
static void new_runs_come_after_those_of_the_leader_before(void **state)
{
    struct world *world = *state;
    char last[ID_MAX] = "";
    int64_t ahead_ms = loop_wall_ms(world->loop) + 20 * 1000;
    text_make_next_id("run", ahead_ms, last);
    engine_note_newest(world->engine, last, ahead_ms);
    engine_note_newest(world->engine, "", 0);
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_true(strcmp(got.id, last) > 0);
    assert_true(run_now(world, got.id)->created_at >= ahead_ms);
}

/* ---- following ---- */

static bool was_left(void *owner, uint32_t number)
{
    (void)owner;
    return number == WORLD_ENV;
}

static bool was_not_left(void *owner, uint32_t number)
{
    (void)owner;
    (void)number;
    return false;
}

static void engine_that_follows_decides_nothing(void **state)
{
    struct world *world = *state;
    struct engine *engine = world->engine;
    trigger(world, (struct wish){ 0 });
    engine->options.was_left = was_not_left;
    engine_follow(engine);
    engine_sweep_environment(engine, world->env);
    assert_true(list_empty(&engine->sweeps));
    engine_retire_environment(engine, world->env);
    world_settle(world);
    assert_int_equal(world->env->unfinished, 1); /* the leader cancels it */
    assert_false(engine_may_drop_environment(engine, world->env));
}

static void environment_that_the_leader_has_dropped_is_cleared(void **state)
{
    struct world *world = *state;
    trigger(world, (struct wish){ 0 });
    world->engine->options.was_left = was_left;
    engine_follow(world->engine);
    engine_trim(world->engine, world->env);
    world_settle(world);
    assert_int_equal(world->env->runs.count, 0);
    engine_retire_environment(world->engine, world->env);
    assert_true(engine_may_drop_environment(world->engine, world->env));
}

static void activity_that_was_seen_is_forgotten(void **state)
{
    struct world *world = *state;
    struct environment *env = world->env;
    trigger(world, (struct wish){ 0 });
    assert_true(env->tasks.count && env->stats.changed);
    engine_follow(world->engine);
    engine_stop_following(world->engine);
    assert_int_equal(env->tasks.count, 0);
    assert_false(env->stats.changed);
}

static void runs_of_the_leader_are_not_counted(void **state)
{
    struct world *world = *state;
    engine_follow(world->engine);
    struct environment *env = engine_add_environment(world->engine, 2, "env_2", false);
    struct figures *figures = env->figures;
    world->engine->options.was_left = was_not_left;
    struct run run = { .id = "run_1", .version = 1, .status = RUN_QUEUED };
    int64_t before = figures->triggers;
    environment_put(env, &run, env->applied + 1);
    assert_int_equal(figures->triggers, before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(queued_runs_keep_their_order),
        TEST(executing_run_keeps_its_slot_and_its_timeout),
        TEST(delay_ends_at_its_time),
        TEST(debounce_key_leads_to_its_run),
        TEST(runs_are_placed_in_time_slices),
        TEST(new_runs_come_after_those_of_the_leader_before),
        TEST(engine_that_follows_decides_nothing),
        TEST(environment_that_the_leader_has_dropped_is_cleared),
        TEST(activity_that_was_seen_is_forgotten),
        TEST(runs_of_the_leader_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
