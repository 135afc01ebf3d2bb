/* The schema that a task declares for its payload: kept for display while it is small. */
#include "tests/support/world/unit.h"

#include "api/registration/registration.h"
#include "base/mem.h"
#include "core/fleet/fleet.h"

/* Feeds tasks a0, a1, … whose schemas take `bytes` each together with their names. */
static void feed_schemas(struct registration_reader *reader, size_t count, size_t bytes)
{
    struct failure why = { 0 };
    struct buf body = { 0 };
    buf_add_text(&body, "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[");
    for (size_t i = 0; i < count; i++) {
        buf_print(&body, "%s{\"payloadSchema\":{\"\":\"", i ? "," : "");
        size_t frame = strlen("\"payloadSchema\":{\"\":\"\"}");
        memset(buf_reserve(&body, bytes - frame), 'x', bytes - frame);
        body.len += bytes - frame;
        buf_print(&body, "\"},\"id\":\"a%03zu\"}", i);
    }
    buf_add_text(&body, "]}}");
    assert_int_equal(registration_feed(reader, buf_slice(&body), &why), OK);
    assert_int_equal(registration_end(reader, &why), OK);
    buf_finish(&body);
}

/* Returns how many tasks keep their schema; these are the first ones. Reading the document
 * again gives the same number. */
static size_t count_schemas(size_t count, size_t bytes)
{
    struct registration_reader reader;
    struct registration made = { 0 }, stored = { 0 };
    struct failure why = { 0 };
    size_t kept = 0;
    registration_reader_init(&reader);
    feed_schemas(&reader, count, bytes);
    while (!made.worker)
        assert_int_equal(registration_read_next(&reader, &made, &why), OK);
    assert_int_equal(made.worker->task_count, count);
    while (kept < count && made.worker->tasks[kept].schema)
        kept++;
    struct bytes *document = registration_write(&made);
    assert_int_equal(registration_restore(bytes_slice(document), &stored, &why), OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(stored.worker->tasks[i].schema != NULL, i < kept);
        if (i < kept)
            assert_true(slice_equal(bytes_slice(stored.worker->tasks[i].schema),
                                    bytes_slice(made.worker->tasks[i].schema)));
    }
    bytes_unref(document);
    registration_finish(&made);
    registration_finish(&stored);
    registration_reader_finish(&reader);
    return kept;
}

static void a_schema_is_kept_while_it_is_small(void **state)
{
    (void)state;
    assert_int_equal(count_schemas(3, 100), 3);
    assert_int_equal(count_schemas(2, SCHEMA_MAX), 2);
    assert_int_equal(count_schemas(2, SCHEMA_MAX + 1), 0);
    assert_int_equal(count_schemas(200, SCHEMA_MAX), SCHEMAS_MAX / SCHEMA_MAX);
}

/* A schema may contain texts that a JSON tree cannot hold. */
static void a_schema_may_hold_any_text(void **state)
{
    (void)state;
    struct registration_reader reader;
    struct registration made = { 0 };
    struct failure why = { 0 };
    struct slice body = SLICE("{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[{"
                              "\"payloadSchema\":{\"const\":\"\\u0000\"},"
                              "\"id\":\"a\"},{\"id\":\"b\",\"payloadSchema\":"
                              "[1]}]}}");
    registration_reader_init(&reader);
    for (size_t i = 0; i < body.len; i++)
        assert_int_equal(
            registration_feed(&reader, (struct slice){ body.ptr + i, 1 }, &why), OK);
    assert_int_equal(registration_end(&reader, &why), OK);
    while (!made.worker)
        assert_int_equal(registration_read_next(&reader, &made, &why), OK);
    registration_reader_finish(&reader);
    assert_true(
        slice_is(bytes_slice(made.worker->tasks[0].schema), "{\"const\":\"\\u0000\"}"));
    assert_null(made.worker->tasks[1].schema);
    registration_finish(&made);
}

/* Its neighbors are unaffected, wherever the schema is in its task and however long. */
static void only_the_long_schema_is_dropped(void **state)
{
    (void)state;
    static const char *const orders[] = {
        "{\"payloadSchema\":%s,\"id\":\"b\",\"ttl\":5}",
        "{\"id\":\"b\",\"payloadSchema\":%s,\"ttl\":5}",
        "{\"id\":\"b\",\"ttl\":5,\"payloadSchema\":%s}",
    };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct registration_reader reader;
        struct registration made = { 0 };
        struct failure why = { 0 };
        struct buf body = { 0 }, schema = { 0 };
        buf_add_text(&schema, "{\"enum\":[");
        while (schema.len < 64 * SCHEMA_MAX)
            buf_add_text(&schema, "\"x,]}\",");
        buf_add_text(&schema, "0]}");
        buf_add_text(&body, "{\"metadata\":{\"contentHash\":\"h\",\"tasks\":[{\"id\":\"a\","
                            "\"payloadSchema\":{\"a\":1}},");
        for (const char *c = orders[i]; *c; c++)
            if (c[0] == '%' && c++)
                buf_add(&body, buf_slice(&schema));
            else
                buf_add_char(&body, *c);
        buf_add_text(&body, ",{\"payloadSchema\":{\"b\":2},\"id\":\"c\"}]}}");
        registration_reader_init(&reader);
        assert_int_equal(registration_feed(&reader, buf_slice(&body), &why), OK);
        assert_int_equal(registration_end(&reader, &why), OK);
        while (!made.worker)
            assert_int_equal(registration_read_next(&reader, &made, &why), OK);
        assert_int_equal(made.worker->task_count, 3);
        assert_true(slice_is(bytes_slice(made.worker->tasks[0].schema), "{\"a\":1}"));
        assert_null(made.worker->tasks[1].schema);
        assert_true(slice_is(bytes_slice(made.worker->tasks[1].id), "b"));
        assert_true(slice_is(bytes_slice(made.worker->tasks[2].schema), "{\"b\":2}"));
        registration_finish(&made);
        registration_reader_finish(&reader);
        buf_finish(&body);
        buf_finish(&schema);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema_is_kept_while_it_is_small),
        cmocka_unit_test(a_schema_may_hold_any_text),
        cmocka_unit_test(only_the_long_schema_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
