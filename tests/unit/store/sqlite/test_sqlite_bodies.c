/* Finding a row reads that row, but not the bodies of the rows on the way to it. */
#include "store/sqlite/sqlite_store.h"

#include <stdio.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/fakes/fault_vfs.h"

enum { RUNS = 1000, BODY = 15000, LOOKED_UP = 100 };

static struct {
    struct store_world world;
    uv_loop_t loop;
    char dir[64], path[96];
    bool done;
} scene;

static void turn(struct store_world *world)
{
    (void)world;
    uv_run(&scene.loop, UV_RUN_ONCE);
}

static struct bytes *large_body(void)
{
    struct bytes *body = bytes_create_empty(BODY);
    memset(body->data, 'x', BODY);
    return body;
}

/* The database is larger than its connections' caches. */
static void open_store(void)
{
    struct sqlite_options options = { .path = scene.path, .cache_bytes = 1 << 20 };
    struct failure why;
    assert_int_equal(sqlite_store_open(&scene.loop, &options, &scene.world.store, &why),
                     OK);
}

static void on_closed(struct store *store)
{
    (void)store;
    scene.done = true;
}

static void close_store(void)
{
    scene.done = false;
    scene.world.store->ops->close(scene.world.store, on_closed);
    while (!scene.done)
        turn(&scene.world);
}

static void fill(void)
{
    struct change *changes = mem_new_array(struct change, RUNS);
    for (int n = 0; n < RUNS; n++) {
        changes[n] = new_run(ENV_A, n, "a");
        bytes_unref(changes[n].run.payload);
        changes[n].run.payload = large_body();
    }
    assert_int_equal(commit(&scene.world, changes, RUNS, NULL, 0), STORE_OK);
    for (int n = 0; n < RUNS; n++)
        change_finish(&changes[n]);
    free(changes);
}

static int open_scene(void **state)
{
    (void)state;
    fault_vfs_install();
    uv_loop_init(&scene.loop);
    scene.world.turn = turn;
    snprintf(scene.dir, sizeof(scene.dir), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene.dir));
    snprintf(scene.path, sizeof(scene.path), "%s/x.db", scene.dir);
    open_store();
    fill();
    close_store();
    open_store();
    return 0;
}

static int close_scene(void **state)
{
    char lock[128];
    (void)state;
    close_store();
    uv_loop_close(&scene.loop);
    unlink(scene.path);
    snprintf(lock, sizeof(lock), "%s.lock", scene.path);
    unlink(lock);
    return rmdir(scene.dir);
}

/* Each is far from the one before, so that the connection's cache does not help. */
static int nth(int i)
{
    return i * 617 % RUNS;
}

static void a_run_is_found_without_the_bodies_of_others(void **state)
{
    char id[ID_MAX];
    (void)state;
    long long before = fault_vfs.read_bytes;
    for (int i = 0; i < LOOKED_UP; i++) {
        struct run run;
        make_run_id(nth(i), id);
        assert_int_equal(load_run(&scene.world, ENV_A, id, &run), STORE_OK);
        assert_int_equal(run.payload->len, BODY);
        run_finish(&run);
    }
    assert_true(fault_vfs.read_bytes - before < 4LL * LOOKED_UP * BODY);
}

static void a_document_is_found_without_the_bodies_of_others(void **state)
{
    char name[32];
    (void)state;
    struct change *changes = mem_new_array(struct change, RUNS);
    struct bytes *body = large_body();
    for (int n = 0; n < RUNS; n++) {
        snprintf(name, sizeof(name), "packet %d", n);
        changes[n] = new_document(ENV_A, DOC_PACKET, name, "");
        bytes_unref(changes[n].document.body);
        changes[n].document.body = bytes_ref(body);
    }
    assert_int_equal(commit(&scene.world, changes, RUNS, NULL, 0), STORE_OK);
    for (int n = 0; n < RUNS; n++)
        change_finish(&changes[n]);
    free(changes);
    long long before = fault_vfs.read_bytes;
    for (int i = 0; i < LOOKED_UP; i++) {
        snprintf(name, sizeof(name), "packet %d is absent", nth(i));
        assert_int_equal(
            commit_one(&scene.world, new_document(ENV_A, DOC_PACKET, name, "")), STORE_OK);
    }
    assert_true(fault_vfs.read_bytes - before < 4LL * LOOKED_UP * BODY);
    bytes_unref(body);
}

static void on_walked(struct store_read *read, enum store_status status)
{
    (void)read;
    assert_int_equal(status, STORE_OK);
    scene.done = true;
}

/* Walks as a start does: unfinished runs first, then the others. */
static size_t walk(enum walk_kind kind)
{
    struct store_walk req = {
        .read = { READ_WALK, ENV_A, on_walked },
        .kind = kind,
        .up_to = UINT64_MAX,
        .limit = 100,
    };
    size_t found = 0;
    do {
        scene.done = false;
        scene.world.store->ops->read(scene.world.store, &req.read);
        while (!scene.done)
            turn(&scene.world);
        if (req.count)
            req.after = req.runs[req.count - 1].rev;
        found += req.count;
        store_read_finish(&req.read);
    } while (req.more);
    return found;
}

static void start_reads_each_row_once(void **state)
{
    (void)state;
    long long before = fault_vfs.read_bytes;
    assert_int_equal(walk(WALK_UNFINISHED), RUNS);
    assert_int_equal(walk(WALK_SETTLED), 0);
    assert_true(fault_vfs.read_bytes - before < 3LL * RUNS * BODY / 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_is_found_without_the_bodies_of_others),
        TEST(a_document_is_found_without_the_bodies_of_others),
        TEST(start_reads_each_row_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
