/* A waitpoint's document has all of it, and the time since when retention may remove it. */
#include "core/model/waitpoint.h"
#include "tests/support/world/unit.h"

enum { ENV = 7 };

static struct document document_of(const struct change *change)
{
    struct document document = change->document;
    document.version = change->expected + 1;
    return document;
}

static void assert_text(const struct bytes *text, const struct bytes *expected)
{
    assert_int_equal(text == NULL, expected == NULL);
    assert_true(slice_equal(bytes_slice(text), bytes_slice(expected)));
}

static void assert_same(const struct waitpoint *one, const struct waitpoint *other)
{
    assert_string_equal(one->id, other->id);
    assert_int_equal(one->is_time, other->is_time);
    assert_int_equal(one->created_at, other->created_at);
    assert_int_equal(one->completed_at, other->completed_at);
    assert_int_equal(one->until, other->until);
    assert_int_equal(one->key_expires_at, other->key_expires_at);
    assert_int_equal(one->from, other->from);
    assert_text(one->key, other->key);
    assert_text(one->output_type, other->output_type);
    assert_text(one->run, other->run);
    assert_text(one->stream, other->stream);
    uint32_t count = one->tags ? one->tags->count : 0;
    assert_int_equal(count, other->tags ? other->tags->count : 0);
    for (uint32_t i = 0; i < count; i++)
        assert_text(one->tags->names[i], other->tags->names[i]);
}

/* Written and read, whole and without its output, the waitpoint is the same. */
static void assert_comes_back(const struct waitpoint *waitpoint)
{
    struct waitpoint read, head;
    struct change change = waitpoint_change(waitpoint, ENV);
    struct document document = document_of(&change);
    assert_int_equal(change.env, ENV);
    assert_int_equal(change.expected, waitpoint->version);
    assert_int_equal(document.kind, DOC_WAITPOINT);
    assert_string_equal(document.name->data, waitpoint->id);
    assert_int_equal(waitpoint_read(&document, &read), OK);
    assert_same(&read, waitpoint);
    assert_text(read.output, waitpoint->output);
    assert_int_equal(read.version, waitpoint->version + 1);
    assert_int_equal(waitpoint_read_head(&document, &head), OK);
    assert_same(&head, waitpoint);
    assert_null(head.output);
    assert_int_equal(waitpoint_is_completed(&document), waitpoint->completed_at > 0);
    waitpoint_finish(&read);
    waitpoint_finish(&head);
    change_finish(&change);
}

static struct waitpoint pending(void)
{
    return (struct waitpoint){ .id = "waitpoint_a", .created_at = 1000 };
}

static void waitpoint_is_read_as_it_was_written(void **state)
{
    static const struct slice tags[] = { SLICE("a"), SLICE("\"b\"") };
    (void)state;
    struct waitpoint plain = pending();
    assert_comes_back(&plain);
    struct waitpoint token = pending();
    token.version = 3;
    token.completed_at = INT64_C(1732000000000);
    token.until = 2000;
    token.key_expires_at = 3000;
    token.key = bytes_create(SLICE("k \xC3\xA4"));
    token.output_type = bytes_create(SLICE("application/store"));
    token.tags = tag_list_create(tags, 2);
    token.run = bytes_create(SLICE("run_a"));
    token.stream = bytes_create(SLICE("s"));
    token.from = INT64_C(9007199254740993);
    waitpoint_set_output(&token, SLICE("{\"a\": \"\\n\"}"));
    assert_comes_back(&token);
    waitpoint_finish(&token);
    struct waitpoint time = pending();
    time.is_time = true;
    time.until = INT64_MAX;
    assert_comes_back(&time);
}

/* The output is found by its name, which cannot be imitated inside a text. */
static void key_that_resembles_an_output_is_read_as_a_key(void **state)
{
    (void)state;
    struct waitpoint token = pending();
    token.key = bytes_create(SLICE("x,\"output\":\"y\"}"));
    assert_comes_back(&token);
    waitpoint_set_output(&token, SLICE(",\"output\":1"));
    assert_comes_back(&token);
    waitpoint_finish(&token);
}

static void output_is_kept_as_a_json_string_and_can_be_replaced(void **state)
{
    (void)state;
    struct waitpoint token = pending();
    waitpoint_set_output(&token, SLICE("1"));
    waitpoint_set_output(&token, SLICE("\"a\""));
    assert_string_equal(token.output->data, "\"\\\"a\\\"\"");
    waitpoint_finish(&token);
    assert_null(token.output);
}

/* Retention uses stale_at; a token that a run waits for stays whatever that is. */
static void waitpoint_is_stale_since_its_end_or_its_creation(void **state)
{
    static const struct {
        int64_t until, completed_at, stale_at;
    } cases[] = {
        { 0, 0, 1000 },
        { 5000, 0, 5000 },
        { 0, 3000, 3000 },
        { 5000, 3000, 3000 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct waitpoint token = pending();
        token.until = cases[i].until;
        token.completed_at = cases[i].completed_at;
        struct change change = waitpoint_change(&token, ENV);
        assert_int_equal(change.document.stale_at, cases[i].stale_at);
        change_finish(&change);
    }
}

static void waitpoint_has_ended_when_completed_or_when_its_time_has_come(void **state)
{
    (void)state;
    struct waitpoint token = pending();
    assert_false(waitpoint_is_over(&token, INT64_MAX));
    token.until = 5000;
    assert_false(waitpoint_is_over(&token, 4999));
    assert_true(waitpoint_is_over(&token, 5000));
    token.completed_at = 3000;
    assert_true(waitpoint_is_over(&token, 3000));
}

/* Nothing will complete it, so no run may wait for it. */
static void invalid_document_is_rejected_and_counts_as_completed(void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"createdAt\":1,\"completedAt\":0,\"until\":0,\"tags\":[]}",
        "{\"createdAt\":1,\"completedAt\":0,\"until\":0,\"keyExpiresAt\":0}",
        "{\"createdAt\":\"\",\"completedAt\":0,\"until\":0,\"keyExpiresAt\":0,\"tags\":[]}",
        "{\"createdAt\":1,\"completedAt\":0,\"until\":0,\"keyExpiresAt\":0,\"tags\":{}}"
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct waitpoint untouched = { .version = 42 };
        struct document document = { .kind = DOC_WAITPOINT,
                                     .name = bytes_create(SLICE("waitpoint_a")),
                                     .body = bytes_create(slice_of(bodies[i])) };
        assert_int_equal(waitpoint_read(&document, &untouched), ERR_INTERNAL);
        assert_int_equal(waitpoint_read_head(&document, &untouched), ERR_INTERNAL);
        assert_int_equal(untouched.version, 42);
        assert_true(waitpoint_is_completed(&document));
        document_finish(&document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waitpoint_is_read_as_it_was_written),
        cmocka_unit_test(key_that_resembles_an_output_is_read_as_a_key),
        cmocka_unit_test(output_is_kept_as_a_json_string_and_can_be_replaced),
        cmocka_unit_test(waitpoint_is_stale_since_its_end_or_its_creation),
        cmocka_unit_test(waitpoint_has_ended_when_completed_or_when_its_time_has_come),
        cmocka_unit_test(invalid_document_is_rejected_and_counts_as_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
