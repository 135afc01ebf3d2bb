/* Catching up: snapshots, resumes, long walks, and runs that only the store has. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/calls.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/late_change.h"
#include "tests/support/world/reader.h"

enum { SMALL_MEMORY = 16 * 1024, OUTPUT = 1000 };

static int create_world(void **state)
{
    *state = world_create(NULL);
    metrics[M_CONFLATED] = 0;
    return 0;
}

/* Only the last few finished runs stay in memory. */
static int create_small_world(void **state)
{
    *state = world_create(&(struct world_options){ .engine.memory = SMALL_MEMORY });
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- snapshot, resume ---- */

static void snapshot_has_newest_states_in_order_of_change(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    create(world, "run_3", "b");
    change(world, "run_1", 2);
    struct reader *reader = reader_create(world);
    follow(reader, 7, "tag:a", 0, 0);
    world_settle(world);
    assert_frames(reader, "rows 7: run_2 v1 whole, run_1 v2 whole");
}

static void snapshot_without_runs_ends_at_once(void **state)
{
    static const char *const abouts[] = { "tag:x", "run:run_x", "batch:batch_x", "all" };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++) {
        struct reader *reader = reader_create(world);
        follow(reader, 1, abouts[i], 0, 0);
        world_settle(world);
        assert_frames(reader, "rows 1: nothing");
        reader_destroy(reader);
    }
}

static void resume_sends_changes_since_the_position(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    create(world, "run_3", "a");
    uint64_t seq = world->env->applied;
    change(world, "run_2", 2);
    create(world, "run_4", "a");
    change(world, "run_2", 3);

    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:a", seq, seq);
    world_settle(world);
    assert_frames(reader, "rows 1: run_4 v1 whole, run_2 v3");
    change(world, "run_1", 2);
    assert_frames(reader, "run_1 v2");
}

/* Between base and seq the client saw only some of the changes: base decides about rows. */
static void resume_chooses_rows_by_its_base(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    uint64_t base = world->env->applied;
    set_metadata(world, "run_1", "{\"k\":1}");
    create(world, "run_2", "a");
    uint64_t seq = world->env->applied;
    change(world, "run_1", 3);
    change(world, "run_2", 2);

    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:a", seq, base);
    world_settle(world);
    struct slice frame = bytes_slice(reader->frames[0]);
    assert_non_null(memmem(frame.ptr, frame.len, "\"metadata\":{\"k\":1}", 18));
    assert_frames(reader, "rows 1: run_1 v3, run_2 v2 whole");
}

static void positions_survive_a_restart(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    uint64_t seq = world->env->applied;
    change(world, "run_1", 2);
    finish_run(world, "run_1", 10);
    world_restart(world);

    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:a", seq, seq);
    world_settle(world);
    struct slice frame = bytes_slice(reader->frames[0]);
    assert_non_null(memmem(frame.ptr, frame.len, "\"output\"", 8));
    assert_frames(reader, "rows 1: run_1 v3");
}

/* It joins in a visit in which the live ones are complete; one frame may serve both. */
static void second_subscription_catches_up_while_the_first_is_live(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "b");
    struct reader *reader = subscribe(world, "tag:a");
    follow(reader, 2, "tag:b", 0, 0);
    change(world, "run_1", 2);
    change(world, "run_2", 2);
    assert_frames(reader, "run_1 v2", "rows 2: run_2 v1 whole", "run_2 v2");
}

static void subscription_that_catches_up_can_be_ended(void **state)
{
    struct world *world = *state;
    create_many(world, 3, "a");
    struct reader *reader = subscribe(world, "tag:x");
    follow(reader, 2, "tag:a", 0, 0);
    unlisten(reader, 2);
    world_settle(world);
    assert_no_frames(reader);
    assert_int_equal(reader->feed.subscriptions, 1);
}

/* ---- long walks ---- */

/* Counts the rows of patches and of rows; `more` is that of the last frame. */
static unsigned count_rows(const struct reader *reader, bool *more)
{
    unsigned count = 0;
    for (size_t i = 0; i < reader->count; i++) {
        struct slice message = bytes_slice(reader->frames[i]), row;
        struct scan_members rows = scan_members(scan_member(message, "rows"));
        assert_true(message.len <= 64 * 1024);
        *more = scan_member(message, "more").len > 0;
        while (scan_next_element(&rows, &row))
            count++;
    }
    return count;
}

static void long_snapshot_is_sent_in_limited_frames(void **state)
{
    struct world *world = *state;
    bool more = true;
    create_many(world, 500, "a");
    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:a", 0, 0);
    for (int visits = 0; more; visits++) {
        assert_true(visits < 100);
        drain_some(reader, 1);
        assert_int_equal(reader->count, visits + 1);
        count_rows(reader, &more);
    }
    assert_true(reader->count > 2);
    assert_int_equal(count_rows(reader, &more), 500);
}

static void run_larger_than_a_frame_is_sent_alone(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    create(world, "run_3", "a");
    finish_run(world, "run_2", 100 * 1024);
    change(world, "run_3", 2);
    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:a", 0, 0);
    world_settle(world);
    assert_frames(reader, "rows 1: run_1 v1 whole, more", "rows 1: run_2 v2 whole, more",
                  "rows 1: run_3 v2 whole");
}

/* A walk read one frame at a time while runs change, and the sum of skipped versions. */
struct walked {
    uint32_t versions[1000]; /* those of the client, by run number */
    unsigned gaps, rows, frames;
    bool more;
};

static void read_walk(struct reader *reader, struct walked *walked)
{
    for (size_t i = 0; i < reader->count; i++) {
        struct slice message = bytes_slice(reader->frames[i]), row;
        struct scan_members rows = scan_members(scan_member(message, "rows"));
        walked->more = scan_member(message, "more").len > 0;
        walked->frames++;
        for (; scan_next_element(&rows, &row); walked->rows++) {
            unsigned number, version;
            assert_int_equal(sscanf(row.ptr, "[\"run_%u\",%u", &number, &version), 2);
            assert_true(version > walked->versions[number]);
            walked->gaps += version - walked->versions[number] - 1;
            walked->versions[number] = version;
        }
    }
    forget_frames(reader);
}

/* Makes the next version of run_001 to run_<count>, with 1 KiB of metadata. */
static void change_metadata(struct world *world, unsigned count, char letter)
{
    char metadata[1024] = "{\"x\":\"";
    memset(metadata + 6, letter, sizeof(metadata) - 9);
    memcpy(metadata + sizeof(metadata) - 3, "\"}", 3);
    for (unsigned i = 1; i <= count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03u", i);
        set_metadata(world, id, metadata);
    }
}

/* A live reader of the present runs, which then stops reading. */
static struct reader *walker(struct world *world, unsigned count, struct walked *walked)
{
    create_many(world, count, "a");
    struct reader *reader = subscribe(world, "tag:a");
    feed_set_pace(&reader->feed, 1); /* walks, and does not take from the ring */
    stall(reader);
    *walked = (struct walked){ .more = true };
    for (unsigned i = 1; i <= count; i++)
        walked->versions[i] = 1;
    return reader;
}

static void skipped_versions_of_a_walk_equal_the_conflated_metric(void **state)
{
    struct world *world = *state;
    struct walked walked;
    struct reader *reader = walker(world, 600, &walked);
    uint32_t busy = 4;
    for (char letter = 'a'; letter <= 'c'; letter++)
        change_metadata(world, 600, letter);
    while (walked.more) {
        drain_some(reader, 1);
        world_pass(world, 1);
        read_walk(reader, &walked);
        if (busy < 12) {
            change(world, "run_001", ++busy); /* always changes during the walk */
            change(world, "run_300", busy);
            change(world, "run_599", busy);
        }
        assert_true(walked.frames < 1000);
    }
    assert_int_equal(walked.versions[1], 12);
    assert_int_equal(walked.versions[300], 12);
    assert_int_equal(walked.versions[600], 4);
    assert_true(walked.rows > 600); /* some came more than once */
    assert_true(walked.gaps >= 600 * 2);
    assert_int_equal(metrics[M_CONFLATED], walked.gaps);
}

/* Every eighth frame of a long walk brings the newest runs, so none of them starves. */
static void newest_change_is_sent_before_the_end_of_a_walk(void **state)
{
    struct world *world = *state;
    struct walked walked;
    unsigned seen_at = 0;
    struct reader *reader = walker(world, 999, &walked);
    change_metadata(world, 999, 'a');
    while (walked.more) {
        drain_some(reader, 1);
        world_pass(world, 1);
        read_walk(reader, &walked);
        if (!seen_at && walked.versions[999] == 2)
            seen_at = walked.frames;
    }
    assert_true(walked.frames > 16);
    assert_int_equal(seen_at, 8);
    assert_int_equal(walked.rows, 999); /* rows sent ahead are not repeated */
    assert_int_equal(metrics[M_CONFLATED], 0);
}

/* 64 runs change while each frame is read, so each is sent ahead many times. Each is
 * remembered once, and the walk still sends every run in order, and ends. */
static void walk_among_constant_changes_uses_bounded_memory_and_ends(void **state)
{
    enum { RUNS = 640, CHANGES = 64, FRAMES = 720 };
    struct world *world = *state;
    struct walked walked;
    unsigned changed = 0;
    struct reader *reader = walker(world, RUNS, &walked);
    change_metadata(world, RUNS, 'a');
    while (walked.more) {
        char id[16];
        drain_some(reader, 1);
        world_pass(world, 1);
        read_walk(reader, &walked);
        assert_true(!reader->feed.ahead || reader->feed.ahead->count <= RUNS);
        for (int i = 0; i < CHANGES && walked.frames < FRAMES; i++, changed++) {
            snprintf(id, sizeof(id), "run_%03u", changed % RUNS + 1);
            change(world, id, 3 + changed / RUNS);
        }
    }
    for (unsigned i = 1; i <= RUNS; i++)
        assert_int_equal(walked.versions[i], 2 + (changed + RUNS - i) / RUNS);
}

/* ---- below cold ---- */

static void finish_many(struct world *world, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03u", i);
        finish_run(world, id, OUTPUT);
    }
    world_settle(world);
}

static void finished_runs_leave_memory_and_unfinished_runs_stay(void **state)
{
    struct world *world = *state;
    create(world, "run_old", "a");
    create_many(world, 50, "a");
    finish_many(world, 50);
    assert_true(world->env->finals.used <= SMALL_MEMORY);
    assert_true(world->env->cold > 0 && world->env->cold < world->env->applied);
    assert_non_null(environment_find(world->env, SLICE("run_old")));
    assert_null(environment_find(world->env, SLICE("run_001")));
    assert_non_null(environment_find(world->env, SLICE("run_050")));
    assert_int_equal(world->env->unfinished, 1);
}

static void snapshot_reads_pages_of_the_store_then_memory(void **state)
{
    static const char *const abouts[] = { "tag:a", "all", "all task:hello", "tag:a,a" };
    struct world *world = *state;
    bool more;
    create_many(world, 300, "a");
    create(world, "run_other", "b");
    finish_many(world, 300);
    fake_store_set_delay(world->fake, 0, 10);
    for (size_t i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++) {
        struct reader *reader = reader_create(world);
        struct subscription *sub = follow(reader, 1, abouts[i], 0, 0);
        for (int turn = 0; sub->own && turn < 1000; turn++)
            loop_turn(world->loop, 1);
        assert_int_equal(count_rows(reader, &more), strstr(abouts[i], "tag") ? 300 : 301);
        assert_false(more);
        forget_frames(reader);
        finish_run(world, "run_other", 1); /* again; only memory has this change */
        reader_destroy(reader);
    }
}

static void evicted_run_is_read_from_the_store(void **state)
{
    struct world *world = *state;
    create_many(world, 50, "a");
    finish_many(world, 50);
    struct reader *reader = reader_create(world);
    follow(reader, 1, "run:run_001", 0, 0);
    follow(reader, 2, "run:run_nobody", 0, 0);
    world_pass(world, 10);
    assert_frames(reader, "rows 1: run_001 v2 whole, more", "rows 1: nothing",
                  "rows 2: nothing");
    change(world, "run_001", 3);
    assert_frames(reader, "run_001 v3 whole"); /* memory does not have the change before */
}

/* A page takes its time; changes for the live subscriptions do not wait for it. */
static void live_changes_continue_while_a_page_is_read(void **state)
{
    struct world *world = *state;
    create_many(world, 50, "a");
    create(world, "run_x", "x");
    finish_many(world, 50);
    struct reader *reader = subscribe(world, "tag:x");
    fake_store_set_delay(world->fake, 0, 1000);
    follow(reader, 2, "tag:a", 0, 0);
    world_settle(world);
    change(world, "run_x", 2);
    world_settle(world);
    assert_frames(reader, "run_x v2");
    for (int i = 0; i < 10; i++)
        world_pass(world, 1000);
    assert_null(feed_find(&reader->feed, 2)->own);
}

static void run_that_changes_while_its_page_is_read_is_sent_in_order(void **state)
{
    struct world *world = *state;
    create_many(world, 50, "a");
    finish_many(world, 50);
    fake_store_set_delay(world->fake, 0, 100);
    struct reader *reader = reader_create(world);
    follow(reader, 1, "run:run_001", 0, 0);
    world_settle(world);
    world_pass(world, 60);
    change(world, "run_001", 3); /* the page has the previous version */
    for (int i = 0; i < 20; i++)
        world_pass(world, 100);
    assert_frames(reader, "rows 1: run_001 v2 whole, more", "rows 1: run_001 v3 whole");
}

static void on_annotated(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, OK);
}

/* The store is ahead of memory by a commit that is not applied yet: its page no longer has
 * the run at its old place, and memory does not have it at its new one. */
static void run_with_a_change_in_flight_is_not_missed(void **state)
{
    struct world *world = *state;
    struct change_metadata op = { .replacement = SLICE("{\"k\":1}") };
    bool more;
    create(world, "run_x", "a");
    create_many(world, 50, "a");
    finish_many(world, 50);
    fake_store_set_delay(world->fake, 100, 0);
    run_change_metadata(world->engine, world->env, SLICE("run_x"), &op, on_annotated);
    world_settle(world);
    world_pass(world, 60); /* written, not applied */
    struct reader *reader = reader_create(world);
    follow(reader, 1, "tag:a", 0, 0);
    world_pass(world, 10);
    assert_int_equal(count_rows(reader, &more), 51);
    assert_false(more);
    forget_frames(reader);
    world_pass(world, 30);
    assert_frames(reader, "run_x v2");
}

/* ---- at a gateway that follows, which has each change 50 ms after the store ---- */

static uint64_t ask(void *owner)
{
    (void)owner;
    return 1;
}

static void let_follow(struct world *world)
{
    struct certainty *certainty = engine_certainty(world->engine);
    certainty->ask = ask;
    certainty_follow(certainty, true);
}

/* Finishes run_x and 50 others, which take all memory. */
static void finish_and_evict(struct world *world)
{
    create(world, "run_x", "a");
    create_many(world, 50, "b");
    finish_run(world, "run_x", OUTPUT);
    finish_many(world, 50);
    assert_null(environment_find(world->env, SLICE("run_x")));
}

static void check_snapshot(struct world *world, const char *about)
{
    struct late_change late;
    finish_and_evict(world);
    let_follow(world);
    change_late(world, &late, "run_x");
    struct reader *reader = reader_create(world);
    follow(reader, 1, about, 0, 0);
    world_pass(world, 10);
    assert_no_frames(reader);
    world_pass(world, 40);
    assert_frames(reader, "rows 1: run_x v3 whole");
}

static void snapshot_of_a_tag_waits_for_what_only_the_store_has(void **state)
{
    check_snapshot(*state, "tag:a");
}

static void snapshot_of_a_run_waits_for_what_only_the_store_has(void **state)
{
    check_snapshot(*state, "run:run_x");
}

static void late_reader_waits_for_what_only_the_store_has(void **state)
{
    struct world *world = *state;
    struct late_change late;
    bool more;
    struct reader *reader = subscribe(world, "all");
    feed_set_pace(&reader->feed, 1);
    stall(reader);
    finish_and_evict(world);
    let_follow(world);
    change_late(world, &late, "run_x");
    forget_frames(reader);
    drain(reader);
    for (int i = 0; i < 10; i++)
        world_pass(world, 1);
    size_t from_store = count_rows(reader, &more);
    assert_true(more);
    forget_frames(reader);
    world_pass(world, 40);
    assert_int_equal(count_rows(reader, &more), 51 - from_store);
    assert_false(more);
    assert_int_equal(reader->feed.base, world->env->applied);
}

static void page_that_arrives_after_its_reader_left_is_dropped(void **state)
{
    struct world *world = *state;
    create_many(world, 50, "a");
    finish_many(world, 50);
    fake_store_set_delay(world->fake, 0, 100);
    struct reader *gone = reader_create(world);
    struct reader *stays = reader_create(world);
    follow(gone, 1, "tag:a", 0, 0);
    follow(stays, 1, "tag:a", 0, 0);
    world_settle(world);
    reader_destroy(gone);
    unlisten(stays, 1);
    for (int i = 0; i < 10; i++)
        world_pass(world, 100);
    assert_no_frames(stays);
}

/* Nothing expires before everything is loaded: a run that expired would leave memory again,
 * and `cold` would not show it. */
static void no_run_expires_while_runs_are_loaded(void **state)
{
    struct world *world = *state;
    bool more;
    struct triggered got = trigger(world, (struct wish){ .ttl = "1s" });
    create_many(world, 250, "a");
    finish_many(world, 250);
    world_stop(world);
    loop_turn(world->loop, 5000);
    world->options.memory = 1;
    fake_store_set_delay(world->fake, 0, 100);
    world_start(world);
    fake_store_set_delay(world->fake, 0, 0);
    world_pass(world, 10);
    assert_status(world, got.id, RUN_EXPIRED);

    struct reader *reader = reader_create(world);
    follow(reader, 1, "all", 0, 0);
    world_pass(world, 10);
    assert_int_equal(count_rows(reader, &more), 251);
}

/* Its position is older than memory reaches: it gets pages of the store, as patches. */
static void live_reader_below_cold_gets_missed_runs_from_the_store(void **state)
{
    struct world *world = *state;
    bool more;
    create_many(world, 50, "a");
    struct reader *reader = subscribe(world, "tag:a");
    feed_set_pace(&reader->feed, 1);
    stall(reader);
    finish_many(world, 50);
    assert_true(reader->feed.seen < world->env->cold);
    fake_store_set_delay(world->fake, 0, 10);
    forget_frames(reader);
    drain(reader);
    for (int i = 0; i < 50; i++)
        world_pass(world, 10);
    assert_false(reader->lost);
    assert_int_equal(count_rows(reader, &more), 50);
    assert_false(more);
    assert_int_equal(reader->feed.base, world->env->applied);
}

static void page_for_live_subscriptions_is_dropped_when_they_end(void **state)
{
    struct world *world = *state;
    create_many(world, 50, "a");
    struct reader *stays = subscribe(world, "tag:a"), *leaves = subscribe(world, "tag:a");
    feed_set_pace(&stays->feed, 1);
    feed_set_pace(&leaves->feed, 1);
    stall(stays);
    stall(leaves);
    finish_many(world, 50);
    fake_store_set_delay(world->fake, 0, 100);
    drain(stays);
    drain(leaves);
    world_pass(world, 10);
    reader_destroy(leaves);
    unlisten(stays, 1);
    forget_frames(stays);
    for (int i = 0; i < 30; i++)
        world_pass(world, 10);
    assert_no_frames(stays);
    assert_int_equal(stays->feed.seen, world->env->applied);
    fake_store_set_delay(world->fake, 0, 0);
}

static void retention_removes_runs_from_memory_and_moves_the_floor(void **state)
{
    struct world *world = *state;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    finish_run(world, "run_1", 1);
    struct store_position position = { .env = WORLD_ENV,
                                       .seq = world->env->applied,
                                       .purged = world->env->applied,
                                       .floor = loop_wall_ms(world->loop) + 1 };
    uint64_t at = 0;
    assert_false(environment_purge(world->env, &position, &at));
    assert_null(environment_find(world->env, SLICE("run_1")));
    assert_non_null(environment_find(world->env, SLICE("run_2")));
    assert_int_equal(world->env->floor, position.floor);
    assert_int_equal(world->env->purged, position.purged);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
#define SMALL(name) cmocka_unit_test_setup_teardown(name, create_small_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(snapshot_has_newest_states_in_order_of_change),
        TEST(snapshot_without_runs_ends_at_once),
        TEST(resume_sends_changes_since_the_position),
        TEST(resume_chooses_rows_by_its_base),
        TEST(positions_survive_a_restart),
        TEST(second_subscription_catches_up_while_the_first_is_live),
        TEST(subscription_that_catches_up_can_be_ended),
        TEST(long_snapshot_is_sent_in_limited_frames),
        TEST(run_larger_than_a_frame_is_sent_alone),
        TEST(skipped_versions_of_a_walk_equal_the_conflated_metric),
        TEST(newest_change_is_sent_before_the_end_of_a_walk),
        TEST(walk_among_constant_changes_uses_bounded_memory_and_ends),
        SMALL(finished_runs_leave_memory_and_unfinished_runs_stay),
        SMALL(snapshot_reads_pages_of_the_store_then_memory),
        SMALL(evicted_run_is_read_from_the_store),
        SMALL(live_changes_continue_while_a_page_is_read),
        SMALL(run_that_changes_while_its_page_is_read_is_sent_in_order),
        SMALL(run_with_a_change_in_flight_is_not_missed),
        SMALL(snapshot_of_a_tag_waits_for_what_only_the_store_has),
        SMALL(snapshot_of_a_run_waits_for_what_only_the_store_has),
        SMALL(late_reader_waits_for_what_only_the_store_has),
        SMALL(page_that_arrives_after_its_reader_left_is_dropped),
        SMALL(no_run_expires_while_runs_are_loaded),
        SMALL(live_reader_below_cold_gets_missed_runs_from_the_store),
        SMALL(page_for_live_subscriptions_is_dropped_when_they_end),
        TEST(retention_removes_runs_from_memory_and_moves_the_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
