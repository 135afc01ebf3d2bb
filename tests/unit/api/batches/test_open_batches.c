/* Batches whose items are still arriving, found by environment and id. They are dropped
 * when they are old or their memory is needed, however many there are. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "api/batches/open_batches.h"
#include "api/request/quotas.h"
#include "base/mem.h"
#include "core/live/environment.h"

enum { KB = 1000, LIMIT = 1000 * KB, MINUTE = 60 * 1000 };

static struct {
    struct loop *loop;
    struct open_batches *open;
    struct quotas quotas;
    struct environment envs[3]; /* only their numbers are used */
    struct project projects[3]; /* one per environment */
    struct account accounts[3];
} scene;

static int open_scene(void **state)
{
    (void)state;
    scene.loop = loop_create(NULL);
    const struct api_options options = { .batch_memory = LIMIT + KB /* and for a batch */ };
    quotas_init(&scene.quotas);
    scene.open = open_batches_create(scene.loop, &scene.quotas);
    for (uint32_t i = 0; i < 3; i++) {
        scene.envs[i] = (struct environment){ .number = i };
        scene.projects[i] = (struct project){ 0 };
        scene.accounts[i] =
            (struct account){ .project = &scene.projects[i], .type = ENVIRONMENT_PROD };
        quotas_put_inside(&scene.quotas, &scene.envs[i], &scene.accounts[i], &options);
    }
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    open_batches_destroy(scene.open);
    quotas_finish(&scene.quotas);
    loop_destroy(scene.loop);
    return 0;
}

/* Gets a batch; a new one gets one item of that many bytes. */
static struct open_batch *get(uint32_t env, const char *id, size_t bytes)
{
    struct open_batch *batch = open_batches_get(scene.open, &scene.envs[env], id, 2);
    if (bytes && !batch->items[0]) {
        assert_true(open_batches_take(scene.open, &scene.envs[env], bytes * KB));
        batch->items[0] = mem_new(struct batch_item);
        batch->items[0]->cost = bytes * KB;
    }
    return batch;
}

static bool is_open(uint32_t env, const char *id)
{
    return get(env, id, 0)->items[0] != NULL;
}

static void open_batch_is_found_by_environment_and_id(void **state)
{
    (void)state;
    struct open_batch *one = get(1, "batch_a", 10), *two = get(2, "batch_a", 10);
    assert_ptr_not_equal(one, two);
    assert_ptr_equal(get(1, "batch_a", 0), one);
    assert_ptr_equal(get(2, "batch_a", 0), two);
    assert_false(is_open(1, "batch_b"));
}

static void oldest_batch_of_the_same_environment_is_dropped_first(void **state)
{
    (void)state;
    get(2, "batch_other", 900);
    get(1, "batch_a", 400)->sealing = true;
    get(1, "batch_b", 300);
    get(1, "batch_c", 300);
    assert_true(open_batches_take(scene.open, &scene.envs[1], 200 * KB));
    assert_true(is_open(1, "batch_a")); /* its items are being committed */
    assert_false(is_open(1, "batch_b"));
    assert_true(is_open(1, "batch_c"));
    assert_true(is_open(2, "batch_other"));
    assert_false(open_batches_take(scene.open, &scene.envs[1], 700 * KB));
    open_batches_give(scene.open, &scene.envs[1], 200 * KB);
}

static void branches_leave_half_of_their_project_to_other_environments(void **state)
{
    (void)state;
    const struct api_options options = { .batch_memory = LIMIT + KB };
    for (int i = 0; i < 3; i++) {
        scene.accounts[i].project = &scene.projects[0];
        scene.accounts[i].type = i ? ENVIRONMENT_PREVIEW : ENVIRONMENT_PROD;
        quotas_put_inside(&scene.quotas, &scene.envs[i], &scene.accounts[i], &options);
    }
    get(1, "batch_a", 900)->sealing = true;
    assert_false(open_batches_take(scene.open, &scene.envs[2], 200 * KB));
    get(0, "batch_a", 900);
    assert_true(is_open(0, "batch_a"));
}

/* Each call drops two and adds at most one, so that they become fewer. */
static void old_batches_are_dropped_two_at_a_time(void **state)
{
    (void)state;
    char id[ID_MAX];
    for (int i = 0; i < 6; i++) {
        snprintf(id, sizeof(id), "batch_%d", i);
        get(1, id, 10);
    }
    loop_turn(scene.loop, 11 * MINUTE);
    get(1, "batch_new", 10);
    assert_true(is_open(1, "batch_5")); /* used after four were dropped */
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof(id), "batch_%d", i);
        assert_false(is_open(1, id));
    }
    assert_true(is_open(1, "batch_new"));
}

/* An archived branch may have many, with hundreds of items each. */
static void batches_of_an_environment_are_dropped_over_several_turns(void **state)
{
    char id[ID_MAX];
    int turns = 0;
    (void)state;
    loop_set_budget(scene.loop, 3);
    get(2, "batch_other", 10);
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof(id), "batch_%d", i);
        get(1, id, 10);
    }
    for (bool all = false; !all; turns++) {
        loop_turn(scene.loop, 0);
        struct timeslice timeslice = loop_timeslice(scene.loop);
        all = open_batches_forget(scene.open, &scene.envs[1], &timeslice);
    }
    assert_int_equal(turns, 5);
    assert_int_equal(quotas_of(&scene.quotas, &scene.envs[1])->batches.used, 0);
    assert_true(is_open(2, "batch_other"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(open_batch_is_found_by_environment_and_id),
        TEST(oldest_batch_of_the_same_environment_is_dropped_first),
        TEST(branches_leave_half_of_their_project_to_other_environments),
        TEST(old_batches_are_dropped_two_at_a_time),
        TEST(batches_of_an_environment_are_dropped_over_several_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
