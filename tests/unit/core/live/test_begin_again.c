/* Listeners of an environment whose memory was cleared and loaded: they begin again. */
#include "tests/support/world/unit.h"

#include "base/json/scan.h"
#include "base/mem.h"
#include "core/live/watch.h"
#include "tests/support/fakes/fake_store.h"
#include "tests/support/fakes/fault.h"
#include "tests/support/world/reader.h"

struct reloading {
    struct world *world;
    struct store_walk walk;
    bool done;
};

static struct certainty certainty;

/* While memory is loaded, nothing of it is shown. */
static bool is_loaded(void *owner)
{
    return !((struct world *)owner)->env->is_cleared;
}

static int create_world(void **state)
{
    struct world *world = *state = world_create(NULL);
    certainty_init(&certainty, world->loop);
    certainty.is_certain = is_loaded;
    certainty.owner = world;
    world->env->certainty = &certainty;
    return 0;
}

static int destroy_world(void **state)
{
    certainty_finish(&certainty);
    world_destroy(*state);
    return 0;
}

static void on_read(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct reloading, walk.read)->done = true;
}

static void clear(struct world *world)
{
    while (environment_clear(world->env))
        loop_turn(world->loop, 0);
}

/* Loads the runs that had not changed after seq. */
static void load(struct world *world, uint64_t seq)
{
    struct reloading load = { .world = world };
    load.walk = (struct store_walk){ .read = { READ_WALK, WORLD_ENV, on_read },
                                     .kind = WALK_UNFINISHED,
                                     .up_to = seq,
                                     .limit = UINT32_MAX,
                                     .byte_limit = SIZE_MAX };
    world->store->ops->read(world->store, &load.walk.read);
    while (!load.done)
        loop_turn(world->loop, 1);
    for (size_t i = 0; i < load.walk.count; i++)
        environment_load(world->env, &load.walk.runs[i]);
    free(load.walk.runs);
    environment_begin_at(world->env, seq);
    environment_land(world->env, seq);
    certainty_return(&certainty);
}

static void reload(struct world *world, uint64_t seq)
{
    clear(world);
    load(world, seq);
    world_settle(world);
}

/* The run changes after the reload, under a number that was used before. */
static void change_again(struct world *world, const char *id)
{
    struct run run;
    run_copy(&run, &environment_find(world->env, slice_of(id))->run);
    run.version++;
    run.rev = world->env->applied + 1;
    run.usage_ms++;
    environment_put(world->env, &run, run.rev);
    world_settle(world);
}

static void live_subscription_gets_a_snapshot(void **state)
{
    struct world *world = *state;
    struct reader *reader = subscribe(world, "all");
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    world_settle(world);
    forget_frames(reader);
    reload(world, 2);
    assert_int_equal(reader->again, 1);
    assert_frames(reader, "rows 1: run_1 v1 whole, run_2 v1 whole, more",
                  "rows 1: nothing");
    assert_true(feed_in_sync(&reader->feed));
    create(world, "run_3", "a");
    world_settle(world);
    assert_frames(reader, "run_3 v1 whole");
    assert_int_equal(reader->again, 1);
    reader_destroy(reader);
}

/* As after a failover of the database that has lost commits. */
static void positions_may_be_lower_than_before(void **state)
{
    struct world *world = *state;
    struct reader *all = subscribe(world, "all"), *tag = subscribe(world, "tag:b"),
                  *run = subscribe(world, "run:run_1");
    create(world, "run_1", "a");
    create(world, "run_2", "b");
    create_many(world, 40, "b");
    world_settle(world);
    forget_frames(all);
    forget_frames(tag);
    forget_frames(run);
    reload(world, 2);
    assert_frames(all, "rows 1: run_1 v1 whole, run_2 v1 whole, more", "rows 1: nothing");
    assert_frames(tag, "rows 1: run_2 v1 whole, more", "rows 1: nothing");
    assert_frames(run, "rows 1: run_1 v1 whole, more", "rows 1: nothing");
    assert_int_equal(all->feed.seen, 2);
    change_again(world, "run_1");
    assert_frames(all, "run_1 v2");
    assert_no_frames(tag);
    assert_frames(run, "run_1 v2");
    assert_true(feed_in_sync(&tag->feed));
    reader_destroy(all);
    reader_destroy(tag);
    reader_destroy(run);
}

static void feed_is_not_in_sync_before_it_begins_again(void **state)
{
    struct world *world = *state;
    struct reader *reader = subscribe(world, "all");
    create(world, "run_1", "a");
    world_settle(world);
    forget_frames(reader);
    assert_true(feed_in_sync(&reader->feed));
    clear(world);
    load(world, 1);
    assert_int_equal(reader->feed.seen, world->env->applied);
    assert_false(feed_in_sync(&reader->feed));
    world_settle(world);
    assert_true(feed_in_sync(&reader->feed));
    reader_destroy(reader);
}

static void full_socket_begins_again_when_it_is_drained(void **state)
{
    struct world *world = *state;
    struct reader *reader = subscribe(world, "all");
    stall(reader);
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    world_settle(world);
    reload(world, 1);
    assert_int_equal(reader->again, 0);
    assert_no_frames(reader);
    drain(reader);
    assert_int_equal(reader->again, 1);
    assert_frames(reader, "rows 1: run_1 v1 whole, more", "rows 1: nothing");
    reader_destroy(reader);
}

/* Its page is of the memory before. */
static void subscription_that_catches_up_begins_again(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    world->env->cold = 2;
    follow(reader, 1, "all", 0, 0);
    loop_turn(world->loop, 0);
    assert_non_null(reader->feed.read);
    reload(world, 1);
    assert_int_equal(reader->again, 1);
    assert_frames(reader, "rows 1: run_1 v1 whole, more", "rows 1: nothing");
    reader_destroy(reader);
}

static uint64_t total_of(const struct bytes *frame)
{
    uint64_t total = 0;
    text_to_u64(scan_member(bytes_slice(frame), "total"), &total);
    return total;
}

/* Returns the last frame of this op. */
static const struct bytes *last_of(const struct reader *reader, const char *op)
{
    const struct bytes *found = NULL;
    for (size_t i = 0; i < reader->count; i++)
        if (slice_is(scan_member(bytes_slice(reader->frames[i]), "op"), op))
            found = reader->frames[i];
    return found;
}

static void live_list_is_sent_again_with_its_counts(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    struct query *query = query_create(&(struct run_filter){ .is_test = -1 }, 0);
    watch_open(&reader->feed, 7, query, 10, true);
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    create(world, "run_3", "a");
    world_pass(world, 1000);
    assert_int_equal(total_of(last_of(reader, "\"counts\"")), 3);
    forget_frames(reader);
    reload(world, 3);
    world_pass(world, 1000);
    const struct bytes *list = last_of(reader, "\"list\"");
    assert_non_null(list);
    assert_true(scan_member(bytes_slice(list), "begin").len);
    assert_false(scan_member(bytes_slice(list), "more").len);
    struct scan_members rows = scan_members(scan_member(bytes_slice(list), "rows"));
    struct slice row;
    for (int i = 0; i < 3; i++)
        assert_true(scan_next_element(&rows, &row));
    assert_false(scan_next_element(&rows, &row));
    assert_int_equal(total_of(last_of(reader, "\"counts\"")), 3);
    assert_int_equal(reader->again, 1);
    forget_frames(reader);
    create(world, "run_4", "a");
    world_pass(world, 1000);
    assert_false(scan_member(bytes_slice(last_of(reader, "\"list\"")), "begin").len);
    assert_int_equal(total_of(last_of(reader, "\"counts\"")), 4);
    reader_destroy(reader);
}

static void read_of_a_list_begins_again(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    struct query *query = query_create(&(struct run_filter){ .is_test = -1 }, 0);
    create(world, "run_1", "a");
    struct watch *watch = watch_open(&reader->feed, 7, query, 10, false);
    assert_non_null(watch->window->load);
    reload(world, 1);
    world_pass(world, 1000);
    assert_null(watch->window->load);
    assert_true(watch->window->listed);
    assert_int_equal(watch->window->count, 1);
    reader_destroy(reader);
}

/* A run that has left memory is read for a list, and the read fails while memory is loaded. */
static void failed_read_of_a_row_does_not_end_the_feed(void **state)
{
    struct world *world = *state;
    struct reader *reader = reader_create(world);
    struct query *query = query_create(&(struct run_filter){ .is_test = -1 }, 0);
    create(world, "run_1", "a");
    finish_run(world, "run_1", 10);
    create(world, "run_2", "a");
    world_settle(world);
    assert_false(environment_evict(world->env, 0));
    *fake_store_load_fault(world->fake) = (struct fault){ .countdown = 1 };
    struct watch *watch = watch_open(&reader->feed, 7, query, 10, false);
    for (int i = 0; !watch->page && i < 100; i++)
        loop_turn(world->loop, 1);
    assert_non_null(watch->page);
    clear(world);
    load(world, 3);
    world_settle(world);
    assert_true(fake_store_load_fault(world->fake)->tripped);
    assert_false(reader->lost);
    reader_destroy(reader);
}

int main(void)
{
#define WITH_WORLD(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(live_subscription_gets_a_snapshot),
        WITH_WORLD(positions_may_be_lower_than_before),
        WITH_WORLD(feed_is_not_in_sync_before_it_begins_again),
        WITH_WORLD(full_socket_begins_again_when_it_is_drained),
        WITH_WORLD(subscription_that_catches_up_begins_again),
        WITH_WORLD(live_list_is_sent_again_with_its_counts),
        WITH_WORLD(read_of_a_list_begins_again),
        WITH_WORLD(failed_read_of_a_row_does_not_end_the_feed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
