/* A follower reads packets that were left out of changes, and memory misses nothing meanwhile. */
#include "tests/support/world/unit.h"

#include <string.h>

#include "tests/support/world/replication_scene.h"

/* finish_run puts quotation marks around the output. */
enum { QUOTES = 2, LONG = SOURCE_PACKET_MAX + 1, READ_MS = 50 };

static bool waits(const struct replication_scene *scene)
{
    return !waiting_is_empty(&scene->replica.waiting);
}

/* Reads of the database take a while from now on. */
static void slow_reads(struct replication_scene *scene)
{
    fake_store_set_delay(scene->world->fake, 0, READ_MS);
}

/* The follower has received what the leader has sent, but the database has not answered. */
static void receive(struct replication_scene *scene)
{
    world_pass(scene->world, 1);
    scene_deliver(scene);
}

/* ---- leaving out ---- */

static void long_output_is_read_from_the_database(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    finish_run(scene->world, "run_1", SOURCE_PACKET_MAX - QUOTES);
    finish_run(scene->world, "run_2", LONG - QUOTES);
    scene_pass(scene, 10);
    assert_same_memory(scene);
    assert_int_equal(scene->outputs_sent, 1);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, SOURCE_PACKET_MAX);
    assert_int_equal(run_in(scene->copy, "run_2")->output->len, LONG);
    assert_true(is_trusted(scene));
}

static void followers_that_read_slowly_get_only_short_packets(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    scene->is_slow = true;
    create(scene->world, "run_1", "a");
    create(scene->world, "run_2", "a");
    finish_run(scene->world, "run_1", SOURCE_PACKET_SLOW - QUOTES);
    finish_run(scene->world, "run_2", PACKET - QUOTES);
    set_metadata(scene->world, "run_2", "{\"a\":1}");
    scene_pass(scene, 10);
    assert_same_memory(scene);
    assert_int_equal(scene->outputs_sent, 1);
    assert_same_run(scene, "run_2");
}

/* Otherwise the reads of one project would delay the changes of all. */
static void follower_reads_for_its_memory(void **state)
{
    struct replication_scene *scene = *state;
    const struct fake_store *fake = scene->world->fake;
    create(scene->world, "run_1", "a");
    unsigned before = fake_store_reads_for_memory(fake);
    scene_connect(scene);
    unsigned caught_up = fake_store_reads_for_memory(fake);
    assert_true(caught_up > before);
    finish_run(scene->world, "run_1", LONG - QUOTES);
    scene_pass(scene, 10);
    assert_int_equal(fake_store_reads_for_memory(fake), caught_up + 1);
}

static void older_follower_gets_every_packet(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame hello = { .kind = REPL_HELLO,
                                .hello = { .least = 1, .newest = 2, .gateway = 2 } };
    scene->is_slow = true;
    source_receive(&scene->source, &scene->follower, &hello);
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", LONG - QUOTES);
    assert_int_equal(scene->outputs_sent, 1);
    scene_connect(scene);
    create(scene->world, "run_2", "a");
    finish_run(scene->world, "run_2", LONG - QUOTES);
    scene_pass(scene, 10);
    assert_int_equal(scene->outputs_sent, 1);
}

/* ---- the order ---- */

static void later_changes_wait(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    scene_pass(scene, 10);
    slow_reads(scene);
    finish_run(scene->world, "run_1", LONG - QUOTES);
    create(scene->world, "run_2", "b");
    uint64_t applied = scene->copy->applied;
    receive(scene);
    assert_true(waits(scene));
    assert_int_equal(scene->copy->applied, applied);
    scene_pass(scene, READ_MS);
    assert_false(waits(scene));
    assert_same_memory(scene);
    assert_same_run(scene, "run_2");
}

static void few_changes_are_read_at_a_time(void **state)
{
    struct replication_scene *scene = *state;
    char id[16];
    scene_connect(scene);
    slow_reads(scene);
    scene->is_slow = true;
    for (int i = 0; i < 2 * LEFT_OUT_OF_ONE; i++) {
        snprintf(id, sizeof(id), "run_%d", i);
        create(scene->world, id, NULL);
        finish_run(scene->world, id, PACKET - QUOTES);
    }
    receive(scene);
    assert_int_equal(scene->replica.waiting.left_out.reading, LEFT_OUT_OF_ONE);
    scene_pass(scene, READ_MS);
    scene_pass(scene, READ_MS);
    assert_false(waits(scene));
    assert_same_memory(scene);
    assert_int_equal(run_in(scene->copy, id)->output->len, PACKET);
}

/* ---- states ---- */

/* The database may have the packet of a later change. */
static void packets_that_may_be_replaced_travel(void **state)
{
    struct replication_scene *scene = *state;
    char metadata[PACKET];
    struct run run = { .id = "run_1", .status = RUN_DELAYED, .version = 1, .rev = 1 };
    struct change change = {
        .kind = CHANGE_RUN, .env = WORLD_ENV, .seq = 1, .marks = REPL_PACKETS
    };
    scene_connect(scene);
    scene->is_slow = true;
    snprintf(metadata, sizeof(metadata), "%-*s", PACKET - 1, "{\"a\":1}");
    run.metadata = bytes_create(slice_of(metadata));
    run.payload = bytes_ref(run.metadata);
    run.output = bytes_ref(run.metadata);
    const struct {
        uint8_t status, execution; /* enum run_status, enum run_execution */
        unsigned left_out;
    } cases[] = {
        { RUN_DELAYED, EXECUTION_DELAYED, 0 },
        { RUN_QUEUED, EXECUTION_QUEUED, REPL_LEFT_PAYLOAD },
        { RUN_CANCELED, EXECUTION_PENDING_CANCEL, REPL_LEFT_PAYLOAD },
        { RUN_CANCELED, EXECUTION_FINISHED, REPL_LEFT_OUT },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        change.run = run;
        change.run.status = cases[i].status;
        change.run.execution = cases[i].execution;
        scene_drop_all(scene);
        source_apply(&scene->source, NULL, &change);
        const struct repl_frame *sent =
            &container_of(scene->to_follower.next, struct sent_frame, link)->frame;
        assert_int_equal(sent->run.marks & REPL_LEFT_OUT, cases[i].left_out);
        assert_ptr_equal(sent->run.run.payload,
                         cases[i].left_out & REPL_LEFT_PAYLOAD ? NULL : run.payload);
        assert_ptr_equal(sent->run.run.output,
                         cases[i].left_out & REPL_LEFT_OUTPUT ? NULL : run.output);
        assert_ptr_equal(sent->run.run.metadata, run.metadata);
    }
    scene_drop_all(scene);
    run_finish(&run);
}

static void evicted_run_returns_with_its_packets(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    scene->is_slow = true;
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", PACKET - QUOTES);
    scene_pass(scene, 10);
    while (environment_evict(scene->copy, 0))
        ;
    assert_null(environment_find(scene->copy, SLICE("run_1")));
    add_tag(scene->world, "run_1", "b");
    scene_pass(scene, 10);
    assert_int_equal(scene->befores_sent, 1);
    assert_same_memory(scene);
    assert_same_run(scene, "run_1");
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, PACKET);
}

/* ---- faults ---- */

static void failed_read_ends_the_connection(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    scene_pass(scene, 10);
    *fake_store_load_fault(scene->world->fake) = (struct fault){ .countdown = 1 };
    finish_run(scene->world, "run_1", LONG - QUOTES);
    scene_pass(scene, 10);
    assert_string_equal(scene->ended, "cannot read packets from the database");
    assert_false(is_trusted(scene));
    scene_connect(scene);
    assert_same_memory(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
}

static void connection_may_end_during_a_read(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    create(scene->world, "run_1", "a");
    scene_pass(scene, 10);
    slow_reads(scene);
    finish_run(scene->world, "run_1", LONG - QUOTES);
    receive(scene);
    assert_true(waits(scene));
    scene_disconnect(scene);
    assert_false(replica_is_idle(&scene->replica));
    world_pass(scene->world, READ_MS);
    assert_true(replica_is_idle(&scene->replica));
    scene_connect(scene);
    scene_pass(scene, 10 * READ_MS);
    assert_same_memory(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
}

static void changes_that_memory_has_are_not_read(void **state)
{
    struct replication_scene *scene = *state;
    create(scene->world, "run_1", "a");
    scene_connect(scene);
    scene_disconnect(scene);
    change(scene->world, "run_1", 2);
    slow_reads(scene);
    replica_connected(&scene->replica);
    scene_deliver(scene); /* memory catches up, with what is sent meanwhile */
    finish_run(scene->world, "run_1", LONG - QUOTES);
    *fake_store_load_fault(scene->world->fake) = (struct fault){ .countdown = 1 };
    scene_pass(scene, READ_MS);
    scene_pass(scene, 10 * READ_MS);
    assert_same_memory(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
    assert_false(fake_store_load_fault(scene->world->fake)->tripped);
}

/* Changes of it arrive while the frame that adds it waits for those before. */
static void packets_in_a_new_environment_are_read(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame before = { .kind = REPL_BEFORE,
                                 .run = { .env = WORLD_ENV,
                                          .marks = REPL_PACKETS | REPL_LEFT_OUTPUT } };
    scene->has_dropped = true;
    scene_connect(scene);
    scene->has_dropped = false;
    slow_reads(scene);
    replica_receive(&scene->replica, &before, 1);
    source_add(&scene->source, scene->world->env);
    create(scene->world, "run_1", "a");
    finish_run(scene->world, "run_1", LONG - QUOTES);
    receive(scene);
    assert_true(waits(scene));
    scene_pass(scene, READ_MS);
    scene_pass(scene, READ_MS);
    assert_false(waits(scene));
    assert_same_memory(scene);
    assert_int_equal(run_in(scene->copy, "run_1")->output->len, LONG);
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_replication_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(long_output_is_read_from_the_database),
        TEST(followers_that_read_slowly_get_only_short_packets),
        TEST(follower_reads_for_its_memory),
        TEST(older_follower_gets_every_packet),
        TEST(later_changes_wait),
        TEST(few_changes_are_read_at_a_time),
        TEST(packets_that_may_be_replaced_travel),
        TEST(evicted_run_returns_with_its_packets),
        TEST(failed_read_ends_the_connection),
        TEST(connection_may_end_during_a_read),
        TEST(changes_that_memory_has_are_not_read),
        TEST(packets_in_a_new_environment_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
