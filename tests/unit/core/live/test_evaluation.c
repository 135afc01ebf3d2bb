/* Windows evaluate changes in time slices, in order, while windows come and go; commits wait
 * for them. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "core/live/environment.h"
#include "tests/support/world/calls.h"

enum { WINDOWS = 100 };

static int create_world(void **state)
{
    *state = world_create(NULL);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* Adds windows at one topic: that of the tag, or that of all runs. */
static void make(struct world *world, struct window **made, const char *tag)
{
    struct slice tags = slice_of(tag ? tag : "");
    for (int i = 0; i < WINDOWS; i++) {
        const struct run_filter filter = {
            .is_test = -1, .created_from = i, .tags = &tags, .tag_count = tag != NULL
        };
        made[i] = windows_find(&world->env->windows, query_create(&filter, 0));
        assert_non_null(made[i]);
    }
}

static void release(struct world *world, struct window **made, int from, int to)
{
    for (int i = from; i < to; i++)
        windows_release(&world->env->windows, made[i]);
}

static int count_evaluated(const struct world *world, struct window *const *made)
{
    int count = 0;
    for (int i = 0; i < WINDOWS; i++)
        count += made[i]->evaluated == world->env->applied;
    return count;
}

/* Each turn has time for one unit of each kind of work. */
static void begin_change(struct world *world, const char *id, const char *tags)
{
    loop_set_budget(world->loop, 0);
    create(world, id, tags);
}

static void end_change(struct world *world)
{
    loop_set_budget(world->loop, 1000);
    world_settle(world);
}

static void change_is_evaluated_over_several_turns(void **state)
{
    struct world *world = *state;
    struct window *made[WINDOWS];
    make(world, made, NULL);
    begin_change(world, "run_1", NULL);
    int before = count_evaluated(world, made), turns = 0;
    assert_in_range(before, 1, WINDOWS / 2);
    assert_int_equal(environment_evaluated(world->env), world->env->applied - 1);
    assert_false(hub_is_through(&world->env->hub));
    for (; environment_evaluated(world->env) < world->env->applied; turns++) {
        loop_turn(world->loop, 0);
        assert_true(count_evaluated(world, made) > before ||
                    count_evaluated(world, made) == WINDOWS);
        before = count_evaluated(world, made);
    }
    assert_in_range(turns, 2, WINDOWS);
    assert_int_equal(before, WINDOWS);
    end_change(world);
    assert_true(hub_is_through(&world->env->hub));
    release(world, made, 0, WINDOWS);
}

/* The evaluation has stopped between two windows; either may leave, and so may all. */
static void windows_may_leave_between_two_turns(void **state)
{
    struct world *world = *state;
    struct window *made[WINDOWS];
    make(world, made, "a");
    begin_change(world, "run_1", "a");
    int next = count_evaluated(world, made);
    release(world, made, next - 1, next + 1);
    loop_turn(world->loop, 0);
    assert_true(made[next + 1]->evaluated == world->env->applied);
    release(world, made, 0, next - 1);
    release(world, made, next + 1, WINDOWS);
    end_change(world);
    assert_int_equal(world->env->evaluation.count, 0);
}

/* A topic without runs exists only because windows are at it. */
static void topic_is_freed_after_its_last_window_left(void **state)
{
    struct world *world = *state;
    const struct table *tasks = &world->env->hub.topics[TOPIC_TASK];
    struct slice hello = SLICE("hello");
    struct window *made[WINDOWS];
    for (int i = 0; i < WINDOWS; i++) {
        const struct run_filter filter = {
            .is_test = -1, .created_from = i, .tasks = &hello, .task_count = 1
        };
        made[i] = windows_find(&world->env->windows, query_create(&filter, 0));
    }
    begin_change(world, "run_1", NULL);
    assert_in_range(count_evaluated(world, made), 1, WINDOWS - 1);
    release(world, made, 0, WINDOWS);
    end_change(world);
    assert_int_equal(tasks->count, 0);
}

static void environment_may_end_between_two_turns(void **state)
{
    struct world *world = *state;
    struct window *made[WINDOWS];
    make(world, made, NULL);
    begin_change(world, "run_1", NULL);
    assert_int_equal(world->env->evaluation.count, 1);
    release(world, made, 0, WINDOWS);
    loop_set_budget(world->loop, 1000);
}

/* Ten commits of eight runs each are committed before the windows have evaluated one. */
static void commits_wait_while_many_changes_are_to_be_evaluated(void **state)
{
    enum { COMMITS = 10, RUNS = 8 };
    struct world *world = *state;
    struct window *made[WINDOWS];
    static struct triggering calls[COMMITS];
    const struct wish wishes[RUNS] = { { 0 } };
    uint32_t most = 0;
    bool done = false;
    make(world, made, NULL);
    loop_set_budget(world->loop, 0);
    for (int i = 0; i < COMMITS; i++) {
        calls[i] = (struct triggering){ 0 };
        assert_int_equal(trigger_all(world, &calls[i], wishes, RUNS), OK);
    }
    while (!done) {
        loop_turn(world->loop, 1);
        uint32_t waiting = world->env->evaluation.count;
        most = waiting > most ? waiting : most;
        done = true;
        for (int i = 0; i < COMMITS; i++)
            done = done && calls[i].done;
    }
    assert_int_equal(most, EVALUATION_MAX);
    end_change(world);
    assert_int_equal(count_evaluated(world, made), WINDOWS);
    for (int i = 0; i < COMMITS; i++)
        triggering_finish(&calls[i]);
    release(world, made, 0, WINDOWS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(change_is_evaluated_over_several_turns),
        TEST(windows_may_leave_between_two_turns),
        TEST(topic_is_freed_after_its_last_window_left),
        TEST(environment_may_end_between_two_turns),
        TEST(commits_wait_while_many_changes_are_to_be_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
