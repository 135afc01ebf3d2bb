/* Listeners of a topic are visited over several turns, and may come and go meanwhile. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "tests/support/world/reader.h"

enum { READERS = 40, A_TURN = 8 /* visits without time */ };

struct scene {
    struct world *world;
    struct reader *readers[READERS]; /* followers of tag a; NULL: it has left */
};

static int open_scene(void **state)
{
    struct scene *scene = mem_new(struct scene);
    scene->world = world_create(NULL);
    create(scene->world, "run_1", "a");
    for (int i = 0; i < READERS; i++)
        scene->readers[i] = subscribe(scene->world, "tag:a");
    loop_set_budget(scene->world->loop, 0);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    loop_set_budget(scene->world->loop, 1000);
    world_destroy(scene->world);
    free(scene);
    return 0;
}

static void leave(struct scene *scene, int i)
{
    reader_destroy(scene->readers[i]);
    scene->readers[i] = NULL;
}

static void turn(struct scene *scene)
{
    loop_turn(scene->world->loop, 0);
}

static int count_reached(const struct scene *scene, size_t frames)
{
    int count = 0;
    for (int i = 0; i < READERS; i++)
        count += scene->readers[i] && scene->readers[i]->count == frames;
    return count;
}

/* Finds a reader that was visited, or was not. */
static int find(const struct scene *scene, size_t frames)
{
    for (int i = 0; i < READERS; i++)
        if (scene->readers[i] && scene->readers[i]->count == frames)
            return i;
    fail_msg("no reader has %zu frames", frames);
    return 0;
}

static void assert_each_has_one(struct scene *scene, const char *frame)
{
    for (int i = 0; i < READERS; i++)
        if (scene->readers[i])
            assert_frames(scene->readers[i], frame);
}

static void turn_visits_as_many_listeners_as_it_has_time_for(void **state)
{
    struct scene *scene = *state;
    change(scene->world, "run_1", 2);
    for (int reached = A_TURN; reached <= READERS; reached += A_TURN) {
        assert_int_equal(count_reached(scene, 1), reached);
        turn(scene);
    }
    assert_each_has_one(scene, "run_1 v2");
    assert_true(hub_is_through(&scene->world->env->hub));
}

static void listener_that_leaves_does_not_affect_others(void **state)
{
    struct scene *scene = *state;
    change(scene->world, "run_1", 2);
    leave(scene, find(scene, 1));
    leave(scene, find(scene, 0));
    turn(scene);
    for (int i = 0; i < 6; i++)
        leave(scene, find(scene, 1));
    leave(scene, find(scene, 0));
    world_settle(scene->world);
    assert_each_has_one(scene, "run_1 v2");
    change(scene->world, "run_1", 3);
    world_settle(scene->world);
    assert_each_has_one(scene, "run_1 v3");
}

static void visited_listeners_may_leave_after_the_last_visit(void **state)
{
    struct scene *scene = *state;
    change(scene->world, "run_1", 2);
    while (count_reached(scene, 0))
        leave(scene, find(scene, 0));
    leave(scene, find(scene, 1));
    for (int i = READERS - 1; i >= 0; i--)
        if (scene->readers[i] && count_reached(scene, 1) > 1)
            leave(scene, i);
    world_settle(scene->world);
    change(scene->world, "run_1", 3);
    world_settle(scene->world);
    assert_frames(scene->readers[find(scene, 2)], "run_1 v2", "run_1 v3");
}

/* Any reader may leave, in any order: each of the rest is reached once. */
static void any_listener_may_leave_at_any_time(void **state)
{
    struct scene *scene = *state;
    uint32_t version = 2;
    for (int left = READERS; left > A_TURN; left -= 2, version++) {
        char frame[32];
        snprintf(frame, sizeof(frame), "run_1 v%u", (unsigned)version);
        change(scene->world, "run_1", version);
        int visited = find(scene, 1);
        leave(scene, visited);
        for (int i = (visited + left) % READERS;; i = (i + 1) % READERS)
            if (scene->readers[i]) {
                leave(scene, i);
                break;
            }
        world_settle(scene->world);
        assert_each_has_one(scene, frame);
    }
}

static void all_listeners_may_leave_and_others_join(void **state)
{
    struct scene *scene = *state;
    change(scene->world, "run_1", 2);
    for (int i = 0; i < READERS; i++)
        leave(scene, i);
    scene->readers[0] = subscribe(scene->world, "tag:a");
    world_settle(scene->world);
    assert_no_frames(scene->readers[0]);
    change(scene->world, "run_1", 3);
    assert_frames(scene->readers[0], "run_1 v3");
}

/* Otherwise the last listeners would get nothing while changes come faster than they are
 * sent. */
static void another_change_does_not_restart_the_visits(void **state)
{
    struct scene *scene = *state;
    uint32_t version = 2;
    change(scene->world, "run_1", version);
    for (int reached = A_TURN; reached < READERS; reached += A_TURN)
        change(scene->world, "run_1", ++version);
    assert_int_equal(count_reached(scene, 0), 0);
    world_settle(scene->world);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(scene->readers[i]->count, version - 1);
}

static void listener_that_catches_up_is_not_delayed_by_changes(void **state)
{
    struct scene *scene = *state;
    uint32_t version = 2;
    struct reader *lagging = reader_create(scene->world);
    change(scene->world, "run_1", version);
    follow(lagging, 1, "tag:a", 0, 0);
    for (int turns = 0; !lagging->count; turns++) {
        assert_true(turns <= 2 * READERS / A_TURN);
        change(scene->world, "run_1", ++version);
    }
}

static void listener_of_several_topics_gets_a_change_once(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < READERS; i++)
        follow(scene->readers[i], 2, "run:run_1", 0, 0);
    world_settle(scene->world);
    for (int i = 0; i < READERS; i++)
        forget_frames(scene->readers[i]);
    change(scene->world, "run_1", 2);
    world_settle(scene->world);
    assert_each_has_one(scene, "run_1 v2");
}

static int visits;
static bool (*busy_of_reader)(struct feed *feed);

static bool count_visit(struct feed *feed)
{
    visits++;
    return busy_of_reader(feed);
}

/* Counts how often a feed calls busy of the reader, for one change. */
static int count_visits(struct scene *scene, struct reader *reader, uint32_t version)
{
    static struct feed_ops counting;
    const struct feed_ops *ops = reader->feed.ops;
    counting = *ops;
    busy_of_reader = ops->busy;
    counting.busy = count_visit;
    reader->feed.ops = &counting;
    visits = 0;
    change(scene->world, "run_1", version);
    world_settle(scene->world);
    reader->feed.ops = ops;
    return visits;
}

static void feed_with_many_subscriptions_is_visited_once(void **state)
{
    struct scene *scene = *state;
    struct reader *reader = scene->readers[0];
    int once = count_visits(scene, reader, 2);
    assert_true(once > 0);
    for (int i = 2; i < 20; i++)
        follow(reader, i, i % 2 ? "tag:a" : "all", 0, 0);
    world_settle(scene->world);
    assert_int_equal(count_visits(scene, reader, 3), once);
}

/* Live subscriptions wait for the end of their interval, and another one waits for them. */
static int count_visits_while_it_waits(struct scene *scene, struct reader *reader,
                                       uint32_t version)
{
    feed_set_pace(&reader->feed, 3600 * 1000);
    change(scene->world, "run_1", version);
    world_settle(scene->world);
    follow(reader, 20, "all task:none", 0, 0);
    change(scene->world, "run_1", version + 1);
    world_settle(scene->world);
    assert_true(reader->feed.lagging);
    return count_visits(scene, reader, version + 2);
}

static void feed_that_waits_for_its_interval_is_visited_once(void **state)
{
    struct scene *scene = *state;
    for (int i = 2; i < 20; i++)
        follow(scene->readers[0], i, "all", 0, 0);
    follow(scene->readers[1], 2, "all", 0, 0);
    world_settle(scene->world);
    int often = count_visits_while_it_waits(scene, scene->readers[0], 2);
    assert_int_equal(often, count_visits_while_it_waits(scene, scene->readers[1], 5));
}

/* Sends the gathered frames at the end of the turn, as a ring does. */
struct sender {
    struct flusher flusher;
    struct scene *scene;
    int64_t noted; /* deliveries noted when the first frame was sent */
};

static int64_t count_deliveries(void)
{
    struct buf text = { 0 };
    struct slice line, lines;
    int64_t count = -1;
    static const char name[] = "runcast_delivery_seconds_count ";
    metrics_print(&text);
    lines = buf_slice(&text);
    while (slice_split(&lines, '\n', &line))
        if (slice_starts(line, name))
            count = strtoll(line.ptr + sizeof(name) - 1, NULL, 10);
    buf_finish(&text);
    return count;
}

static bool send_late(struct flusher *flusher)
{
    struct sender *sender = container_of(flusher, struct sender, flusher);
    if (sender->noted < 0 && sender->scene->readers[0]->count)
        sender->noted = count_deliveries();
    return sender->noted < 0;
}

static void delivery_time_includes_frames_sent_at_the_end_of_the_turn(void **state)
{
    struct scene *scene = *state;
    struct loop *loop = scene->world->loop;
    int64_t before = count_deliveries();
    struct sender sender = { { .fn = send_late, .runs_last = true }, scene, -1 };
    loop_set_budget(loop, 1000);
    loop_add_flusher(loop, &sender.flusher);
    loop_wake(loop, &sender.flusher);
    change(scene->world, "run_1", 2);
    world_settle(scene->world);
    assert_int_equal(sender.noted, before);
    assert_int_equal(count_deliveries(), before + 1);
    loop_remove_flusher(&sender.flusher);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(turn_visits_as_many_listeners_as_it_has_time_for),
        TEST(listener_that_leaves_does_not_affect_others),
        TEST(visited_listeners_may_leave_after_the_last_visit),
        TEST(any_listener_may_leave_at_any_time),
        TEST(all_listeners_may_leave_and_others_join),
        TEST(another_change_does_not_restart_the_visits),
        TEST(listener_that_catches_up_is_not_delayed_by_changes),
        TEST(feed_with_many_subscriptions_is_visited_once),
        TEST(feed_that_waits_for_its_interval_is_visited_once),
        TEST(delivery_time_includes_frames_sent_at_the_end_of_the_turn),
        TEST(listener_of_several_topics_gets_a_change_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
