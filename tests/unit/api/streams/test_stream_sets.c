/* Streams of several environments share the memory budgets of their project and of the
 * gateway, where preview branches of a project count as one environment. When an
 * environment is removed, its streams leave memory over several turns. */
#include "tests/support/world/unit.h"

#include "api/request/quotas.h"
#include "api/streams/stream_sets.h"
#include "base/loop.h"

enum {
    BUDGET = 1 << 20,
    FULL = 2000,
    CHUNK = 400,
    LONG_CHUNK = 200 * 1000,
    PROJECTS = 3,
    BRANCHES = 11,
    ENVIRONMENTS = 40,
};

static struct {
    struct loop *loop;
    struct streams *streams;
    struct quotas quotas;
    struct project project; /* the project of the environments below 4 */
    struct project others[PROJECTS];
    struct account accounts[ENVIRONMENTS];
    struct environment envs[ENVIRONMENTS]; /* only their numbers are used */
    char text[LONG_CHUNK];
} scene;

static void add(int env, struct project *project, enum environment_type type)
{
    const struct api_options options = { .stream_memory = BUDGET };
    scene.envs[env] = (struct environment){ .number = (uint32_t)env };
    scene.accounts[env] = (struct account){ .project = project, .type = type };
    quotas_put_inside(&scene.quotas, &scene.envs[env], &scene.accounts[env], &options);
}

static int open_scene(void **state)
{
    (void)state;
    scene.loop = loop_create(NULL);
    quotas_init(&scene.quotas);
    scene.streams = streams_create(scene.loop, &scene.quotas, BUDGET, BUDGET);
    scene.project = (struct project){ 0 };
    memset(scene.text, '1', sizeof(scene.text));
    memset(scene.others, 0, sizeof(scene.others));
    for (int i = 0; i < 4; i++)
        add(i, &scene.project, ENVIRONMENT_PROD);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    streams_destroy(scene.streams);
    quotas_finish(&scene.quotas);
    loop_destroy(scene.loop);
    return 0;
}

static size_t bytes_of(int env)
{
    return streams_of(scene.streams, &scene.envs[env])->bytes;
}

static void write_chunks(int env, const char *key, int count, size_t len)
{
    struct stream_set *set = streams_of(scene.streams, &scene.envs[env]);
    struct stream *stream = stream_use(set, STREAM_OUTPUT, SLICE("run_1"), slice_of(key));
    for (int i = 0; i < count; i++)
        streams_append(scene.streams, set, stream, STREAM_OUTPUT,
                       (struct slice){ scene.text, len });
    stream_release(set, stream);
}

/* Each keeps its newest thousand chunks, as many as fit into the budget. */
static void fill(int env)
{
    write_chunks(env, "a", FULL, CHUNK);
    write_chunks(env, "b", FULL, CHUNK);
}

static void largest_environment_is_trimmed_for_its_project(void **state)
{
    (void)state;
    fill(1);
    fill(2);
    size_t small = BUDGET / 8, before = bytes_of(1);
    assert_true(scene.project.shared.streams.used <= scene.project.shared.streams.limit);
    for (int i = 0; i < 10; i++)
        write_chunks(3, "long", 1, LONG_CHUNK);
    assert_true(scene.project.shared.streams.used <= scene.project.shared.streams.limit);
    assert_true(bytes_of(3) > BUDGET / 2);
    assert_true(bytes_of(1) < before);
    assert_true(bytes_of(1) > bytes_of(2) - small && bytes_of(1) < bytes_of(2) + small);
}

/* Two projects fill the gateway with branches of which each has little. */
static void project_keeps_its_streams_however_many_branches_others_have(void **state)
{
    int victim = 4, branch = 5;
    (void)state;
    add(victim, &scene.others[0], ENVIRONMENT_PROD);
    for (int i = 0; i < 4; i++)
        write_chunks(victim, "long", 1, LONG_CHUNK);
    size_t before = bytes_of(victim);
    for (int project = 1; project < PROJECTS; project++)
        for (int i = 0; i < BRANCHES; i++, branch++) {
            add(branch, &scene.others[project], ENVIRONMENT_PREVIEW);
            write_chunks(branch, "long", 1, LONG_CHUNK);
            assert_int_equal(bytes_of(victim), before);
        }
    assert_true(scene.quotas.streams.used <= scene.quotas.streams.limit);
    assert_true(scene.quotas.streams.used > scene.quotas.streams.limit - LONG_CHUNK * 2);
}

static void branches_count_as_one_environment_of_their_project(void **state)
{
    int prod = 4;
    (void)state;
    add(prod, &scene.others[0], ENVIRONMENT_PROD);
    for (int i = 0; i < 4; i++)
        write_chunks(prod, "long", 1, LONG_CHUNK);
    size_t before = bytes_of(prod);
    for (int i = 0; i < BRANCHES; i++) {
        add(5 + i, &scene.others[0], ENVIRONMENT_PREVIEW);
        write_chunks(5 + i, "long", 1, LONG_CHUNK);
        assert_int_equal(bytes_of(prod), before);
    }
    const struct shared_quotas *branches = &scene.others[0].branches;
    assert_int_equal(scene.others[0].shared.streams.used, before + branches->streams.used);
    assert_true(branches->streams.used > BUDGET);
}

static void streams_of_an_environment_are_freed_over_several_turns(void **state)
{
    int turns = 0;
    size_t before;
    (void)state;
    fill(1);
    fill(2);
    before = bytes_of(2);
    loop_set_budget(scene.loop, 3);
    for (bool all = false; !all; turns++) {
        loop_turn(scene.loop, 0);
        struct timeslice timeslice = loop_timeslice(scene.loop);
        all = streams_forget(scene.streams, &scene.envs[1], &timeslice);
    }
    assert_true(turns > 5);
    assert_int_equal(quotas_of(&scene.quotas, &scene.envs[1])->streams.used, 0);
    assert_int_equal(scene.project.shared.streams.used, before);
    assert_int_equal(bytes_of(2), before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(largest_environment_is_trimmed_for_its_project),
        TEST(project_keeps_its_streams_however_many_branches_others_have),
        TEST(branches_count_as_one_environment_of_their_project),
        TEST(streams_of_an_environment_are_freed_over_several_turns),
    };
    return cmocka_run_group_tests_name("stream sets", tests, NULL, NULL);
}
