/* Memory of a follower whose database has another history, as after a failover that has lost
 * changes, or more than its leader. */
#include "tests/support/world/unit.h"

#include "tests/support/world/replication_scene.h"

static void another_epoch_makes_memory_useless(void **state)
{
    struct replication_scene *scene = *state;
    scene->source.options.head.epoch[0] ^= 1;
    scene_connect(scene);
    assert_true(scene->gave_up);
    assert_int_equal(scene->replica.state, REPLICA_OFF);
}

/* The database has lost the last changes, and an earlier lead has begun again. */
static void memory_of_another_history_is_loaded_in_place(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    struct environment *copy = scene->copy;
    uint8_t generation = copy->generation;
    struct run lost;
    run_copy(&lost, &environment_find(copy, SLICE("run_1"))->run);
    snprintf(lost.id, sizeof(lost.id), "run_lost");
    lost.rev = copy->applied + 1;
    environment_put(copy, &lost, lost.rev);
    scene_disconnect(scene);
    scene->source.options.head.term = 1;
    replica_begin_history(&scene->replica);
    assert_false(is_trusted(scene));
    scene_connect(scene);
    assert_true(is_trusted(scene));
    assert_same_memory(scene);
    assert_null(environment_find(copy, SLICE("run_lost")));
    assert_int_equal(copy->generation, generation + 1);
}

/* Its clients have the epoch of the history before. */
static void empty_environment_of_another_history_begins_again(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    uint8_t generation = scene->copy->generation;
    scene_disconnect(scene);
    replica_begin_history(&scene->replica);
    scene_connect(scene);
    assert_int_equal(scene->copy->generation, generation + 1);
}

static void on_written(struct document_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
}

/* The leader waits for the response for too long. */
static void memory_that_the_leader_does_not_reach_is_read_again(void **state)
{
    struct replication_scene *scene = *state;
    struct document_write write;
    struct bytes *name = bytes_create(SLICE("name"));
    int64_t delay_ms = REPLICA_AHEAD_MS + 5000; /* to the database, and back */
    create(scene->world, "run_1", "a");
    fake_store_set_delay(scene->world->fake, 2 * delay_ms, 0);
    document_write_begin(scene->world->engine, WORLD_ENV, DOC_VARIABLE, name, name, 0,
                         &write, on_written);
    scene_pass(scene, delay_ms);
    scene_connect(scene);
    for (int64_t ms = 0; ms < REPLICA_AHEAD_MS + 500; ms += REPLICA_ASK_MS)
        scene_pass(scene, REPLICA_ASK_MS);
    assert_string_equal(scene->ended, "the leader does not get what the database has");
    scene_connect(scene);
    assert_true(environment_is_late(scene->copy));
    for (int64_t ms = 0; ms < 5000; ms += REPLICA_ASK_MS)
        scene_pass(scene, REPLICA_ASK_MS);
    assert_same_memory(scene);
    assert_true(is_trusted(scene));
    assert_false(environment_is_late(scene->copy));
    bytes_unref(name);
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_replication_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(another_epoch_makes_memory_useless),
        TEST(memory_of_another_history_is_loaded_in_place),
        TEST(empty_environment_of_another_history_begins_again),
        TEST(memory_that_the_leader_does_not_reach_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
