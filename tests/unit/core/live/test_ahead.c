/* A run that changes all the time is seen, however long the walk of the reader. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "tests/support/world/reader.h"

enum {
    DRAWS = 24,
    FRAMES = 160, /* read in each */
    WINDOW = 16,  /* every busy run is in one of this many frames */
    RUNS_MAX = 300,
    LARGE = 40 * 1024,
};

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

/* ---- what is drawn ---- */

static uint64_t seed;

static unsigned draw(unsigned from, unsigned to)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return from + (unsigned)(seed >> 33) % (to - from + 1);
}

struct scene {
    struct world *world;
    struct reader *reader;
    /* run_001 to run_<runs>; the first `hot` ones change all the time */
    unsigned runs;
    unsigned hot;                    /* how many change all the time */
    size_t size;                     /* bytes of a run's metadata */
    unsigned changes;                /* most changes of other runs between two visits */
    unsigned speed;                  /* frames a visit */
    uint32_t versions[RUNS_MAX + 1]; /* the reader's */
    unsigned seen_at[RUNS_MAX + 1];  /* frame in which the run came last */
    unsigned frames, gaps;
};

static void change_run(struct scene *scene, unsigned number)
{
    static char metadata[LARGE + 16];
    char id[16];
    snprintf(id, sizeof(id), "run_%03u", number);
    snprintf(metadata, sizeof(metadata), "{\"x\":\"%0*u\"}", (int)scene->size, draw(0, 9));
    set_metadata(scene->world, id, metadata);
}

static void draw_scene(struct scene *scene, struct world *world, unsigned number)
{
    static const size_t sizes[] = { 100, 2000, LARGE };
    seed = number;
    *scene = (struct scene){ .world = world, .size = sizes[number % 3] };
    scene->runs = draw(40, RUNS_MAX);
    scene->hot = draw(1, 4);
    scene->changes = draw(1, scene->size == LARGE ? 6 : 40);
    scene->speed = scene->hot > 1 ? 1 : draw(1, 3);
}

/* Changes each busy run at least once, and some of the others. */
static void go_on(struct scene *scene)
{
    for (unsigned i = 1; i <= scene->hot; i++)
        for (unsigned times = draw(1, 3); times; times--)
            change_run(scene, i);
    for (unsigned times = draw(0, scene->changes); times; times--)
        change_run(scene, draw(scene->hot + 1, scene->runs));
    for (unsigned i = 1; i <= scene->hot; i++)
        change_run(scene, i);
}

/* ---- what is read ---- */

static void read_row(struct scene *scene, struct slice row)
{
    unsigned number, version;
    assert_int_equal(sscanf(row.ptr, "[\"run_%u\",%u", &number, &version), 2);
    assert_true(version > scene->versions[number]); /* nothing comes twice or goes back */
    if (scene->versions[number])
        scene->gaps += version - scene->versions[number] - 1;
    scene->versions[number] = version;
    scene->seen_at[number] = scene->frames;
}

static void read_frames(struct scene *scene)
{
    struct reader *reader = scene->reader;
    for (size_t i = 0; i < reader->count; i++) {
        struct slice row;
        struct scan_members rows =
            scan_members(scan_member(bytes_slice(reader->frames[i]), "rows"));
        scene->frames++;
        while (scan_next_element(&rows, &row))
            read_row(scene, row);
        for (unsigned hot = 1; hot <= scene->hot; hot++)
            if (scene->frames - scene->seen_at[hot] >= WINDOW)
                fail_msg("run %u of %u was not in %d frames, size %zu, speed %u", hot,
                         scene->hot, WINDOW, scene->size, scene->speed);
    }
    forget_frames(reader);
}

static void read_on(struct scene *scene)
{
    while (scene->frames < FRAMES) {
        go_on(scene);
        drain_some(scene->reader, scene->speed);
        world_pass(scene->world, 1);
        read_frames(scene);
    }
}

/* Makes the reader walk from where it is, and not take from the ring. */
static void begin_to_walk(struct scene *scene)
{
    feed_set_pace(&scene->reader->feed, 1);
    stall(scene->reader);
    for (unsigned i = 1; i <= scene->runs; i++)
        scene->versions[i] = 1;
    for (unsigned i = 1; i <= scene->runs; i++)
        change_run(scene, i);
}

static void in_new_worlds(void **state, void (*fn)(struct scene *scene))
{
    struct scene *scene = mem_new(struct scene);
    for (int number = 0, draws = cases_to_draw(DRAWS); number < draws; number++) {
        draw_scene(scene, *state, number);
        fn(scene);
        destroy_world(state);
        create_world(state);
    }
    free(scene);
}

/* ---- the lists ---- */

static void walk_one_list(struct scene *scene)
{
    create_many(scene->world, scene->runs, "a");
    scene->reader = subscribe(scene->world, "tag:a");
    begin_to_walk(scene);
    read_on(scene);
    assert_int_equal(metrics[M_CONFLATED], scene->gaps);
}

static void busy_run_is_sent_in_one_of_sixteen_frames(void **state)
{
    in_new_worlds(state, walk_one_list);
}

/* The busy run is in its own list, which is not the longest. */
static void walk_several_lists(struct scene *scene)
{
    create_many(scene->world, scene->runs, "a");
    for (unsigned i = 1; i <= scene->hot; i++) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03u", i);
        add_tag(scene->world, id, "b");
    }
    scene->reader = subscribe(scene->world, "tag:a task:nobody");
    follow(scene->reader, 2, "tag:b", 0, 0);
    world_settle(scene->world);
    follow(scene->reader, 3, "tag:a", 0, 0);
    world_settle(scene->world);
    forget_frames(scene->reader);
    begin_to_walk(scene);
    for (unsigned i = 1; i <= scene->hot; i++)
        scene->versions[i] = 2;
    read_on(scene);
    assert_int_equal(metrics[M_CONFLATED], scene->gaps);
}

static void busy_run_of_a_short_list_is_sent_despite_a_long_list(void **state)
{
    in_new_worlds(state, walk_several_lists);
}

/* Follows a run by its id, along with runs of a tag that it does not have. */
static void walk_along_with_a_run(struct scene *scene)
{
    scene->hot = 1;
    create(scene->world, "run_001", "b");
    for (unsigned i = 2; i <= scene->runs; i++) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03u", i);
        create(scene->world, id, "a");
    }
    scene->reader = subscribe(scene->world, "tag:a");
    follow(scene->reader, 2, "run:run_001", 0, 0);
    world_settle(scene->world);
    forget_frames(scene->reader);
    begin_to_walk(scene);
    read_on(scene);
    assert_int_equal(metrics[M_CONFLATED], scene->gaps);
}

static void run_followed_by_id_is_sent_despite_a_long_tag(void **state)
{
    in_new_worlds(state, walk_along_with_a_run);
}

static void catch_up(struct scene *scene)
{
    create_many(scene->world, scene->runs, "a");
    scene->reader = reader_create(scene->world);
    feed_set_pace(&scene->reader->feed, 1);
    for (unsigned i = 1; i <= scene->runs; i++)
        change_run(scene, i);
    stall(scene->reader);
    follow(scene->reader, 1, "tag:a", 0, 0);
    read_on(scene);
}

static void busy_run_is_sent_while_its_subscription_catches_up(void **state)
{
    in_new_worlds(state, catch_up);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(busy_run_is_sent_in_one_of_sixteen_frames),
        TEST(busy_run_of_a_short_list_is_sent_despite_a_long_list),
        TEST(run_followed_by_id_is_sent_despite_a_long_tag),
        TEST(busy_run_is_sent_while_its_subscription_catches_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
