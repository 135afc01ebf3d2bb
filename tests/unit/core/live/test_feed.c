/* A feed that keeps up gets every change; any other gets the newest state once, in
 * order. */
#include "tests/support/world/unit.h"

#include "base/json/scan.h"
#include "base/metrics.h"
#include "tests/support/world/reader.h"

static int create_world(void **state)
{
    *state = world_create(NULL);
    metrics[M_CONFLATED] = 0;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- keeping up ---- */

static void reader_that_keeps_up_gets_every_change(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    create(world, "run_3", "b");
    struct reader *reader = subscribe(world, "tag:a");

    change(world, "run_1", 2);
    change_all(world, "run_1 run_3 run_2 run_1");

    assert_frames(reader, "run_1 v2", "run_1 v3", "run_2 v2", "run_1 v4");
    assert_int_equal(metrics[M_CONFLATED], 0);
}

static void readers_with_the_same_view_share_frames(void **state)
{
    struct world *world = *state;
    struct view wish = view_of(ENCODING_JSON, FIELDS_ALL & ~(1 << FIELD_PAYLOAD));
    create(world, "run_1", "a");
    struct reader *by_tag = subscribe(world, "tag:a");
    struct reader *by_run = subscribe(world, "run:run_1");
    struct reader *narrow = reader_create_with(world, &wish);
    follow(narrow, 1, "all", 0, 0);
    world_settle(world);
    forget_frames(narrow);

    change(world, "run_1", 2);

    assert_ptr_equal(by_tag->frames[0], by_run->frames[0]);
    assert_ptr_not_equal(by_tag->frames[0], narrow->frames[0]);
    assert_frames(by_tag, "run_1 v2");
    assert_frames(by_run, "run_1 v2");
    assert_frames(narrow, "run_1 v2");
}

static void run_of_several_subscriptions_is_sent_once(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a,b");
    struct reader *reader = subscribe(world, "tag:a");
    follow(reader, 2, "tag:b", 0, 0);
    follow(reader, 3, "run:run_1", 0, 0);
    world_settle(world);
    forget_frames(reader);

    change(world, "run_1", 2);
    assert_frames(reader, "run_1 v2");
    stall(reader);
    change(world, "run_1", 3);
    drain(reader);
    assert_frames(reader, "run_1 v3");
}

static void run_that_gains_the_tag_is_sent_whole(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "x");
    struct reader *reader = subscribe(world, "tag:a");

    change(world, "run_1", 2);
    add_tag(world, "run_1", "a");
    change(world, "run_1", 4);

    assert_frames(reader, "run_1 v3 whole", "run_1 v4");
}

static void run_must_have_every_tag_of_a_filter(void **state)
{
    struct world *world = *state;
    struct reader *reader = subscribe(world, "tag:a,b");
    create(world, "run_1", "a");
    create(world, "run_2", "b,a");
    add_tag(world, "run_1", "b");
    assert_frames(reader, "run_2 v1 whole", "run_1 v2 whole");
}

static void task_narrows_any_filter(void **state)
{
    struct world *world = *state;
    struct reader *all = subscribe(world, "all task:mail");
    struct reader *batch = subscribe(world, "batch:batch_1 task:mail");
    create_of(world, "run_1", "mail", "batch_1");
    create_of(world, "run_2", "sms", "batch_1");
    create_of(world, "run_3", "mail", "batch_2");
    change_all(world, "run_1 run_2 run_3");
    assert_frames(all, "run_1 v1 whole", "run_3 v1 whole", "run_1 v2", "run_3 v2");
    assert_frames(batch, "run_1 v1 whole", "run_1 v2");
}

static void run_can_be_followed_before_it_exists(void **state)
{
    struct world *world = *state;
    struct reader *reader = subscribe(world, "run:run_1");
    create(world, "run_1", NULL);
    change(world, "run_1", 2);
    assert_frames(reader, "run_1 v1 whole", "run_1 v2");
}

/* ---- falling behind ---- */

static void reader_that_fell_behind_gets_the_newest_state_once(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    struct view wish = view_of(ENCODING_JSON, FIELDS_ALL);
    struct reader *reader = reader_create_with(world, &wish);
    feed_set_pace(&reader->feed, 1000); /* it always walks */
    follow(reader, 1, "tag:a", 0, 0);
    world_settle(world);
    change(world, "run_1", 2);
    forget_frames(reader);

    change(world, "run_1", 3);
    change(world, "run_2", 2);
    change(world, "run_1", 4);
    assert_no_frames(reader);
    world_pass(world, 1000);

    assert_frames(reader, "run_2 v2, run_1 v4");
    assert_int_equal(metrics[M_CONFLATED], 1);
}

/* The ring still reaches back to the feed: nothing is lost or skipped. */
static void short_stall_loses_no_change(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    struct reader *reader = subscribe(world, "tag:a");
    stall(reader);
    change(world, "run_1", 2);
    change(world, "run_1", 3);
    assert_no_frames(reader);
    drain(reader);
    assert_frames(reader, "run_1 v2", "run_1 v3");
    assert_int_equal(metrics[M_CONFLATED], 0);
}

/* Fills the ring with changes of a run that the others do not follow. */
static void turn_the_ring(struct world *world)
{
    struct reader *other = reader_create(world);
    char metadata[64 * 1024];
    uint64_t dropped = world->env->applied;
    memset(metadata, ' ', sizeof(metadata) - 1);
    metadata[0] = '{';
    metadata[1] = '}';
    metadata[sizeof(metadata) - 1] = 0;
    follow(other, 1, "run:run_other", 0, 0);
    create(world, "run_other", NULL);
    while (world->env->recent.dropped < dropped) {
        metadata[2] = metadata[2] == ' ' ? '\n' : ' ';
        set_metadata(world, "run_other", metadata);
        forget_frames(other);
    }
    reader_destroy(other);
}

static void long_stall_sends_newest_states_and_counts_skipped_versions(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    create(world, "run_3", "a");
    struct reader *reader = subscribe(world, "tag:a");
    stall(reader);
    change(world, "run_1", 2);
    change(world, "run_2", 2);
    change(world, "run_1", 3);
    change(world, "run_1", 4);
    turn_the_ring(world);
    drain(reader);
    assert_frames(reader, "run_2 v2, run_1 v4");
    assert_int_equal(metrics[M_CONFLATED], 2);

    change(world, "run_1", 5);
    assert_frames(reader, "run_1 v5"); /* keeps up again */
}

static void metadata_changed_during_a_stall_is_sent_by_the_walk(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    struct reader *reader = subscribe(world, "tag:a");
    stall(reader);
    set_metadata(world, "run_1", "{\"k\":1}");
    change(world, "run_1", 3);
    turn_the_ring(world);
    drain(reader);
    struct slice frame = bytes_slice(reader->frames[0]);
    assert_non_null(memmem(frame.ptr, frame.len, "\"metadata\":{\"k\":1}", 18));
    assert_null(memmem(frame.ptr, frame.len, "payload", 7));
    assert_frames(reader, "run_1 v3");
}

static void run_that_gains_the_tag_during_a_stall_is_sent_whole(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "x");
    struct reader *reader = subscribe(world, "tag:a");
    stall(reader);
    add_tag(world, "run_1", "a");
    change(world, "run_1", 3);
    turn_the_ring(world);
    drain(reader);
    assert_frames(reader, "run_1 v3 whole");
    assert_int_equal(metrics[M_CONFLATED], 0); /* whole rows are not counted */
}

static void final_state_arrives_however_often_the_reader_stalls(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    struct reader *reader = subscribe(world, "tag:a");
    for (uint32_t version = 2; version <= 20; version += 2) {
        stall(reader);
        change(world, "run_1", version);
        change(world, "run_1", version + 1);
        drain_some(reader, 1);
    }
    drain(reader);
    struct buf last = { 0 };
    show_frame(reader->frames[reader->count - 1], &last);
    assert_string_equal(last.ptr, "run_1 v21");
    buf_finish(&last);
}

/* ---- every ---- */

static void patches_are_sent_at_the_requested_interval(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    struct reader *reader = reader_create(world);
    feed_set_pace(&reader->feed, 1000);
    follow(reader, 1, "tag:a", 0, 0);
    world_settle(world);
    assert_frames(reader, "rows 1: run_1 v1 whole");

    change(world, "run_1", 2);
    assert_frames(reader, "run_1 v2");
    change(world, "run_1", 3);
    change(world, "run_1", 4);
    world_pass(world, 900);
    assert_no_frames(reader);
    world_pass(world, 100);
    assert_frames(reader, "run_1 v4");
    world_pass(world, 5000);
    assert_no_frames(reader);
    change(world, "run_1", 5);
    assert_frames(reader, "run_1 v5");
}

/* The interval is for patches: it does not delay a new subscription. */
static void interval_does_not_delay_a_snapshot(void **state)
{
    struct world *world = *state;
    char metadata[50 * 1024] = "{\"";
    memset(metadata + 2, 'x', sizeof(metadata) - 8);
    memcpy(metadata + sizeof(metadata) - 6, "\":1}", 5);
    create_many(world, 4, "b");
    set_metadata(world, "run_001", metadata);
    set_metadata(world, "run_002", metadata);
    set_metadata(world, "run_003", metadata);
    create(world, "run_1", "a");
    struct reader *reader = reader_create(world);
    feed_set_pace(&reader->feed, 60000);
    follow(reader, 1, "tag:a", 0, 0);
    world_settle(world);
    change(world, "run_1", 2);
    change(world, "run_1", 3);
    forget_frames(reader);

    follow(reader, 2, "tag:b", 0, 0); /* while a patch has to wait */
    world_settle(world);
    assert_true(reader->count >= 2);
    forget_frames(reader);
    world_pass(world, 60000);
    assert_null(feed_find(&reader->feed, 2)->own);
}

/* ---- in sync ---- */

/* Changes without listeners wake no flush. A ping may still report that the feed is in
 * sync. */
static void idle_reader_is_in_sync_after_changes_of_other_runs(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "b");
    struct reader *reader = subscribe(world, "tag:a");
    change(world, "run_2", 2);
    assert_true(feed_in_sync(&reader->feed));
    assert_int_equal(reader->feed.seen, world->env->applied);

    stall(reader);
    change(world, "run_1", 2);
    assert_false(feed_in_sync(&reader->feed));
    drain(reader);
    assert_true(feed_in_sync(&reader->feed));
}

static void reader_without_subscriptions_gets_nothing(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    struct reader *reader = subscribe(world, "tag:a");
    change(world, "run_1", 2);
    unlisten(reader, 1);
    change(world, "run_1", 3);
    assert_frames(reader, "run_1 v2");
    assert_true(feed_in_sync(&reader->feed));
}

static void on_other(struct timer *timer)
{
    (void)timer;
}

/* Each loop has its own kinds of timers. */
static void loops_of_one_process_have_separate_timers(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 2; i++) {
        create(world, "run_1", "a");
        struct reader *reader = reader_create(world);
        feed_set_pace(&reader->feed, 100);
        follow(reader, 1, "tag:a", 0, 0);
        world_settle(world);
        change(world, "run_1", 2);
        change(world, "run_1", 3);
        forget_frames(reader);
        world_pass(world, 100);
        assert_frames(reader, "run_1 v3");
        world_destroy(world);
        *state = world = world_create(NULL);
        timers_kind(loop_timers(world->loop), on_other); /* a new number */
    }
}

/* ---- counts ---- */

static void runs_of_a_filter_in_memory_are_counted(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *about;
        int64_t count;
    } cases[] = { { "all", 4 },       { "tag:a", 2 },        { "tag:a,b", 1 },
                  { "tag:x", 0 },     { "run:run_1", 1 },    { "run:run_x", 0 },
                  { "batch:b_1", 1 }, { "all task:mail", 1 } };
    create(world, "run_1", "a");
    create(world, "run_2", "b,a");
    create(world, "run_3", NULL);
    create_of(world, "run_4", "mail", "b_1");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter filter = filter_about(cases[i].about);
        assert_int_equal(feed_count(world->env, &filter, 0), cases[i].count);
        filter_finish(&filter);
    }
}

/* Each change is compared with every subscription. */
static void many_subscriptions_check_few_changes_in_a_visit(void **state)
{
    enum { SUBSCRIPTIONS = 256, RUNS = 600, MOST = 128 };
    struct world *world = *state;
    char text[32];
    create_many(world, RUNS, "a");
    for (int walks = 0; walks < 2; walks++) {
        struct reader *reader = reader_create(world);
        for (int i = 0; i < SUBSCRIPTIONS; i++) {
            snprintf(text, sizeof(text), "tag:a task:none%d", i);
            follow(reader, i, text, 0, 0);
        }
        feed_set_pace(&reader->feed,
                      walks); /* not 0: walks, and does not take from the ring */
        world_settle(world);
        stall(reader);
        for (int i = 1; i <= RUNS; i++) {
            snprintf(text, sizeof(text), "run_%03d", i);
            change(world, text, (uint32_t)(walks + 2));
        }
        reader->stalled = false;
        uint64_t before = reader->feed.seen;
        feed_visit(&reader->feed);
        assert_in_range(reader->feed.seen, before, before + MOST);
        drain(reader);
        world_pass(world, 1);
        assert_int_equal(reader->feed.seen, world->env->applied);
        reader_destroy(reader);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reader_that_keeps_up_gets_every_change),
        TEST(readers_with_the_same_view_share_frames),
        TEST(run_of_several_subscriptions_is_sent_once),
        TEST(run_that_gains_the_tag_is_sent_whole),
        TEST(run_must_have_every_tag_of_a_filter),
        TEST(task_narrows_any_filter),
        TEST(run_can_be_followed_before_it_exists),
        TEST(reader_that_fell_behind_gets_the_newest_state_once),
        TEST(short_stall_loses_no_change),
        TEST(long_stall_sends_newest_states_and_counts_skipped_versions),
        TEST(metadata_changed_during_a_stall_is_sent_by_the_walk),
        TEST(run_that_gains_the_tag_during_a_stall_is_sent_whole),
        TEST(final_state_arrives_however_often_the_reader_stalls),
        TEST(patches_are_sent_at_the_requested_interval),
        TEST(interval_does_not_delay_a_snapshot),
        TEST(idle_reader_is_in_sync_after_changes_of_other_runs),
        TEST(reader_without_subscriptions_gets_nothing),
        TEST(loops_of_one_process_have_separate_timers),
        TEST(runs_of_a_filter_in_memory_are_counted),
        TEST(many_subscriptions_check_few_changes_in_a_visit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
