/* While a follower reads slowly, the leader omits changes of environments that flood, and sends
 * those of others. */
#include "tests/support/world/unit.h"

#include <string.h>

#include "tests/support/world/replication_scene.h"

enum { FLOOD = 50, OTHER = 70, ALLOWANCE = 100 * 1000, LONG = 4000, SECOND_MS = 1000 };

static uint64_t seqs[100]; /* of the environments of a test */

/* A change of the environment, whose run has metadata of that many bytes. */
static void apply(struct replication_scene *scene, uint32_t env, size_t size)
{
    struct bytes *metadata = bytes_create_empty(size);
    memset(metadata->data, 'm', size);
    struct change change = { .kind = CHANGE_RUN, .env = env, .seq = ++seqs[env] };
    change.run = (struct run){ .metadata = metadata, .rev = seqs[env] };
    snprintf(change.run.id, sizeof(change.run.id), "run_%u", env);
    source_apply(&scene->source, NULL, &change);
    bytes_unref(metadata);
}

static void apply_many(struct replication_scene *scene, uint32_t env, int count)
{
    for (int i = 0; i < count; i++)
        apply(scene, env, LONG);
}

/* Returns how many changes of the environment were sent since the last call for any. */
static int sent(const struct replication_scene *scene, uint32_t env)
{
    int count = 0;
    list_each (link, &scene->to_follower) {
        const struct repl_frame *frame =
            &container_of(link, struct sent_frame, link)->frame;
        count += frame->kind == REPL_CHANGE && frame->run.env == env;
    }
    return count;
}

static void next_second(struct replication_scene *scene)
{
    scene_drop_all(scene);
    world_pass(scene->world, SECOND_MS);
    scene_drop_all(scene);
}

static int open_scene(void **state)
{
    struct replication_scene *scene;
    memset(seqs, 0, sizeof(seqs));
    open_replication_scene(state);
    scene = *state;
    scene_connect(scene);
    scene->is_slow = true;
    next_second(scene);
    return 0;
}

static void environment_that_floods_is_omitted_until_the_next_second(void **state)
{
    struct replication_scene *scene = *state;
    scene->allowance = ALLOWANCE;
    apply_many(scene, FLOOD, 100);
    assert_in_range(sent(scene, FLOOD), ALLOWANCE / LONG - 5, ALLOWANCE / LONG);
    scene_drop_all(scene);
    scene->allowance = SIZE_MAX;
    apply_many(scene, FLOOD, 100);
    assert_int_equal(sent(scene, FLOOD), 0);
    next_second(scene);
    apply_many(scene, FLOOD, 100);
    assert_int_equal(sent(scene, FLOOD), 100);
}

static void others_are_sent(void **state)
{
    struct replication_scene *scene = *state;
    scene->allowance = ALLOWANCE;
    for (int second = 0; second < 3; second++) {
        apply_many(scene, FLOOD, 100);
        apply_many(scene, OTHER, 5);
        assert_int_equal(sent(scene, OTHER), 5);
        assert_in_range(sent(scene, FLOOD), 1, ALLOWANCE / LONG);
        next_second(scene);
    }
}

static void environments_that_flood_share_the_allowance(void **state)
{
    struct replication_scene *scene = *state;
    enum { COUNT = 4 };
    scene->allowance = ALLOWANCE;
    for (int second = 0; second < 3; second++) {
        int all = 0;
        for (uint32_t env = FLOOD; env < FLOOD + COUNT; env++) {
            apply_many(scene, env, 100);
            all += sent(scene, env);
            assert_in_range(sent(scene, env), 1, ALLOWANCE / LONG);
        }
        if (second)
            assert_in_range(all * LONG, ALLOWANCE / 2, ALLOWANCE);
        next_second(scene);
    }
    next_second(scene);
    apply_many(scene, FLOOD, 100); /* the others are quiet again */
    assert_in_range(sent(scene, FLOOD), ALLOWANCE / LONG - 5, ALLOWANCE / LONG);
}

/* None of them sends more than the allowance. */
static void many_environments_that_send_too_much_together_are_omitted(void **state)
{
    struct replication_scene *scene = *state;
    enum { COUNT = 20, EACH = ALLOWANCE / LONG - 5, FIRST = 1 };
    scene->allowance = ALLOWANCE;
    for (int second = 0; second < 3; second++) {
        int all = 0;
        for (int i = 0; i < EACH; i++) {
            for (uint32_t env = FIRST; env < FIRST + COUNT; env++)
                apply(scene, env, LONG);
        }
        for (uint32_t env = FIRST; env < FIRST + COUNT; env++) {
            assert_in_range(sent(scene, env), 1, EACH);
            all += sent(scene, env);
        }
        assert_in_range(all * LONG, ALLOWANCE / 2, 3 * ALLOWANCE);
        apply(scene, OTHER, LONG);
        assert_int_equal(sent(scene, OTHER), 1);
        next_second(scene);
    }
}

static void short_change_is_sent_each_second(void **state)
{
    struct replication_scene *scene = *state;
    scene->allowance = 0;
    for (int second = 0; second < 3; second++) {
        apply_many(scene, OTHER, 10);
        assert_int_equal(sent(scene, OTHER), 1);
        apply(scene, FLOOD, SOURCE_LITTLE + 1);
        assert_int_equal(sent(scene, FLOOD), 0);
        next_second(scene);
    }
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(environment_that_floods_is_omitted_until_the_next_second),
        TEST(others_are_sent),
        TEST(environments_that_flood_share_the_allowance),
        TEST(many_environments_that_send_too_much_together_are_omitted),
        TEST(short_change_is_sent_each_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
