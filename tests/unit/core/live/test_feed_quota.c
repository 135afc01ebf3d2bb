/* A feed waits while unread responses take all the memory of its project, and continues
 * when there is memory again. Its own memory is counted meanwhile, and given back. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "core/live/catch_up.h"
#include "tests/support/fakes/fault.h"
#include "tests/support/world/reader.h"

enum {
    SMALL_MEMORY = 16 * 1024,
    OUTPUT = 1000,
    LONG_OUTPUT = 2 * LITTLE_UNSENT,
    ROOM = 1 << 20,
    SOON_MS = 50, /* it looks again */
    MANY = 1000,
};

static struct quota quota;

static void give_room(struct world *world)
{
    quota = (struct quota){ .limit = ROOM };
    world->env->answers = &quota;
}

static int create_large_world(void **state)
{
    *state = world_create(NULL);
    give_room(*state);
    return 0;
}

/* Only the store has run_001; memory has the last of the 50. */
static int create_world(void **state)
{
    struct world *world =
        world_create(&(struct world_options){ .engine.memory = SMALL_MEMORY });
    create_many(world, 50, "a");
    for (unsigned i = 1; i <= 50; i++) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03u", i);
        finish_run(world, id, OUTPUT);
    }
    world_settle(world);
    assert_null(environment_find(world->env, SLICE("run_001")));
    give_room(world);
    *fake_store_load_fault(world->fake) = (struct fault){ .countdown = MANY };
    *state = world;
    return 0;
}

/* Everything that was taken has been given back by then. */
static int destroy_world(void **state)
{
    world_destroy(*state);
    assert_int_equal(quota.used, 0);
    return 0;
}

static int loads(struct world *world)
{
    return MANY - fake_store_load_fault(world->fake)->countdown;
}

/* Unread responses of others take all the memory. */
static void fill_quota(void)
{
    quota_take(&quota, ROOM);
}

static void empty_quota(void)
{
    quota_release(&quota, ROOM);
}

static void pass_often(struct world *world)
{
    for (int i = 0; i < 10; i++)
        world_pass(world, SOON_MS);
}

static void feed_sends_nothing_while_the_quota_is_full(void **state)
{
    static const char *const abouts[] = { "run:run_001", "run:run_050", "tag:a" };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(abouts) / sizeof(abouts[0]); i++) {
        struct reader *reader = reader_create(world);
        fill_quota();
        follow(reader, 1, abouts[i], 0, 0);
        int before = loads(world);
        pass_often(world);
        assert_no_frames(reader);
        assert_true(reader->feed.lacks_quota);
        assert_true(list_empty(&reader->feed.visit)); /* no turn is spent on it */
        assert_int_equal(loads(world), before);

        empty_quota();
        world_pass(world, SOON_MS);
        world_settle(world);
        assert_true(reader->count > 0);
        assert_true(feed_in_sync(&reader->feed));
        assert_false(reader->feed.lacks_quota);
        assert_int_equal(loads(world) > before,
                         abouts[i][0] == 'r'); /* the tag has pages */
    }
}

static void page_that_arrives_when_the_quota_is_full_is_read_again(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    fake_store_set_delay(world->fake, 0, 10);
    follow(reader, 1, "run:run_001", 0, 0);
    world_settle(world);
    fill_quota();
    world_pass(world, 10);
    assert_int_equal(loads(world), 1);
    pass_often(world);
    assert_no_frames(reader);
    assert_int_equal(loads(world), 1);
    assert_int_equal(quota.used, ROOM); /* the page that came is no longer in memory */

    empty_quota();
    pass_often(world);
    assert_int_equal(loads(world), 2);
    assert_frames(reader, "rows 1: run_001 v2 whole, more", "rows 1: nothing");
    assert_int_equal(quota.used, 0);
}

/* Its page waits for a socket that does not read. */
static struct reader *wait_with_a_page(struct world *world)
{
    struct reader *reader = reader_create(world);
    fake_store_set_delay(world->fake, 0, 10);
    follow(reader, 1, "run:run_001", 0, 0);
    world_settle(world);
    stall(reader);
    world_pass(world, 10);
    assert_true(quota.used > OUTPUT);
    return reader;
}

static void page_counts_in_the_quota_until_it_is_sent(void **state)
{
    struct world *world = *state;
    struct reader *reader = wait_with_a_page(world);
    fill_quota(); /* rows that are in memory already are sent all the same */
    drain(reader);
    world_settle(world);
    assert_frames(reader, "rows 1: run_001 v2 whole, more");
    assert_int_equal(quota.used, ROOM);
    empty_quota();
    pass_often(world);
    assert_frames(reader, "rows 1: nothing");
}

static void ended_subscription_releases_its_quota(void **state)
{
    struct world *world = *state;
    struct reader *reader = wait_with_a_page(world);
    unlisten(reader, 1);
    assert_int_equal(quota.used, 0);
    reader_destroy(reader);

    reader_destroy(wait_with_a_page(world));
    assert_int_equal(quota.used, 0);
}

/* A feed that waits to begin, or whose page finds no memory when it arrives, may be destroyed,
 * or its subscription may end. */
static void feed_that_waits_for_quota_may_end(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 4; i++) {
        bool is_reading = i & 1, leaves = i & 2;
        struct reader *reader = reader_create(world);
        fake_store_set_delay(world->fake, 0, 10);
        if (!is_reading)
            fill_quota();
        follow(reader, 1, "run:run_001", 0, 0);
        world_settle(world);
        assert_int_equal(catch_up_waits(&reader->feed), is_reading);
        if (is_reading)
            fill_quota();
        if (leaves)
            reader_destroy(reader);
        else
            unlisten(reader, 1);
        pass_often(world);
        assert_int_equal(quota.used, ROOM);
        empty_quota();
        if (leaves)
            continue;
        pass_often(world);
        assert_no_frames(reader);
        assert_true(feed_in_sync(&reader->feed));
    }
}

static void long_update_waits_for_quota_and_later_ones_stay_in_order(void **state)
{
    struct world *world = *state;
    create(world, "run_a", "b");
    create(world, "run_b", "b");
    struct reader *reader = subscribe(world, "tag:b");
    fill_quota();
    change(world, "run_b", 2);
    finish_run(world, "run_a", LONG_OUTPUT);
    change(world, "run_b", 3);
    pass_often(world);
    assert_int_equal(reader->count, 1); /* a long frame cannot be shown as text */
    assert_frames(reader, "run_b v2");
    assert_true(reader->feed.lagging && reader->feed.lacks_quota);
    assert_true(list_empty(&reader->feed.visit));

    empty_quota();
    world_pass(world, SOON_MS);
    assert_int_equal(reader->count, 2);
    assert_true(reader->frames[0]->len > LONG_OUTPUT);
    assert_true(reader->frames[1]->len < LITTLE_UNSENT);
    assert_true(feed_in_sync(&reader->feed));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
#define LARGE(name) cmocka_unit_test_setup_teardown(name, create_large_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(feed_sends_nothing_while_the_quota_is_full),
        TEST(page_that_arrives_when_the_quota_is_full_is_read_again),
        TEST(page_counts_in_the_quota_until_it_is_sent),
        TEST(ended_subscription_releases_its_quota),
        TEST(feed_that_waits_for_quota_may_end),
        LARGE(long_update_waits_for_quota_and_later_ones_stay_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
