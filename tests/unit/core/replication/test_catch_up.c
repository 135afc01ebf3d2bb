/* A follower reads environments from the database, in turns. */
#include "tests/support/world/unit.h"

#include <string.h>

#include "core/replication/replica_parts.h"
#include "tests/support/world/replication_scene.h"

enum { PAGE = 1000, READ_MS = 50 };

static struct followed *followed(const struct replication_scene *scene, uint32_t env)
{
    return slots_get(&scene->replica.envs, env);
}

static void create_some(struct replication_scene *scene, int count)
{
    char id[16];
    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof(id), "run_x%d", i);
        create(scene->world, id, NULL);
    }
    world_settle(scene->world);
}

/* The follower comes back after that many runs were created. */
static void miss(struct replication_scene *scene, int count)
{
    scene_connect(scene);
    scene_disconnect(scene);
    create_some(scene, count);
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    scene_connect(scene);
}

static void pass_until_shown(struct replication_scene *scene, uint32_t env)
{
    for (int i = 0; i < 100 && followed(scene, env)->is_alone; i++)
        scene_pass(scene, 1);
    assert_false(followed(scene, env)->is_alone);
}

/* An environment of which memory was not read completely comes to the leader. */
static void receive_partial(struct replication_scene *scene)
{
    struct repl_frame frame = { .kind = REPL_POSITIONS, .positions.count = 1 };
    replica_followed_of(&scene->replica, OTHER_ENV)->item.is_loaded = true;
    followed(scene, OTHER_ENV)->item.is_partial = true;
    frame.positions.list = mem_new(struct repl_position);
    frame.positions.list[0] = (struct repl_position){ OTHER_ENV, 0 };
    replica_receive(&scene->replica, &frame, 10);
}

static void others_are_shown_before_an_environment_that_lacks_changes(void **state)
{
    struct replication_scene *scene = *state;
    miss(scene, 2);
    assert_int_equal(scene->replica.state, REPLICA_FOLLOWING);
    assert_true(is_trusted(scene));
    assert_true(environment_is_late(scene->copy));
    finish_run(scene->world, "run_x0", PACKET);
    pass_until_shown(scene, WORLD_ENV);
    assert_false(environment_is_late(scene->copy));
    assert_same_memory(scene);
    assert_same_run(scene, "run_x1");
}

/* Memory is not complete until every environment is loaded. */
static void others_are_shown_before_an_environment_that_is_loaded(void **state)
{
    struct replication_scene *scene = *state;
    create_some(scene, 3 * PAGE);
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    scene_connect(scene);
    receive_partial(scene);
    assert_true(is_trusted(scene));
    pass_until_shown(scene, OTHER_ENV);
    assert_true(followed(scene, WORLD_ENV)->is_catching);
    assert_true(environment_is_late(scene->copy));
    assert_false(replica_is_complete(&scene->replica));
    change(scene->world, "run_x0", 2);
    pass_until_shown(scene, WORLD_ENV);
    assert_false(environment_is_late(scene->copy));
    assert_true(replica_is_complete(&scene->replica));
    assert_same_memory(scene);
    assert_same_run(scene, "run_x0");
    assert_int_equal(scene->copy->unfinished, 3 * PAGE);
}

static void connection_may_end_while_an_environment_is_loaded(void **state)
{
    struct replication_scene *scene = *state;
    create_some(scene, 3 * PAGE);
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    scene_connect(scene);
    scene_disconnect(scene);
    assert_false(replica_is_complete(&scene->replica));
    while (!replica_is_idle(&scene->replica))
        scene_pass(scene, READ_MS);
    scene_connect(scene);
    pass_until_shown(scene, WORLD_ENV);
    assert_true(replica_is_complete(&scene->replica));
    assert_same_memory(scene);
}

static void environment_with_few_changes_does_not_wait_for_one_with_many(void **state)
{
    struct replication_scene *scene = *state;
    miss(scene, 3 * PAGE);
    receive_partial(scene);
    assert_true(environment_is_late(scene->other));
    pass_until_shown(scene, OTHER_ENV);
    assert_true(followed(scene, WORLD_ENV)->is_catching);
    assert_true(scene->copy->applied < 3 * PAGE);
    pass_until_shown(scene, WORLD_ENV);
    assert_same_memory(scene);
    assert_int_equal(scene->copy->unfinished, 3 * PAGE);
}

static void unfinished_runs_are_read_in_turns(void **state)
{
    struct replication_scene *scene = *state;
    create_some(scene, 3 * PAGE);
    scene_connect(scene);
    source_drop(&scene->source, WORLD_ENV);
    scene_pass(scene, 1);
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    source_add(&scene->source, scene->world->env);
    scene_deliver(scene);
    receive_partial(scene);
    pass_until_shown(scene, OTHER_ENV);
    assert_false(followed(scene, WORLD_ENV)->item.is_loaded);
    pass_until_shown(scene, WORLD_ENV);
    assert_same_memory(scene);
    assert_int_equal(scene->copy->unfinished, 3 * PAGE);
}

/* ---- a page that cannot be read ---- */

/* Fails the second page with changes. */
static struct {
    const struct store_ops *real;
    struct store_ops ops;
    struct store_read *failing;
    struct deferred ending;
    struct loop *loop;
    int pages;
} broken;

static void fail_page(struct deferred *ending)
{
    (void)ending;
    broken.failing->done(broken.failing, STORE_FAILED);
}

static void read_or_fail(struct store *store, struct store_read *read)
{
    bool is_page = read->kind == READ_WALK &&
                   container_of(read, struct store_walk, read)->limit == PAGE;
    if (!is_page || ++broken.pages != 2) {
        broken.real->read(store, read);
        return;
    }
    broken.failing = read;
    loop_defer(broken.loop, &broken.ending);
}

static void fail_second_page(struct replication_scene *scene)
{
    struct store *store = scene->world->store;
    broken.real = store->ops;
    broken.ops = *store->ops;
    broken.ops.read = read_or_fail;
    broken.loop = scene->world->loop;
    broken.ending.fn = fail_page;
    list_init(&broken.ending.link);
    store->ops = &broken.ops;
}

/* The page that failed is read again, but the one before it lacks the run, too. */
static void run_that_retention_removed_is_noticed_although_a_page_failed(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    scene_disconnect(scene);
    finish_run(scene->world, "run_1", PACKET);
    scene_purge(scene);
    create_some(scene, 2 * PAGE);
    fail_second_page(scene);
    scene_connect(scene);
    assert_string_equal(scene->ended, "cannot catch up from the database");
    assert_true(scene->copy->applied > PAGE);
    assert_non_null(environment_find(scene->copy, SLICE("run_1")));
    scene_connect(scene);
    pass_until_shown(scene, WORLD_ENV);
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    assert_same_memory(scene);
    scene->world->store->ops = broken.real;
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_replication_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(others_are_shown_before_an_environment_that_lacks_changes),
        TEST(others_are_shown_before_an_environment_that_is_loaded),
        TEST(connection_may_end_while_an_environment_is_loaded),
        TEST(environment_with_few_changes_does_not_wait_for_one_with_many),
        TEST(unfinished_runs_are_read_in_turns),
        TEST(run_that_retention_removed_is_noticed_although_a_page_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
