/* Memory that is compared with the database while it decides. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "core/replication/comparison.h"
#include "tests/support/world/reader.h"

struct scene {
    struct world *world;
    struct comparison comparison;
    unsigned differences;
    int64_t equals; /* of the metric, before */
};

static struct environment *next(void *owner, uint32_t *at)
{
    return (*at)++ == 0 ? ((struct scene *)owner)->world->env : NULL;
}

static void on_difference(void *owner)
{
    ((struct scene *)owner)->differences++;
}

static int open_scene(void **state)
{
    struct scene *scene = *state = mem_new(struct scene);
    struct comparison_options options = { next, on_difference, scene };
    scene->world = world_create(NULL);
    scene->equals = metrics[M_MEMORY_EQUAL];
    comparison_init(&scene->comparison, scene->world->loop, scene->world->store, &options);
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    comparison_stop(&scene->comparison);
    while (!comparison_is_idle(&scene->comparison))
        loop_turn(scene->world->loop, 1);
    world_destroy(scene->world);
    free(scene);
    return 0;
}

static void compare(struct scene *scene)
{
    comparison_begin(&scene->comparison);
    world_pass(scene->world, 100);
}

static void assert_equal(const struct scene *scene, uint64_t runs)
{
    assert_int_equal(scene->differences, 0);
    assert_int_equal(metrics[M_MEMORY_EQUAL], scene->equals + 1);
    assert_int_equal(scene->comparison.runs, runs);
    assert_int_equal(scene->world->env->holders, 0);
}

static void assert_different(const struct scene *scene)
{
    assert_int_equal(scene->differences, 1);
    assert_int_equal(metrics[M_MEMORY_EQUAL], scene->equals);
    assert_int_equal(scene->world->env->holders, 0);
}

static void equal_memory_is_compared_to_its_end(void **state)
{
    struct scene *scene = *state;
    create_many(scene->world, 999, "a");
    for (int i = 1; i <= 300; i += 3) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03d", i);
        finish_run(scene->world, id, 10);
    }
    change(scene->world, "run_999", 2);
    compare(scene);
    assert_equal(scene, 899);
}

/* Runs change, end and begin between any two steps. */
static void runs_that_change_meanwhile_are_equal(void **state)
{
    struct scene *scene = *state;
    struct world *world = scene->world;
    create_many(world, 600, "a");
    loop_set_budget(world->loop, 0);
    comparison_begin(&scene->comparison);
    for (unsigned i = 1; metrics[M_MEMORY_EQUAL] == scene->equals && i < 400; i++) {
        char id[16];
        loop_turn(world->loop, 0);
        snprintf(id, sizeof(id), "run_%03u", 601 - i);
        if (i % 2)
            finish_run(world, id, 10);
        else
            change(world, id, 2);
        snprintf(id, sizeof(id), "run_new_%u", i);
        create(world, id, "a");
    }
    loop_set_budget(world->loop, 1000);
    world_pass(world, 100);
    assert_int_equal(scene->differences, 0);
    assert_int_equal(metrics[M_MEMORY_EQUAL], scene->equals + 1);
}

static void run_that_memory_lacks_is_a_difference(void **state)
{
    struct scene *scene = *state;
    struct world *world = scene->world;
    create_many(world, 5, "a");
    while (environment_clear(world->env))
        ;
    environment_begin_at(world->env, 5);
    world->env->cold = 0;
    compare(scene);
    assert_different(scene);
}

static void run_that_the_database_lacks_is_a_difference(void **state)
{
    struct scene *scene = *state;
    struct world *world = scene->world;
    struct run ghost;
    create_many(world, 5, "a");
    finish_run(world, "run_003", 10);
    run_copy(&ghost, &environment_find(world->env, SLICE("run_005"))->run);
    snprintf(ghost.id, sizeof(ghost.id), "run_ghost");
    ghost.rev = 3; /* the number that run_003 had */
    environment_load(world->env, &ghost);
    compare(scene);
    assert_different(scene);
}

static void another_state_is_a_difference(void **state)
{
    struct scene *scene = *state;
    create_many(scene->world, 5, "a");
    environment_find(scene->world->env, SLICE("run_002"))->run.version++;
    compare(scene);
    assert_different(scene);
    environment_find(scene->world->env, SLICE("run_002"))->run.version--;
}

static void stopped_comparison_reports_nothing(void **state)
{
    struct scene *scene = *state;
    create_many(scene->world, 5, "a");
    environment_find(scene->world->env, SLICE("run_002"))->run.version++;
    comparison_begin(&scene->comparison);
    assert_false(comparison_is_idle(&scene->comparison));
    comparison_stop(&scene->comparison);
    world_pass(scene->world, 100);
    assert_true(comparison_is_idle(&scene->comparison));
    assert_int_equal(scene->differences, 0);
    assert_int_equal(scene->world->env->holders, 0);
    environment_find(scene->world->env, SLICE("run_002"))->run.version--;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(equal_memory_is_compared_to_its_end),
        TEST(runs_that_change_meanwhile_are_equal),
        TEST(run_that_memory_lacks_is_a_difference),
        TEST(run_that_the_database_lacks_is_a_difference),
        TEST(another_state_is_a_difference),
        TEST(stopped_comparison_reports_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
