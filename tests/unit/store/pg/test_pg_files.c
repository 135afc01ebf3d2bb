/* Files in PostgreSQL: complete or missing, written by the leader alone, whatever is lost.
 *
 * Each case has its own schema on one server, which the program starts. */
#include <stdio.h>
#include <uv.h>

#include "base/mem.h"
#include "store/pg/pg_store.h"
#include "tests/support/contract/store_contract.h"
#include "tests/support/world/pg_world.h"

enum { PROCESSES = 2, TIMEOUT_MS = 600000 };

struct process {
    struct store *store;
    struct store_file req;
    bool done, closed;
    unsigned moved;
};

static struct {
    uv_loop_t loop;
    char schema[32];
    struct process all[PROCESSES];
    char content[3 * FILE_PIECE_BYTES]; /* all pieces differ */
} scene;

static void wait_for(const bool *done)
{
    while (!*done)
        uv_run(&scene.loop, UV_RUN_ONCE);
}

static void on_moved(void *owner)
{
    ((struct process *)owner)->moved++;
}

static struct process *start_with(int which, const char *url, unsigned timeout_ms)
{
    static const char *const names[PROCESSES] = { "a", "b" };
    struct process *process = &scene.all[which];
    struct failure why = { 0 };
    struct pg_options options = { .database = url,
                                  .schema = scene.schema,
                                  .name = names[which],
                                  .timeout_ms = timeout_ms,
                                  .stands_by = which != 0 };
    *process = (struct process){ 0 };
    if (pg_store_open(&scene.loop, &options, &process->store, &why))
        fail_msg("%s", why.text);
    process->store->on_moved = on_moved;
    process->store->moved_owner = process;
    return process;
}

static struct process *start(int which, const char *url)
{
    return start_with(which, url, TIMEOUT_MS);
}

static void on_closed(struct store *store)
{
    for (int i = 0; i < PROCESSES; i++)
        if (scene.all[i].store == store)
            scene.all[i].closed = true;
}

static void end(struct process *process)
{
    process->store->ops->close(process->store, on_closed);
    wait_for(&process->closed);
    process->store = NULL;
}

static int open_scene(void **state)
{
    static int count;
    (void)state;
    memset(&scene, 0, sizeof(scene));
    uv_loop_init(&scene.loop);
    snprintf(scene.schema, sizeof(scene.schema), "case_%d", ++count);
    for (size_t i = 0; i < sizeof(scene.content); i++)
        scene.content[i] = (char)(i / 7 + i / FILE_PIECE_BYTES);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    for (int i = 0; i < PROCESSES; i++)
        if (scene.all[i].store)
            end(&scene.all[i]);
    assert_int_equal(uv_loop_close(&scene.loop), 0);
    return 0;
}

/* Returns the result of a statement; the schema's name is put between the two texts. */
static const char *ask(const char *before, const char *behind)
{
    char sql[512];
    snprintf(sql, sizeof(sql), "%s%s%s", before, scene.schema, behind);
    return pg_world_ask(sql);
}

/* ---- requests ---- */

static void on_done(struct store_file *req, enum store_status status)
{
    struct process *process = container_of(req, struct process, req);
    assert_int_equal(status, req->status);
    process->done = true;
}

static enum store_status request(struct process *process, struct store_file req)
{
    process->req = req;
    process->req.done = on_done;
    process->done = false;
    process->store->ops->file(process->store, &process->req);
    assert_false(process->done); /* not called from within the call */
    wait_for(&process->done);
    return process->req.status;
}

static struct store_file_name name_of(uint32_t env, const char *text)
{
    struct store_file_name name = { .env = env };
    snprintf(name.text, sizeof(name.text), "%s", text);
    return name;
}

static enum store_status put(struct process *process, const char *name, uint32_t piece,
                             size_t size)
{
    size_t at = (size_t)piece * FILE_PIECE_BYTES, left = size > at ? size - at : 0;
    size_t len = left < FILE_PIECE_BYTES ? left : FILE_PIECE_BYTES;
    return request(process, (struct store_file){ .step = FILE_PUT,
                                                 .name = name_of(ENV_A, name),
                                                 .piece = piece,
                                                 .size = (int64_t)size,
                                                 .content = { scene.content + at, len } });
}

/* Puts all pieces of a file in order. */
static void put_all(struct process *process, const char *name, size_t size)
{
    uint32_t count = store_file_pieces((int64_t)size);
    for (uint32_t i = 1; i <= count; i++)
        assert_int_equal(put(process, name, i % count, size), STORE_OK);
}

static enum store_status get(struct process *process, const char *name, uint32_t piece)
{
    return request(process, (struct store_file){ .step = FILE_GET,
                                                 .name = name_of(ENV_A, name),
                                                 .piece = piece });
}

static void assert_is_there(struct process *process, const char *name, size_t size)
{
    for (uint32_t i = 0; i < store_file_pieces((int64_t)size); i++) {
        size_t at = (size_t)i * FILE_PIECE_BYTES;
        size_t len = size - at < FILE_PIECE_BYTES ? size - at : FILE_PIECE_BYTES;
        assert_int_equal(get(process, name, i), STORE_OK);
        assert_int_equal(process->req.size, size);
        assert_int_equal(process->req.body->len, len);
        assert_memory_equal(process->req.body->data, scene.content + at, len);
        bytes_unref(process->req.body);
    }
}

static enum store_status remove_file(struct process *process, const char *name)
{
    return request(
        process, (struct store_file){ .step = FILE_REMOVE, .name = name_of(ENV_A, name) });
}

/* ---- files ---- */

static void file_is_stored_completely_or_not_at_all(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,
                                    1,
                                    FILE_PIECE_BYTES - 1,
                                    FILE_PIECE_BYTES,
                                    FILE_PIECE_BYTES + 1,
                                    2 * FILE_PIECE_BYTES,
                                    3 * FILE_PIECE_BYTES };
    struct process *a = start(0, pg_world_url());
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char name[32];
        uint32_t count = store_file_pieces((int64_t)sizes[i]);
        snprintf(name, sizeof(name), "file %zu", i);
        for (uint32_t piece = 1; piece < count; piece++) {
            assert_int_equal(put(a, name, piece, sizes[i]), STORE_OK);
            assert_int_equal(get(a, name, piece), STORE_MISSING);
        }
        assert_int_equal(get(a, name, 0), STORE_MISSING);
        assert_int_equal(put(a, name, 0, sizes[i]), STORE_OK);
        assert_is_there(a, name, sizes[i]);
        assert_int_equal(get(a, name, count), STORE_OK); /* after its end */
        assert_int_equal(a->req.body->len, 0);
        bytes_unref(a->req.body);
        assert_int_equal(remove_file(a, name), STORE_OK);
        assert_int_equal(get(a, name, 0), STORE_MISSING);
        assert_int_equal(remove_file(a, name), STORE_OK);
    }
    assert_string_equal(ask("SELECT count(*) FROM ", ".deployed_file"), "0");
}

static void file_without_all_pieces_does_not_appear(void **state)
{
    (void)state;
    struct process *a = start(0, pg_world_url());
    size_t size = sizeof(scene.content);
    assert_int_equal(put(a, "x", 2, size), STORE_OK);
    assert_int_equal(put(a, "x", 0, size), STORE_LOST);
    assert_int_equal(put(a, "x", 1, size - 1), STORE_OK); /* a piece of another file */
    assert_int_equal(put(a, "x", 0, size), STORE_LOST);
    assert_int_equal(get(a, "x", 0), STORE_MISSING);
    assert_int_equal(put(a, "x", 1, size), STORE_OK);
    assert_int_equal(put(a, "x", 0, size), STORE_OK);
    assert_is_there(a, "x", size);
}

static void file_is_replaced_by_a_shorter_one(void **state)
{
    (void)state;
    struct process *a = start(0, pg_world_url());
    put_all(a, "x", sizeof(scene.content));
    put_all(a, "x", 100);
    assert_is_there(a, "x", 100);
    assert_string_equal(ask("SELECT count(*) FROM ", ".deployed_file"), "1");
    end(a);
    assert_is_there(start(0, pg_world_url()), "x", 100);
}

static void invalid_piece_is_rejected_and_the_next_one_accepted(void **state)
{
    (void)state;
    struct process *a = start(0, pg_world_url());
    struct store_file req = { .step = FILE_PUT,
                              .name = name_of(ENV_A, "x"),
                              .size = FILE_PIECE_BYTES + 1,
                              .content = { scene.content, FILE_PIECE_BYTES + 1 } };
    assert_int_equal(put(a, "x", 1, FILE_PIECE_BYTES + 1), STORE_OK);
    assert_int_equal(request(a, req), STORE_FAILED); /* longer than a piece */
    req.content.len = FILE_PIECE_BYTES - 1;
    assert_int_equal(request(a, req), STORE_FAILED); /* shorter, but not the last piece */
    req.piece = 2;
    req.content.len = 0;
    assert_int_equal(request(a, req), STORE_FAILED); /* after the last piece */
    req.piece = UINT32_MAX;
    assert_int_equal(request(a, req), STORE_FAILED);
    req = (struct store_file){ .step = FILE_PUT, .content = SLICE("") };
    assert_int_equal(request(a, req), STORE_FAILED); /* no name */
    put_all(a, "x", FILE_PIECE_BYTES + 1);
    assert_is_there(a, "x", FILE_PIECE_BYTES + 1);
}

static void files_are_listed_in_pages_including_partial_ones(void **state)
{
    (void)state;
    struct process *a = start(0, pg_world_url());
    put_all(a, "two", 2 * FILE_PIECE_BYTES);
    assert_int_equal(put(a, "begun", 1, 2 * FILE_PIECE_BYTES), STORE_OK);
    ask("INSERT INTO ",
        ".deployed_file (env, piece, size, name, body)"
        " SELECT 8, 0, 0, convert_to('f' || lpad(i::text, 4, '0'), 'UTF8'), ''"
        " FROM generate_series(1, 600) i");
    size_t count = 0;
    struct store_file_name after = { 0 };
    do {
        assert_int_equal(
            request(a, (struct store_file){ .step = FILE_LIST, .name = after }), STORE_OK);
        for (size_t i = 0; i < a->req.count; i++, count++) {
            after = a->req.names[i];
            char name[FILE_NAME_MAX];
            snprintf(name, sizeof(name), "f%04zu", count - 1);
            assert_int_equal(after.env, count < 2 ? ENV_A : ENV_B);
            assert_string_equal(after.text, count == 0   ? "begun"
                                            : count == 1 ? "two"
                                                         : name);
        }
        free(a->req.names);
    } while (a->req.count);
    assert_int_equal(count, 602);
}

/* ---- leading ---- */

static void on_led(struct store_lead *req, enum store_status status)
{
    req->status = status;
    req->done = NULL;
}

/* Takes the lead, as if the leader had not beaten for long. */
static void take(struct process *process)
{
    ask("DELETE FROM ", ".gateway WHERE name = 'a'");
    struct store_lead lead = { .done = on_led };
    do {
        lead.done = on_led;
        process->store->ops->lead(process->store, &lead);
        while (lead.done)
            uv_run(&scene.loop, UV_RUN_ONCE);
    } while (lead.status == STORE_FAILED);
    assert_int_equal(lead.status, STORE_OK);
}

static void gateway_that_lost_the_lead_writes_and_removes_no_files(void **state)
{
    (void)state;
    struct process *a = start(0, pg_world_url()), *b = start(1, pg_world_url());
    put_all(a, "x", 2 * FILE_PIECE_BYTES);
    assert_int_equal(put(a, "y", 1, 2 * FILE_PIECE_BYTES), STORE_OK);
    assert_int_equal(put(b, "z", 0, 1), STORE_MOVED);
    take(b);
    assert_is_there(b, "x", 2 * FILE_PIECE_BYTES);
    unsigned moved = a->moved;
    assert_int_equal(put(a, "y", 0, 2 * FILE_PIECE_BYTES), STORE_MOVED);
    assert_true(a->moved > moved);
    assert_int_equal(put(a, "x", 0, 1), STORE_MOVED);
    assert_int_equal(remove_file(a, "x"), STORE_MOVED);
    assert_is_there(b, "x", 2 * FILE_PIECE_BYTES);
    assert_int_equal(get(b, "y", 0), STORE_MISSING);
    put_all(b, "y", 10);
    assert_is_there(b, "y", 10);
}

/* ---- lost messages ---- */

static void file_is_complete_whatever_message_is_lost(void **state)
{
    (void)state;
    static const char *const strikes[] = { "cut", "tear", "double", "ghost" };
    struct process *a = start(0, pg_world_relay_url());
    size_t size = FILE_PIECE_BYTES + 1000;
    unsigned struck = 0;
    put_all(a, "warm", 1);
    for (unsigned i = 0; i < 8; i++) {
        enum pg_side side = i % 2 ? PG_SERVER : PG_CLIENT;
        for (unsigned at = 1; at <= 5; at++) {
            if (i / 2 == 3 && side == PG_SERVER)
                continue; /* only statements become ghosts */
            pg_world_strike(strikes[i / 2], side, at,
                            at % 2 ? "put_piece_v101" : "whole.size");
            put_all(a, "x", size);
            assert_is_there(a, "x", size);
            struck += pg_world_struck();
            pg_world_order("pass");
        }
        pg_world_strike("cut", side, 1, "remove_file_v101");
        assert_int_equal(remove_file(a, "x"), STORE_OK);
        struck += pg_world_struck();
        pg_world_order("pass");
        assert_int_equal(get(a, "x", 0), STORE_MISSING);
    }
    assert_true(struck > 20);
}

static void restart_of_the_server_loses_no_file(void **state)
{
    (void)state;
    struct process *a = start(0, pg_world_url());
    size_t size = sizeof(scene.content);
    assert_int_equal(put(a, "x", 1, size), STORE_OK);
    pg_world_order("stop immediate");
    pg_world_order("start");
    assert_int_equal(put(a, "x", 2, size), STORE_OK);
    assert_int_equal(put(a, "x", 0, size), STORE_OK);
    assert_is_there(a, "x", size);
}

static void silent_database_is_reported(void **state)
{
    (void)state;
    struct process *a = start_with(0, pg_world_relay_url(), 1000);
    while (put(a, "x", 0, 1) != STORE_OK)
        continue; /* the machine may be busy */
    pg_world_order("hold server");
    assert_int_equal(get(a, "x", 0), STORE_FAILED);
    pg_world_order("pass");
    while (get(a, "x", 0) != STORE_OK)
        continue;
    bytes_unref(a->req.body);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(file_is_stored_completely_or_not_at_all),
        TEST(file_without_all_pieces_does_not_appear),
        TEST(file_is_replaced_by_a_shorter_one),
        TEST(invalid_piece_is_rejected_and_the_next_one_accepted),
        TEST(files_are_listed_in_pages_including_partial_ones),
        TEST(gateway_that_lost_the_lead_writes_and_removes_no_files),
        TEST(file_is_complete_whatever_message_is_lost),
        TEST(restart_of_the_server_loses_no_file),
        TEST(silent_database_is_reported),
    };
    return cmocka_run_group_tests(tests, pg_world_set_up, pg_world_tear_down);
}
