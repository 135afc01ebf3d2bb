/* Live lists: a frame without `more` shows each run as it was at the frame's seq. */
#include "tests/support/world/unit.h"

#include "base/json/scan.h"
#include "base/text.h"
#include "core/live/watch.h"
#include "tests/support/world/late_change.h"
#include "tests/support/world/reader.h"

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

static struct query *runs_from(int64_t created)
{
    return query_create(&(struct run_filter){ .is_test = -1, .created_from = created }, 0);
}

static void pass_each(struct world *world, int count)
{
    for (int i = 0; i < count; i++)
        world_pass(world, 1);
}

static uint64_t seq_of(const struct bytes *frame)
{
    uint64_t seq = 0;
    text_to_u64(scan_member(bytes_slice(frame), "seq"), &seq);
    return seq;
}

/* The windows of other lists, so that one turn has no time to evaluate a change for all. */
static void make_windows(struct world *world, struct window **made)
{
    for (int i = 0; i < WINDOWS; i++)
        made[i] = windows_find(&world->env->windows, runs_from(i + 1));
}

static void release_windows(struct world *world, struct window **made)
{
    for (int i = 0; i < WINDOWS; i++)
        windows_release(&world->env->windows, made[i]);
}

/* Memory has the second change of a run when the windows have evaluated the first one. */
static void rows_wait_until_every_change_is_evaluated(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    struct window *made[WINDOWS];
    create(world, "run_1", NULL);
    watch_open(&reader->feed, 7, runs_from(0), 10, false);
    pass_each(world, 3);
    assert_frames(reader, "rows 7: run_1 v1 whole");
    make_windows(world, made);
    loop_set_budget(world->loop, 0);
    change_all(world, "run_1 run_1");
    assert_true(environment_evaluated(world->env) < world->env->applied);
    for (int i = 0; !reader->count && i < WINDOWS; i++)
        loop_turn(world->loop, 0);
    loop_set_budget(world->loop, 1000);
    assert_int_equal(reader->count, 1);
    assert_int_equal(seq_of(reader->frames[0]), world->env->applied);
    assert_frames(reader, "rows 7: run_1 v3");
    release_windows(world, made);
    reader_destroy(reader);
}

/* The change comes after the end of the client's interval. So its row waits until the windows
 * have evaluated it, but no interval longer. */
static void waiting_rows_do_not_begin_an_interval(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    struct window *made[WINDOWS];
    feed_set_pace(&reader->feed, 60000);
    create(world, "run_1", NULL);
    watch_open(&reader->feed, 7, runs_from(0), 10, false);
    pass_each(world, 3);
    world_pass(world, 60000);
    assert_frames(reader, "rows 7: run_1 v1 whole");
    make_windows(world, made);
    world_pass(world, 60000);
    loop_set_budget(world->loop, 0);
    change(world, "run_1", 2);
    assert_true(environment_evaluated(world->env) < world->env->applied);
    loop_set_budget(world->loop, 1000);
    world_settle(world);
    assert_frames(reader, "rows 7: run_1 v2");
    release_windows(world, made);
    reader_destroy(reader);
}

static void client_may_leave_while_rows_wait(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    struct window *made[WINDOWS];
    create(world, "run_1", NULL);
    watch_open(&reader->feed, 7, runs_from(0), 10, false);
    pass_each(world, 3);
    make_windows(world, made);
    loop_set_budget(world->loop, 0);
    change(world, "run_1", 2);
    assert_false(list_empty(&world->env->hub.held));
    reader_destroy(reader);
    assert_true(list_empty(&world->env->hub.held));
    loop_set_budget(world->loop, 1000);
    world_settle(world);
    release_windows(world, made);
}

/* Makes a run that has left memory, and changes it: only the store has the change. */
static void change_evicted(struct world *world, struct late_change *late)
{
    create(world, "run_1", NULL);
    finish_run(world, "run_1", 10);
    create(world, "run_2", NULL);
    pass_each(world, 3);
    assert_false(environment_evict(world->env, 0));
    change_late(world, late, "run_1");
}

/* The window is listed already, so that a list reads only rows. */
static void row_that_is_ahead_of_memory_waits_for_it(void **state)
{
    struct world *world = *state;
    struct reader *first = reader_create(world), *reader = reader_create(world);
    struct late_change late;
    watch_open(&first->feed, 7, runs_from(0), 10, false);
    change_evicted(world, &late);
    uint64_t before = world->env->applied;
    watch_open(&reader->feed, 7, runs_from(0), 10, false);
    pass_each(world, 10);
    assert_int_equal(world->env->applied, before);
    assert_frames(reader, "rows 7: run_2 v1 whole, more");
    pass_each(world, 40);
    assert_int_equal(reader->count, 2);
    assert_int_equal(seq_of(reader->frames[1]), before + 1);
    assert_frames(reader, "rows 7: run_1 v3 whole, more", "rows 7: run_1 v3");
    reader_destroy(first);
    reader_destroy(reader);
}

static void list_may_be_closed_while_a_row_waits(void **state)
{
    struct world *world = *state;
    struct reader *first = reader_create(world), *reader = reader_create(world);
    struct late_change late;
    watch_open(&first->feed, 7, runs_from(0), 10, false);
    change_evicted(world, &late);
    struct watch *watch = watch_open(&reader->feed, 7, runs_from(0), 10, false);
    pass_each(world, 10);
    assert_non_null(watch->page);
    forget_frames(reader);
    watch_close(watch);
    pass_each(world, 40);
    assert_no_frames(reader);
    reader_destroy(first);
    reader_destroy(reader);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_wait_until_every_change_is_evaluated),
        TEST(waiting_rows_do_not_begin_an_interval),
        TEST(client_may_leave_while_rows_wait),
        TEST(row_that_is_ahead_of_memory_waits_for_it),
        TEST(list_may_be_closed_while_a_row_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
