/* No queue, concurrency key or environment starves, whatever the others trigger and
 * whatever priority they use. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "core/queues/queue.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/seat.h"

/* ---- who is next, written down ---- */

/* A run: queue, key ("": none) and position. Ids are "<queue><n>" in the order of
 * arrival. */
struct arrival {
    const char *queue, *key;
    int64_t position;
    unsigned times; /* 0: once; each 1 ms later than the one before */
};

struct waiting {
    struct queue_item item;
    char id[32], queue[16], key[8];
};

enum { WAITING_MAX = 4000 };

struct scene {
    struct queues queues;
    struct waiting all[WAITING_MAX];
    size_t count;
};

static struct waiting *waiting_of(const struct queue_item *item)
{
    return (struct waiting *)(void *)item; /* its first member */
}

static struct slice id_of(const struct queue_item *item)
{
    return slice_of(waiting_of(item)->id);
}

static struct scene *make_scene(uint32_t limit)
{
    struct scene *scene = test_calloc(1, sizeof(*scene));
    queues_init(&scene->queues, limit, id_of);
    return scene;
}

static void arrive(struct scene *scene, const struct arrival *arrival)
{
    for (unsigned i = 0; i < (arrival->times ? arrival->times : 1); i++) {
        assert_true(scene->count < WAITING_MAX);
        struct waiting *run = &scene->all[scene->count];
        snprintf(run->id, sizeof(run->id), "%s%04zu", arrival->queue, scene->count++);
        snprintf(run->queue, sizeof(run->queue), "%s", arrival->queue);
        snprintf(run->key, sizeof(run->key), "%s", arrival->key);
        queues_wait(&scene->queues, &run->item,
                    SEAT(slice_of(run->queue), slice_of(run->key)), arrival->position + i);
    }
}

/* Begins the next run; NULL if none may. */
static struct waiting *serve(struct scene *scene)
{
    struct queue_item *item = queues_next(&scene->queues, 0);
    struct waiting *run = item ? waiting_of(item) : NULL;
    if (run)
        queues_run(&scene->queues, item, SEAT(slice_of(run->queue), slice_of(run->key)));
    return run;
}

static void finish(struct scene *scene, struct waiting *run)
{
    queues_leave(&scene->queues, &run->item);
}

static void end_scene(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        queues_leave(&scene->queues, &scene->all[i].item);
    queues_finish(&scene->queues);
    test_free(scene);
}

/* Each run ends before the next begins. Shows its queue, or its key. */
static void served(struct scene *scene, char *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct waiting *run = serve(scene);
        out[i] = !run ? '.' : run->key[0] ? run->key[0] : run->queue[0];
        if (run)
            finish(scene, run);
    }
    out[count] = '\0';
}

static void queues_and_keys_take_turns(void **state)
{
    (void)state;
    static const struct {
        const char *what, *expected;
        struct arrival arrivals[4];
    } cases[] = {
        { "one queue is served by age", "aaaa.", { { "a", "", 5, 4 } } },
        { "what came alone is served at once, behind a long queue",
          "abaaaaa",
          { { "a", "", 0, 100 }, { "b", "", 1000, 1 } } },
        { "queues take turns, the oldest head of a round first",
          "abcabcab",
          { { "c", "", 20, 2 }, { "b", "", 10, 9 }, { "a", "", 0, 9 } } },
        { "a priority overtakes its own queue, others only within the round",
          "babababa",
          { { "a", "", 0, 9 }, { "b", "", -1000000000, 9 } } },
        { "the keys of a queue take turns",
          "xyzxyxyxy",
          { { "q", "x", 0, 9 }, { "q", "y", 50, 9 }, { "q", "z", 90, 1 } } },
        { "many keys of one queue count as one queue",
          "xayazaxayaz",
          { { "q", "x", 0, 2 },
            { "q", "y", 1, 3 },
            { "q", "z", 2, 2 },
            { "a", "", 9, 9 } } },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char got[32];
        struct scene *scene = make_scene(10);
        for (size_t j = 0; j < 4 && cases[i].arrivals[j].queue; j++)
            arrive(scene, &cases[i].arrivals[j]);
        served(scene, got, strlen(cases[i].expected));
        if (strcmp(got, cases[i].expected) != 0)
            fail_msg("%s: %s, not %s", cases[i].what, got, cases[i].expected);
        end_scene(scene);
    }
}

/* An environment of four slots that is always full: a long queue, one of limit 1, one that
 * came late, and urgent runs of a hundred other queues all the time. A queue that could not
 * take its turn, because its only slot was taken, waits for the next. */
static void full_environment_serves_every_queue_in_each_round(void **state)
{
    (void)state;
    enum { NEW_QUEUES = 100, OLD_QUEUES = 3, SLOTS = 4, SERVED = 2000 };
    static const char *const old[OLD_QUEUES] = { "flood", "narrow", "late" };
    struct scene *scene = make_scene(SLOTS);
    struct waiting *busy[SLOTS] = { 0 };
    unsigned last[OLD_QUEUES] = { 0 };
    queues_set_limit(&scene->queues, SLICE("narrow"), 1);
    arrive(scene, &(struct arrival){ "flood", "", 0, 1000 });
    arrive(scene, &(struct arrival){ "narrow", "", 500, 300 });
    arrive(scene, &(struct arrival){ "late", "", 100000, 300 });
    for (unsigned i = 0; i < SERVED; i++) {
        char name[16];
        snprintf(name, sizeof(name), "new-%u", i % NEW_QUEUES);
        arrive(scene, &(struct arrival){ name, "", -1000000, 1 });
        struct waiting **slot = &busy[i % SLOTS];
        if (*slot)
            finish(scene, *slot);
        *slot = serve(scene);
        assert_non_null(*slot);
        for (unsigned q = 0; q < OLD_QUEUES; q++) {
            if (!strcmp((*slot)->queue, old[q]))
                last[q] = i;
            else if (i - last[q] > 2 * (NEW_QUEUES + OLD_QUEUES) + SLOTS)
                fail_msg("%s was served %u ago", old[q], i - last[q]);
        }
    }
    end_scene(scene);
}

/* ---- the same through the engine ---- */

static int create_world(void **state)
{
    struct world *world = world_create(&(struct world_options){ .is_prod = true });
    register_worker(world, "20260101.1", "hello,other", 3);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void backlog_of_one_task_does_not_block_others(void **state)
{
    struct world *world = *state;
    char flood[6][ID_MAX];
    for (int i = 0; i < 6; i++) {
        snprintf(flood[i], ID_MAX, "%s", trigger(world, (struct wish){ 0 }).id);
        world_pass(world, 1);
    }
    struct triggered late = trigger(world, (struct wish){ .task = "other" });
    assert_string_equal(dequeue(world), flood[0]);
    assert_string_equal(dequeue(world), late.id);
    for (int i = 1; i < 6; i++)
        assert_string_equal(dequeue(world), flood[i]);
}

static void items_of_a_batch_are_dequeued_in_their_order(void **state)
{
    struct world *world = *state;
    for (int round = 0; round < 8; round++) {
        struct triggering triggering = { 0 };
        struct wish wishes[8] = { { 0 } };
        assert_int_equal(trigger_all(world, &triggering, wishes, 8), OK);
        triggering_wait(world, &triggering);
        for (int i = 0; i < 8; i++)
            assert_string_equal(dequeue(world), triggering.items[i].id);
        triggering_finish(&triggering);
    }
}

static void runs_of_one_millisecond_are_dequeued_in_order_of_arrival(void **state)
{
    struct world *world = *state;
    char ids[12][ID_MAX];
    for (int i = 0; i < 12; i++)
        snprintf(ids[i], ID_MAX, "%s", trigger(world, (struct wish){ 0 }).id);
    for (int i = 0; i < 12; i++)
        assert_string_equal(dequeue(world), ids[i]);
}

static bool answered;

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    (void)dequeue;
    answered = true;
    assert_int_equal(status, OK);
}

/* A worker of two environments: five runs wait in the first, three in the second. */
static void worker_takes_runs_from_its_environments_in_turn(void **state)
{
    struct world *world = *state;
    struct environment *first = world->env;
    struct environment *second = engine_add_environment(world->engine, 2, "env_2", false);
    struct environment *both[] = { first, second };
    char order[9] = "";
    for (int i = 0; i < 5; i++)
        trigger(world, (struct wish){ 0 });
    world->env = second;
    register_worker(world, "20260101.1", "hello", 3);
    for (int i = 0; i < 3; i++)
        trigger(world, (struct wish){ 0 });
    world->env = first;
    for (int i = 0; i < 8; i++) {
        struct dequeue op;
        answered = false;
        assert_int_equal(
            dequeue_begin(world->engine, both, 2, &any_run, &op, 1000, on_dequeued), OK);
        for (int turn = 0; turn < 100 && !answered; turn++)
            loop_turn(world->loop, 0);
        assert_true(answered);
        order[i] = op.command.env == first ? 'a' : 'b';
    }
    assert_string_equal(order, "abababaa");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queues_and_keys_take_turns),
        cmocka_unit_test(full_environment_serves_every_queue_in_each_round),
        TEST(backlog_of_one_task_does_not_block_others),
        TEST(items_of_a_batch_are_dequeued_in_their_order),
        TEST(runs_of_one_millisecond_are_dequeued_in_order_of_arrival),
        TEST(worker_takes_runs_from_its_environments_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
