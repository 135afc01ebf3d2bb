/* Documents of the accounts travel to followers with the changes. */
#include "tests/support/world/unit.h"

#include "tests/support/world/replication_scene.h"

static void on_written(struct document_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
}

static void write_account(struct replication_scene *scene, uint32_t expected)
{
    struct document_write write;
    struct bytes *name = bytes_create(SLICE("name"));
    document_write_begin(scene->world->engine, ENV_INSTALLATION, DOC_USER, name, name,
                         expected, &write, on_written);
    world_pass(scene->world, 10);
    bytes_unref(name);
}

static void documents_of_accounts_travel(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    write_account(scene, 0);
    scene_pass(scene, 10);
    assert_int_equal(scene->account_version, 1);
    scene_disconnect(scene);
    write_account(scene, 1);
    scene_connect(scene); /* read_accounts, which this test leaves out */
    assert_int_equal(scene->account_version, 1);
    write_account(scene, 2);
    scene_pass(scene, 10);
    assert_int_equal(scene->account_version, 3);
    assert_same_memory(scene);
}

static void documents_take_effect_before_the_next_change(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    write_account(scene, 0);
    write_account(scene, 1);
    create(scene->world, "run_1", NULL);
    scene_deliver(scene);
    assert_int_equal(scene->document_ends, 1);
    assert_int_equal(scene->ends_at_change, 1);
    write_account(scene, 2);
    scene_deliver(scene); /* nothing follows, but the message ends */
    assert_int_equal(scene->document_ends, 2);
    scene_deliver(scene);
    assert_int_equal(scene->document_ends, 2);
}

static void documents_that_were_read_are_not_taken_again(void **state)
{
    struct replication_scene *scene = *state;
    write_account(scene, 0);
    scene->accounts_seq = 2; /* the read already has the next one */
    scene_connect(scene);
    write_account(scene, 1);
    scene_pass(scene, 10);
    assert_int_equal(scene->account_version, 0);
    write_account(scene, 2);
    scene_pass(scene, 10);
    assert_int_equal(scene->account_version, 3);
    assert_same_memory(scene);
}

static void refused_documents_are_read_again(void **state)
{
    struct replication_scene *scene = *state;
    scene_connect(scene);
    unsigned reads = scene->account_reads;
    scene->refuses_documents = true;
    write_account(scene, 0);
    scene_pass(scene, 10);
    assert_string_equal(scene->ended, "a damaged document");
    scene->refuses_documents = false;
    scene_connect(scene);
    assert_int_equal(scene->account_reads, reads + 1);
    assert_same_memory(scene);
}

static void documents_without_effect_are_read_again(void **state)
{
    struct replication_scene *scene = *state;
    struct bytes *name = bytes_create(SLICE("name"));
    struct repl_frame frame = { .kind = REPL_DOCUMENT,
                                .document = { ENV_INSTALLATION,
                                              1,
                                              { .kind = DOC_USER,
                                                .name = name,
                                                .body = bytes_ref(name),
                                                .version = 1 } } };
    scene_connect(scene);
    unsigned reads = scene->account_reads;
    replica_receive(&scene->replica, &frame, 100); /* its message has not ended */
    assert_int_equal(scene->account_version, 1);
    scene_connect(scene);
    assert_int_equal(scene->account_reads, reads + 1);
}

/* The gateway has looked whether its commit was written: it was, with an unknown number. */
static void accounts_are_read_after_a_commit_in_doubt(void **state)
{
    struct replication_scene *scene = *state;
    const struct change in_doubt = { .kind = CHANGE_DOCUMENT, .env = ENV_INSTALLATION };
    write_account(scene, 0);
    scene_connect(scene);
    unsigned reads = scene->account_reads;
    source_apply(&scene->source, NULL, &in_doubt);
    assert_string_equal(scene->ended, "the outcome of a commit was unknown");
    scene_connect(scene);
    assert_int_equal(scene->account_reads, reads + 1);
    assert_same_memory(scene);
}

static void accounts_are_read_after_a_gap(void **state)
{
    struct replication_scene *scene = *state;
    struct repl_frame gap = { .kind = REPL_PASSED, .passed = { ENV_INSTALLATION, 7, 7 } };
    write_account(scene, 0);
    scene_connect(scene);
    unsigned reads = scene->account_reads;
    replica_receive(&scene->replica, &gap, 5);
    assert_string_equal(scene->ended, "the stream has a gap");
    scene_connect(scene);
    assert_int_equal(scene->account_reads, reads + 1);
    assert_same_memory(scene);
}

#define TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, open_replication_scene, close_replication_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(documents_of_accounts_travel),
        TEST(documents_take_effect_before_the_next_change),
        TEST(documents_that_were_read_are_not_taken_again),
        TEST(refused_documents_are_read_again),
        TEST(documents_without_effect_are_read_again),
        TEST(accounts_are_read_after_a_commit_in_doubt),
        TEST(accounts_are_read_after_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
