/* Commits continue while the WAL is copied into the database. */
#include "store/sqlite/snapshot/sqlite_look.h"
#include "store/sqlite/sqlite_store.h"

#include <stdio.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/fakes/fault_vfs.h"

enum {
    LARGE = 2 << 20,
    COPIED_FROM = 32 << 20, /* bytes of pages; in the log, each page has a header too */
    GROWS_NO_MORE = 64 << 20,
    PAGE_BYTES = 4096,
    FRAME_BYTES = PAGE_BYTES + 24,
};

static struct {
    struct store_world world;
    uv_loop_t loop;
    char dir[64], path[96];
    int runs;
    bool closed;
} scene;

static void turn(struct store_world *world)
{
    (void)world;
    uv_run(&scene.loop, UV_RUN_ONCE);
}

static void on_closed(struct store *store)
{
    (void)store;
    scene.closed = true;
}

static int open_scene(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    fault_vfs_install();
    fault_vfs.log_bytes = 0;
    fault_vfs.syncs_nothing = true;
    uv_loop_init(&scene.loop);
    snprintf(scene.dir, sizeof(scene.dir), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene.dir));
    snprintf(scene.path, sizeof(scene.path), "%s/x.db", scene.dir);
    struct sqlite_options options = { .path = scene.path };
    struct failure why;
    scene.world.turn = turn;
    assert_int_equal(sqlite_store_open(&scene.loop, &options, &scene.world.store, &why),
                     OK);
    return 0;
}

static int close_scene(void **state)
{
    char text[160];
    (void)state;
    fault_vfs.copies_wait = false;
    scene.world.store->ops->close(scene.world.store, on_closed);
    while (!scene.closed)
        uv_run(&scene.loop, UV_RUN_ONCE);
    uv_loop_close(&scene.loop);
    snprintf(text, sizeof(text), "%s-wal", scene.path);
    assert_int_equal(access(text, F_OK), -1); /* the last connection has removed it */
    unlink(scene.path);
    snprintf(text, sizeof(text), "%s.lock", scene.path);
    unlink(text);
    return rmdir(scene.dir);
}

static void commit_large(void)
{
    struct change change = new_run(ENV_A, scene.runs++, "a");
    bytes_unref(change.run.payload);
    change.run.payload = bytes_create_empty(LARGE);
    memset(change.run.payload->data, 'x', LARGE);
    assert_int_equal(commit_one(&scene.world, change), STORE_OK);
}

/* Commits until the log begins to be copied. */
static void fill_the_log(void)
{
    while (fault_vfs.log_bytes / FRAME_BYTES < COPIED_FROM / PAGE_BYTES)
        commit_large();
}

static void commits_continue_while_the_log_is_copied(void **state)
{
    (void)state;
    unsigned begun = fault_vfs.copies, ended = fault_vfs.copied;
    fault_vfs.copies_wait = true;
    fill_the_log();
    while (fault_vfs.copies == begun)
        uv_sleep(1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(commit_one(&scene.world, new_run(ENV_B, i, "a")), STORE_OK);
    assert_int_equal(fault_vfs.copied, ended);
}

static void copied_log_is_reused_from_its_beginning(void **state)
{
    (void)state;
    unsigned ended = fault_vfs.copied;
    fill_the_log();
    while (fault_vfs.copied == ended)
        uv_sleep(1);
    while (fault_vfs.log_bytes > COPIED_FROM / 2)
        commit_large();
    assert_true(scene.runs * (long long)LARGE < GROWS_NO_MORE);
}

/* No commit came during the first copy, so no rest was left to copy. */
static void commits_continue_while_a_reused_log_is_copied(void **state)
{
    unsigned closed = fault_vfs.closed;
    fill_the_log();
    while (fault_vfs.closed == closed)
        uv_sleep(1); /* by the connection that copies */
    while (fault_vfs.log_bytes > COPIED_FROM / 2)
        commit_large();
    commits_continue_while_the_log_is_copied(state);
}

static void commits_wait_for_a_log_that_grows_too_fast(void **state)
{
    (void)state;
    fault_vfs.copies_wait = true;
    fill_the_log();
    while (fault_vfs.copies == fault_vfs.copied)
        uv_sleep(1); /* a copy that commits overtake neither syncs nor waits */
    while (fault_vfs.log_bytes < COPIED_FROM + COPIED_FROM / 4)
        commit_large();
    fault_vfs.copies_wait = false;
    long long highest = 0;
    for (int i = 0; i < 40; i++) {
        commit_large();
        highest = fault_vfs.log_bytes > highest ? fault_vfs.log_bytes : highest;
    }
    assert_true(highest < GROWS_NO_MORE);
}

/* A backup of a large database, for example. */
static void long_reader_does_not_delay_commits(void **state)
{
    struct sqlite_look *look;
    struct failure why;
    (void)state;
    commit_large();
    assert_int_equal(sqlite_look_open(scene.path, false, &look, &why), OK);
    unsigned waits = fault_vfs.waits;
    while (fault_vfs.log_bytes < 2 * GROWS_NO_MORE)
        commit_large();
    assert_int_equal(fault_vfs.waits, waits);
    sqlite_look_close(look);
    while (fault_vfs.log_bytes > COPIED_FROM / 2)
        commit_large();
    assert_true(scene.runs * (long long)LARGE < 4 * (long long)GROWS_NO_MORE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commits_continue_while_the_log_is_copied),
        TEST(copied_log_is_reused_from_its_beginning),
        TEST(commits_continue_while_a_reused_log_is_copied),
        TEST(commits_wait_for_a_log_that_grows_too_fast),
        TEST(long_reader_does_not_delay_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
