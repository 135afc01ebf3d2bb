/* The document of a batch contains all of it; its status follows from its runs. */
#include "api/batches/batch.h"

#include "base/mem.h"
#include "base/vault/vault.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/unit.h"

static struct document document_of(const struct batch *batch)
{
    return (struct document){ .kind = DOC_BATCH,
                              .version = batch->version + 1,
                              .name = bytes_create(slice_of(batch->id)),
                              .body = batch_write(batch) };
}

static void assert_text(const struct bytes *text, const struct bytes *expected)
{
    assert_int_equal(text == NULL, expected == NULL);
    assert_true(slice_equal(bytes_slice(text), bytes_slice(expected)));
}

static void assert_comes_back(const struct batch *batch)
{
    struct batch read;
    struct document document = document_of(batch);
    assert_int_equal(batch_read(&document, &read), OK);
    assert_string_equal(read.id, batch->id);
    assert_int_equal(read.version, batch->version + 1);
    assert_int_equal(read.run_count, batch->run_count);
    assert_int_equal(read.created_at, batch->created_at);
    assert_int_equal(read.updated_at, batch->updated_at);
    assert_int_equal(read.sealed_at, batch->sealed_at);
    assert_int_equal(read.resume, batch->resume);
    assert_int_equal(read.complete, batch->complete);
    assert_text(read.parent, batch->parent);
    assert_text(read.key, batch->key);
    assert_text(read.token, batch->token);
    assert_int_equal(read.count, batch->count);
    for (size_t i = 0; i < read.count; i++) {
        assert_string_equal(read.runs[i].id, batch->runs[i].id);
        assert_text(read.runs[i].task, batch->runs[i].task);
        assert_text(read.runs[i].key, batch->runs[i].key);
    }
    assert_int_equal(read.error_count, batch->error_count);
    for (size_t i = 0; i < read.error_count; i++) {
        assert_int_equal(read.errors[i].index, batch->errors[i].index);
        assert_text(read.errors[i].task, batch->errors[i].task);
    }
    batch_finish(&read);
    document_finish(&document);
}

static struct batch make(uint32_t run_count)
{
    struct batch batch = { .id = "batch_a", .run_count = run_count, .created_at = 1000 };
    batch.updated_at = batch.created_at;
    batch.runs = mem_new_array(struct batch_run, run_count);
    batch.errors = mem_new_array(struct batch_error, run_count);
    return batch;
}

static void add_run(struct batch *batch, const char *id)
{
    snprintf(batch->runs[batch->count++].id, ID_MAX, "%s", id);
}

static void add_error(struct batch *batch, uint32_t index)
{
    batch->errors[batch->error_count++] =
        (struct batch_error){ index, bytes_create(SLICE("hello")) };
}

static void batch_is_read_as_it_was_written(void **state)
{
    unsigned char hash[HASH_LEN];
    (void)state;
    struct batch empty = make(2);
    assert_comes_back(&empty);
    batch_finish(&empty);

    struct batch batch = make(5);
    vault_hash(SLICE("secret"), hash);
    batch.version = 7;
    batch.updated_at = INT64_C(1732000000001);
    batch.sealed_at = INT64_C(1732000000000);
    batch.resume = true;
    batch.parent = bytes_create(SLICE("run_parent"));
    batch.key = bytes_create(SLICE("a \"key\""));
    batch.token = bytes_create((struct slice){ (const char *)hash, HASH_LEN });
    add_run(&batch, "run_a"); /* plain, with its task, and with its key too */
    add_run(&batch, "run_b");
    batch.runs[1].task = bytes_create(SLICE("a \"task\""));
    add_run(&batch, "run_c");
    batch.runs[2].task = bytes_create(SLICE("hello"));
    batch.runs[2].key = bytes_create(SLICE("k"));
    add_error(&batch, 3);
    add_error(&batch, 4);
    assert_comes_back(&batch);
    batch.complete = true;
    batch.resume = false;
    assert_comes_back(&batch);
    batch_finish(&batch);
}

static void invalid_document_is_rejected(void **state)
{
#define TIMES "\"createdAt\":1,\"updatedAt\":1,\"sealedAt\":0"
    static const char *const bodies[] = {
        "",
        "{",
        "{}",
        "{\"id\":\"batch_a\",\"runCount\":1,\"createdAt\":1,\"updatedAt\":1}",
        "{\"id\":1,\"runCount\":1," TIMES "}",
        "{\"id\":\"batch_of_a_name_that_no_id_can_have_at_all\",\"runCount\":1," TIMES "}",
        "{\"id\":\"batch_a\",\"runCount\":\"1\"," TIMES "}",
        "{\"id\":\"batch_a\",\"runCount\":2," TIMES
        ",\"runs\":[[\"run_a\",\"t\",\"k\"],1]}",
        "{\"id\":\"batch_a\",\"runCount\":2," TIMES ",\"runs\":[[]]}",
        "{\"id\":\"batch_a\",\"runCount\":2," TIMES
        ",\"errors\":[[1,\"t\"],[\"1\",\"t\"]]}",
        "{\"id\":\"batch_a\",\"runCount\":2," TIMES ",\"errors\":[[1]]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct batch untouched = { .version = 42 };
        struct document document = { .body = bytes_create(slice_of(bodies[i])) };
        assert_int_equal(batch_read(&document, &untouched), ERR_INTERNAL);
        assert_int_equal(untouched.version, 42);
        document_finish(&document);
    }
}

/* ---- status ---- */

static void status_follows_from_the_runs_in_memory(void **state)
{
    struct world *world = world_create(NULL);
    struct batch batch = make(3);
    (void)state;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered run = trigger(world, (struct wish){ 0 });
    assert_string_equal(batch_status(&batch, world->env), "PENDING"); /* waits for items */
    add_run(&batch, run.id);
    add_run(&batch, "run_that_has_left_memory");
    batch.sealed_at = 1;
    assert_string_equal(batch_status(&batch, world->env), "PENDING");
    add_error(&batch, 2);
    assert_string_equal(batch_status(&batch, world->env), "PARTIAL_FAILED");
    assert_int_equal(cancel(world, run.id), OK);
    assert_string_equal(batch_status(&batch, world->env), "COMPLETED");
    batch_finish(&batch);
    world_destroy(world);
}

static void batch_of_older_runs_is_complete_and_of_errors_aborted(void **state)
{
    struct world *world = world_create(NULL);
    struct batch batch = make(2);
    (void)state;
    struct triggered run = trigger(world, (struct wish){ 0 });
    batch.sealed_at = 1;
    add_error(&batch, 0);
    assert_string_equal(batch_status(&batch, world->env), "ABORTED");
    add_run(&batch, run.id);
    batch.complete = true;
    assert_string_equal(batch_status(&batch, world->env), "COMPLETED");
    batch_finish(&batch);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_is_read_as_it_was_written),
        cmocka_unit_test(invalid_document_is_rejected),
        cmocka_unit_test(status_follows_from_the_runs_in_memory),
        cmocka_unit_test(batch_of_older_runs_is_complete_and_of_errors_aborted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
