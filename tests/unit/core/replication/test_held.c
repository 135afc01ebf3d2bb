/* Changes of one environment wait, and those of others are applied. */
#include "tests/support/world/unit.h"

#include <string.h>

#include "tests/support/world/replication_scene.h"

/* finish_run puts quotation marks around the output. */
enum { QUOTES = 2, LONG = SOURCE_PACKET_MAX + 1, READ_MS = 50 };

/* The follower has received what the leader has sent, but the database has not answered. */
static void receive(struct replication_scene *scene)
{
    world_pass(scene->world, 1);
    scene_deliver(scene);
    world_pass(scene->world, 0);
    scene_deliver(scene);
}

/* Until no read is in progress. */
static void read_all(struct replication_scene *scene)
{
    for (int i = 0; i < 1000 && !replica_is_idle(&scene->replica); i++)
        scene_pass(scene, READ_MS);
    scene_pass(scene, READ_MS);
}

static struct followed *followed(const struct replication_scene *scene)
{
    return slots_get(&scene->replica.envs, WORLD_ENV);
}

/* A change that lacks its output is held for that long. */
static void hold_for(struct replication_scene *scene, int64_t ms)
{
    create(scene->world, "run_1", "a");
    scene_pass(scene, 10);
    fake_store_set_delay(scene->world->fake, 0, ms);
    finish_run(scene->world, "run_1", LONG - QUOTES);
    receive(scene);
    assert_false(frame_line_is_empty(&followed(scene)->held));
}

static void hold(struct replication_scene *scene)
{
    hold_for(scene, READ_MS);
}

static void receive_position(struct replication_scene *scene, uint32_t env, uint64_t seq)
{
    struct repl_frame frame = { .kind = REPL_POSITIONS, .positions.count = 1 };
    frame.positions.list = mem_new(struct repl_position);
    frame.positions.list[0] = (struct repl_position){ env, seq };
    replica_receive(&scene->replica, &frame, 10);
}

/* An environment comes into memory at the leader, and gets a copy of the run. */
static void receive_other(struct replication_scene *scene, const char *id)
{
    struct repl_frame frame = {
        .kind = REPL_CHANGE, .run = { .env = OTHER_ENV, .seq = 1, .marks = REPL_PACKETS }
    };
    receive_position(scene, OTHER_ENV, 0);
    run_copy(&frame.run.run, run_in(scene->world->env, id));
    frame.run.run.rev = 1;
    replica_receive(&scene->replica, &frame, 100);
}

/* ---- others ---- */

static void changes_of_others_are_applied(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_2", "a");
    scene_connect(scene);
    hold(scene);
    uint64_t applied = scene->copy->applied;
    receive_other(scene, "run_2");
    assert_int_equal(scene->other->applied, 1);
    assert_non_null(environment_find(scene->other, SLICE("run_2")));
    assert_int_equal(scene->copy->applied, applied);
    read_all(scene);
    assert_same_memory(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
}

/* Clients of the environment wait until memory has what had arrived before the answer. */
static void answers_do_not_wait(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    hold(scene);
    uint64_t question = replica_ask(&scene->replica);
    receive(scene);
    assert_true(scene->replica.answered >= question);
    assert_int_equal(scene->copy->reaches.arrived, scene->world->env->applied);
    assert_true(scene->copy->applied < scene->copy->reaches.arrived);
    read_all(scene);
    assert_int_equal(scene->copy->applied, scene->copy->reaches.arrived);
}

static void memory_is_shown_as_long_as_the_last_answer_permits(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    hold_for(scene, 2 * LEFT_MS);
    int64_t left_ms = replica_left_ms(&scene->replica);
    int64_t begun_ms = loop_now_ms(scene->world->loop);
    while (loop_now_ms(scene->world->loop) < begun_ms + left_ms) {
        assert_false(environment_is_late(scene->copy));
        scene_pass(scene, READ_MS);
    }
    assert_true(environment_is_late(scene->copy));
    assert_true(is_trusted(scene));
    read_all(scene);
    assert_false(environment_is_late(scene->copy));
    assert_same_memory(scene);
}

/* ---- too many changes ---- */

static void create_more(struct replication_scene *scene, char kind)
{
    char id[16];
    for (int i = 0; i <= REPLICA_HELD_CHANGES; i++) {
        snprintf(id, sizeof(id), "run_%c%d", kind, i);
        create(scene->world, id, NULL);
    }
    receive(scene);
}

/* The follower begins to read what it lacks. */
static void look(struct replication_scene *scene)
{
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    world_pass(scene->world, REPLICA_ASK_MS);
    receive(scene);
    assert_true(followed(scene)->is_catching);
    assert_true(environment_is_late(scene->copy));
    assert_true(is_trusted(scene));
}

/* More changes are held than may be, so memory is read from the database. */
static void fill(struct replication_scene *scene)
{
    hold_for(scene, LEFT_MS);
    create_more(scene, 'x');
    assert_true(followed(scene)->lacks);
    assert_false(environment_is_late(scene->copy));
    look(scene);
}

static void assert_current(struct replication_scene *scene)
{
    for (int i = 0; i < 10; i++)
        scene_pass(scene, REPLICA_ASK_MS);
    read_all(scene);
    assert_same_memory(scene);
    assert_true(is_trusted(scene));
    assert_false(followed(scene)->is_alone);
    assert_false(environment_is_late(scene->copy));
    assert_int_equal(scene->replica.waiting.changes, 0);
    assert_true(waiting_is_empty(&scene->replica.waiting));
}

static void environment_with_too_many_is_read_from_the_database(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    fill(scene);
    assert_true(scene->replica.waiting.changes > REPLICA_HELD_CHANGES);
    receive_other(scene, "run_x0");
    assert_int_equal(scene->other->applied, 1);
    finish_run(scene->world, "run_x1", LONG - QUOTES);
    receive(scene);
    assert_current(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
    assert_int_equal(run_in(scene->copy, "run_x1")->output->len, LONG);
}

static void changes_that_are_given_up_meanwhile_are_read_again(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    fill(scene);
    create_more(scene, 'y');
    finish_run(scene->world, "run_y1", PACKET);
    assert_current(scene);
    assert_same_run(scene, "run_y1");
}

static void memory_that_the_stream_has_not_reached_is_not_shown(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    fill(scene);
    change(scene->world, "run_x1", 2);
    world_pass(scene->world, READ_MS); /* the frame is in flight */
    for (int i = 0; i < 1000 && followed(scene)->is_catching; i++)
        world_pass(scene->world, READ_MS);
    assert_int_equal(scene->copy->applied, scene->world->env->applied);
    assert_true(environment_is_late(scene->copy));
    assert_current(scene);
}

static void connection_may_end_while_an_environment_is_read(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    fill(scene);
    scene_disconnect(scene);
    assert_false(environment_is_late(scene->copy));
    assert_int_equal(scene->replica.waiting.changes, 0);
    while (!replica_is_idle(&scene->replica))
        world_pass(scene->world, READ_MS);
    scene_connect(scene);
    assert_current(scene);
}

static void environment_may_be_dropped_while_it_is_read(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    fill(scene);
    source_drop(&scene->source, WORLD_ENV);
    receive(scene);
    assert_false(replica_was_left(&scene->replica, WORLD_ENV));
    read_all(scene);
    assert_true(replica_was_left(&scene->replica, WORLD_ENV));
    source_add(&scene->source, scene->world->env);
    receive(scene);
    assert_current(scene);
}

/* The leader has it again before the follower could drop it. */
static void drop_and_return(struct replication_scene *scene)
{
    source_drop(&scene->source, WORLD_ENV);
    create(scene->world, "run_z", "z"); /* is not sent */
    scene_drop_all(scene);
    source_drop(&scene->source, WORLD_ENV);
    receive(scene);
    assert_string_equal(scene->ended, "");
    source_add(&scene->source, scene->world->env);
    receive(scene);
    assert_string_equal(scene->ended, "");
    assert_false(replica_was_left(&scene->replica, WORLD_ENV));
    read_all(scene);
    assert_current(scene);
    assert_same_run(scene, "run_z");
}

static void environment_may_return_while_it_is_read(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    fill(scene);
    drop_and_return(scene);
}

static void environment_may_return_while_a_change_is_held(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    hold_for(scene, LEFT_MS);
    drop_and_return(scene);
}

static void dropped_environment_lacks_nothing(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    hold_for(scene, LEFT_MS);
    create_more(scene, 'x');
    assert_true(followed(scene)->lacks);
    source_drop(&scene->source, WORLD_ENV);
    receive(scene);
    assert_true(replica_was_left(&scene->replica, WORLD_ENV));
    assert_int_equal(scene->replica.waiting.changes, 0);
    source_add(&scene->source, scene->world->env);
    receive(scene);
    assert_current(scene);
}

/* ---- changes that the leader omits ---- */

/* Each environment may send one change in a second. */
static void be_slow(struct replication_scene *scene)
{
    scene->is_slow = true;
    scene->allowance = 1;
}

static void omitted_changes_are_read_from_the_database(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    be_slow(scene);
    create(scene->world, "run_1", "a");
    set_metadata(scene->world, "run_1", "{\"a\":1}");
    set_metadata(scene->world, "run_1", "{\"a\":2}");
    receive(scene);
    assert_int_equal(scene->runs_sent, 1);
    assert_true(followed(scene)->lacks);
    assert_int_equal(scene->copy->applied, 1);
    assert_int_equal(scene->copy->reaches.arrived, 3);
    look(scene);
    assert_current(scene);
    assert_same_run(scene, "run_1");
}

static void held_changes_are_given_up_for_omitted_ones(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    scene_pass(scene, 10);
    be_slow(scene);
    set_metadata(scene->world, "run_1", "{\"a\":1}");
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    scene->is_slow = false;
    finish_run(scene->world, "run_1", LONG - QUOTES);
    scene->is_slow = true;
    set_metadata(scene->world, "run_2", "{\"a\":1}");
    receive(scene);
    assert_true(followed(scene)->lacks);
    assert_true(waiting_is_empty(&scene->replica.waiting));
    assert_current(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
    assert_same_run(scene, "run_2");
}

static void names_of_runs_count_as_packets_do(void **state)
{
    struct replication_scene *scene = *state;
    char name[1025], id[16];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    scene_connect(scene);
    be_slow(scene);
    scene->allowance = 4 * sizeof(name);
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof(id), "run_%d", i);
        create(scene->world, id, name);
    }
    assert_int_equal(scene->runs_sent, 3);
}

static void states_before_count_too(void **state)
{
    struct replication_scene *scene = *state;
    char metadata[4096] = "";
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    memset(metadata, ' ', sizeof(metadata) - 1);
    memcpy(metadata, "{}", 2);
    set_metadata(scene->world, "run_1", metadata);
    finish_run(scene->world, "run_1", 10);
    be_slow(scene);
    scene->allowance = sizeof(metadata) / 2;
    scene->runs_sent = 0;
    for (uint32_t version = 4; version < 8; version++)
        change(scene->world, "run_1", version);
    assert_int_equal(scene->runs_sent, 1);
    assert_int_equal(scene->befores_sent, 1);
    assert_current(scene);
    assert_same_run(scene, "run_1");
}

static void omitted_changes_that_memory_has_are_passed(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    be_slow(scene);
    create(scene->world, "run_1", "a");
    receive(scene);
    scene_disconnect(scene);
    change(scene->world, "run_1", 2);
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    replica_connected(&scene->replica);
    scene_deliver(scene); /* memory catches up, with what is omitted meanwhile */
    set_metadata(scene->world, "run_1", "{\"a\":1}");
    set_metadata(scene->world, "run_1", "{\"a\":2}");
    while (scene->replica.state != REPLICA_FOLLOWING)
        scene_pass(scene, 10);
    assert_false(followed(scene)->lacks);
    assert_current(scene);
}

static void older_follower_gets_every_change(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame hello = { .kind = REPL_HELLO,
                                .hello = { .least = 1, .newest = 3, .gateway = 2 } };
    source_receive(&scene->source, &scene->follower, &hello);
    be_slow(scene);
    create(scene->world, "run_1", "a");
    set_metadata(scene->world, "run_1", "{\"a\":1}");
    set_metadata(scene->world, "run_1", "{\"a\":2}");
    assert_int_equal(scene->runs_sent, 3);
}

/* ---- retention ---- */

static void removed_run_is_never_shown_without_its_output(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    scene_pass(scene, 10);
    finish_run(scene->world, "run_1", LONG - QUOTES);
    scene_purge(scene);
    scene_deliver_first(scene);
    for (int i = 0; i < 10; i++)
        world_pass(scene->world, 1);
    assert_false(run_is_settled(run_in(scene->copy, "run_1")));
    assert_true(followed(scene)->lacks);
    scene_pass(scene, REPLICA_ASK_MS);
    read_all(scene);
    assert_false(followed(scene)->lacks);
    assert_same_memory(scene);
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    assert_same_run(scene, "run_2");
}

/* ---- environments that come ---- */

static void environment_that_comes_is_read_alone(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    source_drop(&scene->source, WORLD_ENV);
    receive(scene);
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
    source_add(&scene->source, scene->world->env);
    receive(scene);
    assert_true(is_trusted(scene));
    assert_true(environment_is_late(scene->copy));
    change(scene->world, "run_1", 2);
    receive(scene);
    assert_current(scene);
    assert_same_run(scene, "run_1");
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_replication_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(changes_of_others_are_applied),
        TEST(answers_do_not_wait),
        TEST(memory_is_shown_as_long_as_the_last_answer_permits),
        TEST(environment_with_too_many_is_read_from_the_database),
        TEST(changes_that_are_given_up_meanwhile_are_read_again),
        TEST(memory_that_the_stream_has_not_reached_is_not_shown),
        TEST(connection_may_end_while_an_environment_is_read),
        TEST(environment_may_be_dropped_while_it_is_read),
        TEST(environment_may_return_while_it_is_read),
        TEST(environment_may_return_while_a_change_is_held),
        TEST(dropped_environment_lacks_nothing),
        TEST(omitted_changes_are_read_from_the_database),
        TEST(held_changes_are_given_up_for_omitted_ones),
        TEST(names_of_runs_count_as_packets_do),
        TEST(states_before_count_too),
        TEST(omitted_changes_that_memory_has_are_passed),
        TEST(older_follower_gets_every_change),
        TEST(removed_run_is_never_shown_without_its_output),
        TEST(environment_that_comes_is_read_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
