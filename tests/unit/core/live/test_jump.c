/* Memory that takes the newest states from the store, and the sum of its unfinished runs. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "core/changes/run_sum.h"
#include "tests/support/world/reader.h"

struct scene {
    struct world *world;
    struct environment *copy; /* another memory of the same environment */
    struct store_walk walk;
    bool done;
};

static int open_scene(void **state)
{
    struct scene *scene = mem_new(struct scene);
    struct world *world = scene->world = world_create(NULL);
    scene->copy = environment_create(world->loop, world->store, WORLD_ENV, "env_copy",
                                     false, 64 << 20, 100);
    *state = scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    environment_destroy(scene->copy);
    world_destroy(scene->world);
    free(scene);
    return 0;
}

static void on_read(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct scene, walk.read)->done = true;
}

static void read_runs(struct scene *scene, enum walk_kind kind, uint64_t after)
{
    scene->done = false;
    scene->walk = (struct store_walk){ .read = { READ_WALK, WORLD_ENV, on_read },
                                       .kind = kind,
                                       .after = after,
                                       .up_to = INT64_MAX,
                                       .limit = UINT32_MAX,
                                       .byte_limit = SIZE_MAX };
    scene->world->store->ops->read(scene->world->store, &scene->walk.read);
    while (!scene->done)
        loop_turn(scene->world->loop, 1);
}

static void jump(struct scene *scene)
{
    read_runs(scene, WALK_ALL, scene->copy->applied);
    for (size_t i = 0; i < scene->walk.count; i++)
        environment_jump(scene->copy, &scene->walk.runs[i]);
    free(scene->walk.runs);
    environment_land(scene->copy, scene->walk.seq);
}

static void assert_same(const struct scene *scene)
{
    const struct environment *env = scene->world->env, *copy = scene->copy;
    assert_int_equal(copy->applied, env->applied);
    assert_int_equal(copy->unfinished, env->unfinished);
    assert_true(copy->sum == env->sum);
}

static void memory_after_a_jump_has_the_newest_states(void **state)
{
    struct scene *scene = *state;
    struct world *world = scene->world;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    jump(scene);
    assert_same(scene);
    change(world, "run_1", 2);
    change(world, "run_1", 3);
    finish_run(world, "run_2", 10);
    create(world, "run_3", NULL);
    change(world, "run_1", 4);
    jump(scene);
    assert_same(scene);
    assert_int_equal(environment_find(scene->copy, SLICE("run_1"))->run.version, 4);
    assert_int_equal(scene->copy->unfinished, 2);
    assert_int_equal(scene->copy->runs.count, 3);
    assert_int_equal(scene->copy->recent.dropped, scene->copy->applied);
    assert_null(scene->copy->history.before);
}

static void order_after_a_jump_is_that_of_the_store(void **state)
{
    struct scene *scene = *state;
    struct world *world = scene->world;
    create(world, "run_1", "a");
    create(world, "run_2", "a");
    jump(scene);
    change(world, "run_1", 2);
    jump(scene);
    const struct order *all = &scene->copy->hub.all.order;
    assert_string_equal(order_place(all, all->count - 1).run->run.id, "run_1");
    assert_int_equal(all->runs, 2);
}

static void jump_without_changed_runs_moves_the_position(void **state)
{
    struct scene *scene = *state;
    create(scene->world, "run_1", NULL);
    jump(scene);
    environment_land(scene->copy, scene->copy->applied + 7);
    assert_int_equal(scene->copy->applied, scene->world->env->applied + 7);
}

static void cleared_memory_begins_with_the_unfinished_runs(void **state)
{
    struct scene *scene = *state;
    struct world *world = scene->world;
    create_many(world, 100, "a");
    jump(scene);
    finish_run(world, "run_001", 10);
    loop_set_budget(world->loop, 0);
    while (environment_clear(scene->copy))
        loop_turn(world->loop, 0);
    loop_set_budget(world->loop, 1000);
    assert_int_equal(scene->copy->runs.count, 0);
    assert_int_equal(scene->copy->sum, 0);
    read_runs(scene, WALK_UNFINISHED, 0);
    for (size_t i = 0; i < scene->walk.count; i++)
        environment_load(scene->copy, &scene->walk.runs[i]);
    free(scene->walk.runs);
    environment_begin_at(scene->copy, scene->walk.seq);
    assert_same(scene);
    assert_int_equal(scene->copy->unfinished, 99);
    assert_int_equal(scene->copy->cold, scene->copy->applied);
}

/* ---- sums ---- */

static uint64_t sum_of(const char *id, uint64_t rev)
{
    struct run run = { .rev = rev };
    memset(run.id, 'x', sizeof(run.id)); /* what follows the terminator is not the id */
    snprintf(run.id, sizeof(run.id), "%s", id);
    return run_sum(&run);
}

static void sum_depends_on_the_id_and_the_rev_alone(void **state)
{
    (void)state;
    struct run run = { .id = "run_cmf1x2abc0001xyz89abc", .rev = 7, .version = 3 };
    assert_true(run_sum(&run) == sum_of("run_cmf1x2abc0001xyz89abc", 7));
    assert_true(run_sum(&run) != sum_of("run_cmf1x2abc0001xyz89abc", 8));
    assert_true(run_sum(&run) != sum_of("run_cmf1x2abc0001xyz89abd", 7));
    assert_true(sum_of("run_1", 1) + sum_of("run_2", 2) !=
                sum_of("run_1", 2) + sum_of("run_2", 1));
}

static void sum_is_of_unfinished_runs(void **state)
{
    struct scene *scene = *state;
    struct environment *env = scene->world->env;
    create(scene->world, "run_1", NULL);
    uint64_t first = env->sum;
    assert_true(first == run_sum(&environment_find(env, SLICE("run_1"))->run));
    change(scene->world, "run_1", 2);
    assert_true(env->sum != first);
    finish_run(scene->world, "run_1", 10);
    assert_int_equal(env->sum, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_after_a_jump_has_the_newest_states,
                                        open_scene, close_scene),
        cmocka_unit_test_setup_teardown(order_after_a_jump_is_that_of_the_store, open_scene,
                                        close_scene),
        cmocka_unit_test_setup_teardown(jump_without_changed_runs_moves_the_position,
                                        open_scene, close_scene),
        cmocka_unit_test_setup_teardown(cleared_memory_begins_with_the_unfinished_runs,
                                        open_scene, close_scene),
        cmocka_unit_test(sum_depends_on_the_id_and_the_rev_alone),
        cmocka_unit_test_setup_teardown(sum_is_of_unfinished_runs, open_scene, close_scene),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
