/* A run is read from its row as it was written, with notes about its long values. The notes
 * say whether a value is JSON, and how long it is when escaped. */
#include "store/sqlite/sqlite_rows.h"

#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rope.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/support/contract/store_contract.h"

static struct {
    struct sqlite_db db;
    char dir[64], path[96];
} scene;

static int open_scene(void **state)
{
    struct failure why;
    (void)state;
    snprintf(scene.dir, sizeof(scene.dir), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(scene.dir));
    snprintf(scene.path, sizeof(scene.path), "%s/x.db", scene.dir);
    struct sqlite_options options = { .path = scene.path };
    assert_int_equal(sqlite_db_open(&scene.db, &options, SQLITE_WRITER, &why), OK);
    assert_int_equal(sqlite_schema_upgrade(&scene.db, &sqlite_schema, scene.path, &why),
                     OK);
    return 0;
}

static int close_scene(void **state)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };
    char path[128];
    (void)state;
    sqlite_db_close(&scene.db);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", scene.path, suffixes[i]);
        unlink(path);
    }
    return rmdir(scene.dir);
}

/* ---- rows ---- */

static sqlite3_stmt *statement(enum sqlite_statement which, const struct change *change)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(&scene.db, which);
    assert_non_null(stmt);
    sqlite3_bind_int64(stmt, 1, change->env);
    sqlite_bind_text(stmt, 2, slice_of(change->run.id));
    return stmt;
}

static void finish(sqlite3_stmt *stmt)
{
    assert_int_equal(sqlite_db_finish(&scene.db, stmt), SQLITE_OK);
}

static void insert(const struct change *change)
{
    struct buf tags = { 0 };
    run_tags_add(&tags, change->run.tags);
    sqlite3_stmt *stmt = sqlite_db_stmt(&scene.db, SQL_INSERT_RUN);
    sqlite_rows_bind_insert(stmt, change, buf_slice(&tags));
    finish(stmt);
    buf_finish(&tags);
}

static void put_packets(const struct change *change)
{
    const struct run *run = &change->run;
    sqlite3_stmt *stmt = statement(SQL_PUT_PAYLOAD, change);
    sqlite_bind_blob(stmt, 3, run->payload);
    sqlite_bind_text(stmt, 4, bytes_slice(run_rare(run)->payload_type));
    finish(stmt);
    stmt = statement(SQL_PUT_METADATA, change);
    sqlite_bind_blob(stmt, 3, run->metadata);
    sqlite_bind_blob(stmt, 4, run->metadata_seed);
    finish(stmt);
    stmt = statement(SQL_PUT_OUTPUT, change);
    sqlite_bind_blob(stmt, 3, run->output);
    sqlite_bind_text(stmt, 4, bytes_slice(run_rare(run)->output_type));
    sqlite_bind_blob(stmt, 5, run->error);
    finish(stmt);
}

static struct run read_back(const struct change *change, bool packets)
{
    struct run run;
    sqlite3_stmt *stmt = statement(packets ? SQL_LOAD_RUN : SQL_LOAD_METADATA, change);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    sqlite_rows_read(stmt, &run, packets ? STORE_PACKETS : STORE_METADATA);
    sqlite3_reset(stmt);
    return run;
}

static void assert_same_text(const struct bytes *text, const struct bytes *expected)
{
    assert_int_equal(text == NULL, expected == NULL);
    assert_true(slice_equal(bytes_slice(text), bytes_slice(expected)));
}

static void assert_same_tags(const struct tag_list *tags, const struct tag_list *expected)
{
    assert_non_null(tags);
    assert_int_equal(tags->count, expected->count);
    for (uint32_t i = 0; i < tags->count; i++)
        assert_same_text(tags->names[i], expected->names[i]);
}

static struct change plain_run(int n)
{
    return new_run(ENV_A, n, "hello");
}

/* Makes a run in which every column is set. */
static struct change full_run(int n)
{
    static const struct slice tags[] = { SLICE("a"), SLICE("3:b,"), SLICE("\xC3\xA4, 7:") };
    struct change change = plain_run(n);
    struct run *run = &change.run;
    run->tags = tag_list_create(tags, 3);
    run->number = UINT32_MAX;
    run->snapshot = 3;
    run->rev = INT64_MAX;
    run->is_replay = run->from_batch = true;
    run->attempt = UINT16_MAX;
    run->batch_index = 999;
    run->due_at = INT64_C(1732000000000);
    run->cost_cents = 0.1;
    run->worker_version = text_bytes("20260101.1");
    run->batch = text_bytes("batch_a");
    run->metadata = text_bytes("{}");
    run->output = text_bytes("");
    run->error = text_bytes("{\"type\":\"STRING_ERROR\"}");
    struct run_rare *rare = run_rare_edit(run);
    rare->priority_ms = INT32_MIN;
    rare->expired_at = 1;
    rare->parent = text_bytes("run_parent");
    rare->ttl = text_bytes("");
    rare->waits = text_bytes("[]");
    rare->payload_type = text_bytes("text/plain");
    return change;
}

static void run_is_read_as_it_was_written(void **state)
{
    (void)state;
    struct change change = full_run(1);
    insert(&change);
    put_packets(&change);
    struct run run = read_back(&change, true);
    const struct run *written = &change.run;
    assert_string_equal(run.id, written->id);
    assert_same_tags(run.tags, written->tags);
    assert_int_equal(run.number, written->number);
    assert_int_equal(run.snapshot, written->snapshot);
    assert_int_equal(run.rev, written->rev);
    assert_int_equal(run.status, written->status);
    assert_int_equal(run.execution, written->execution);
    assert_true(run.is_replay && run.from_batch);
    assert_false(run.is_test || run.resume_parent || run.key_from_user || run.by_token);
    assert_int_equal(run.attempt, written->attempt);
    assert_int_equal(run.batch_index, written->batch_index);
    assert_int_equal(run.due_at, written->due_at);
    assert_true(run.cost_cents == written->cost_cents);
    assert_same_text(run.worker_version, written->worker_version);
    assert_same_text(run.batch, written->batch);
    assert_same_text(run.payload, written->payload);
    assert_same_text(run.metadata, written->metadata);
    assert_same_text(run.output, written->output); /* empty, not missing */
    assert_same_text(run.error, written->error);
    assert_null(run.metadata_seed);
    assert_int_equal(run_rare(&run)->priority_ms, INT32_MIN);
    assert_int_equal(run_rare(&run)->expired_at, 1);
    assert_same_text(run_rare(&run)->parent, run_rare(written)->parent);
    assert_same_text(run_rare(&run)->ttl, run_rare(written)->ttl);
    assert_same_text(run_rare(&run)->waits, run_rare(written)->waits);
    assert_same_text(run_rare(&run)->payload_type, run_rare(written)->payload_type);
    assert_null(run_rare(&run)->output_type);
    run_finish(&run);
    change_finish(&change);
}

static void run_with_few_values_has_no_rare_part(void **state)
{
    (void)state;
    struct change change = plain_run(1);
    insert(&change);
    put_packets(&change);
    struct run run = read_back(&change, true);
    assert_null(run.rare);
    assert_null(run.tags);
    run_finish(&run);
    change_finish(&change);
}

static void read_without_packets_returns_only_the_metadata(void **state)
{
    (void)state;
    struct change change = full_run(1);
    insert(&change);
    put_packets(&change);
    struct run run = read_back(&change, false);
    assert_same_text(run.metadata, change.run.metadata);
    assert_null(run.payload);
    assert_null(run.output);
    assert_null(run.error);
    assert_null(run_rare(&run)->payload_type);
    run_finish(&run);
    change_finish(&change);
}

/* Columns that never change after the insert keep their values, whatever it contains. */
static void update_writes_changeable_columns_of_the_expected_version(void **state)
{
    (void)state;
    struct change change = plain_run(1);
    change.run.version = 1;
    insert(&change);
    change.run.status = RUN_CANCELED;
    change.run.depth = 9;
    change.run.version = 2;
    for (uint32_t expected = 2; expected > 0; expected--) {
        sqlite3_stmt *stmt = sqlite_db_stmt(&scene.db, SQL_UPDATE_RUN);
        change.expected = expected;
        sqlite_rows_bind_update(stmt, &change);
        finish(stmt);
        assert_int_equal(sqlite3_changes(scene.db.handle), expected == 1);
    }
    struct run run = read_back(&change, true);
    assert_int_equal(run.status, RUN_CANCELED);
    assert_int_equal(run.version, 2);
    assert_int_equal(run.depth, 0);
    run_finish(&run);
    change_finish(&change);
}

/* ---- notes about long values ---- */

/* Makes a JSON string of quotes, len bytes (even), which escaping makes twice as long. cut:
 * its last byte is an x, which is not escaped, so that the value is not JSON. */
static struct bytes *quotes(size_t len, bool cut)
{
    struct bytes *bytes = bytes_create_empty(len);
    for (size_t i = 0; i + 1 < len; i++)
        bytes->data[i] = i == 0 || i % 2 == 0 ? '"' : '\\';
    bytes->data[len - 1] = cut ? 'x' : '"';
    return bytes;
}

static void assert_noted(const struct bytes *value, enum bytes_json json, uint32_t escaped)
{
    assert_int_equal(value->json, json);
    assert_int_equal(value->escaped, escaped);
}

static void long_value_has_a_note_of_json_and_escaped_length(void **state)
{
    (void)state;
    struct change change = plain_run(1);
    bytes_unref(change.run.payload);
    change.run.payload = quotes(ROPE_LONG, false);
    change.run.output = quotes(ROPE_LONG + 2, false);
    change.run.metadata = quotes(ROPE_LONG + 2, true);
    insert(&change);
    put_packets(&change);
    struct run run = read_back(&change, true);
    assert_noted(run.payload, BYTES_JSON, 2 * ROPE_LONG);
    assert_noted(run.output, BYTES_JSON, 2 * (ROPE_LONG + 2));
    assert_noted(run.metadata, BYTES_NO_JSON, 2 * (ROPE_LONG + 2) - 1);
    run_finish(&run);
    run = read_back(&change, false);
    assert_noted(run.metadata, BYTES_NO_JSON, 2 * (ROPE_LONG + 2) - 1);
    run_finish(&run);
    change_finish(&change);
}

/* Checking a short value when it is shown is just as fast, and most are never shown. */
static void short_value_has_no_note(void **state)
{
    (void)state;
    struct change change = plain_run(1);
    change.run.output = quotes(ROPE_LONG - 2, false);
    insert(&change);
    put_packets(&change);
    struct run run = read_back(&change, true);
    assert_noted(run.payload, BYTES_UNKNOWN, 0);
    assert_noted(run.output, BYTES_UNKNOWN, 0);
    run_finish(&run);
    change_finish(&change);
}

/* ---- sizes and tags ---- */

/* Sizes in bytes, not characters, including those after a NUL. */
static void size_of_texts_in_sql_equals_their_size_in_memory(void **state)
{
    (void)state;
    struct change change = full_run(1);
    bytes_unref(run_rare_edit(&change.run)->parent);
    run_rare_edit(&change.run)->parent = bytes_create(SLICE("\xC3\xA4\0b"));
    insert(&change);
    struct buf sql = { 0 };
    sqlite3_stmt *stmt;
    buf_add_text(&sql, "SELECT ");
    sqlite_rows_add_size(&sql);
    buf_add_text(&sql, " FROM run");
    assert_int_equal(
        sqlite3_prepare_v2(scene.db.handle, sql.ptr, (int)sql.len, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t size = run_columns_size(&change.run, COLUMN_TEXTS_ALL);
    assert_int_equal(sqlite3_column_int64(stmt, 0), size);
    /* task, queue, version, batch, parent, waits */
    assert_int_equal(size, 5 + 8 + 10 + 7 + 4 + 2);
    /* Task, batch and parent never change. */
    assert_int_equal(run_columns_size(&change.run, COLUMN_TEXTS_CHANGING), 8 + 10 + 2);
    sqlite3_finalize(stmt);
    buf_finish(&sql);
    change_finish(&change);
}

static void invalid_list_of_tags_ends_the_reading(void **state)
{
    static const char *const texts[] = { "",       "3",     "3:one", "4:one,",
                                         "x:one,", ":one,", "-1:," };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct slice text = slice_of(texts[i]), tag;
        assert_false(run_tags_next(&text, &tag));
    }
    struct slice text = SLICE("0:,3:one,"), tag;
    assert_true(run_tags_next(&text, &tag));
    assert_int_equal(tag.len, 0);
    assert_true(run_tags_next(&text, &tag));
    assert_true(slice_is(tag, "one"));
    assert_false(run_tags_next(&text, &tag));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_is_read_as_it_was_written),
        TEST(run_with_few_values_has_no_rare_part),
        TEST(read_without_packets_returns_only_the_metadata),
        TEST(update_writes_changeable_columns_of_the_expected_version),
        TEST(long_value_has_a_note_of_json_and_escaped_length),
        TEST(short_value_has_no_note),
        TEST(size_of_texts_in_sql_equals_their_size_in_memory),
        cmocka_unit_test(invalid_list_of_tags_ends_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
