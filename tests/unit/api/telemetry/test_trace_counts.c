/* The document of a trace is read as it was written, and names what is missing. */
#include "api/telemetry/trace_counts.h"

#include "tests/support/world/unit.h"

static const struct trace_counts full = { .logs = 7,
                                          .begun = 3,
                                          .ended = 2,
                                          .bytes = 4096,
                                          .pieces = 2,
                                          .lost = { 5, 6, 8, 4 },
                                          .removed = 9,
                                          .removed_at = 1700000000000 };

static void counts_are_read_as_written(void **state)
{
    (void)state;
    struct trace_counts read = { .logs = 99 };
    struct bytes *body = trace_counts_write(&full);
    trace_counts_read(&read, bytes_slice(body));
    assert_memory_equal(&read, &full, sizeof(full));
    bytes_unref(body);
}

static void unknown_documents_count_nothing(void **state)
{
    (void)state;
    static const char *const bodies[] = { "{\"events\":[]}", "[]", "5",
                                          "{\"logs\":-1,\"pieces\":\"x\",\"bytes\":1.5}" };
    const struct trace_counts none = { 0 };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct trace_counts read = full;
        trace_counts_read(&read, slice_of(bodies[i]));
        assert_memory_equal(&read, &none, sizeof(none));
    }
}

static void a_span_with_two_records_is_one_row(void **state)
{
    (void)state;
    assert_int_equal(trace_counts_rows(&full), 10);
    assert_int_equal(trace_counts_rows(&(struct trace_counts){ .begun = 1, .ended = 4 }),
                     4);
}

static void only_missing_parts_are_shown(void **state)
{
    (void)state;
    struct buf out = { 0 };
    const struct trace_counts whole = { .logs = 1, .pieces = 1 };
    buf_add_char(&out, '{');
    trace_counts_show(&whole, &out);
    assert_int_equal(out.len, 1);
    trace_counts_show(&full, &out);
    buf_add_char(&out, '\0');
    assert_string_equal(out.ptr,
                        "{\"dropped\":{\"count\":23,\"limit\":5,\"memory\":6,\"quota\":8,"
                        "\"share\":4},"
                        "\"removed\":{\"count\":9,\"at\":\"2023-11-14T22:13:20.000Z\"}");
    buf_finish(&out);
}

static void pieces_sort_as_they_were_written(void **state)
{
    (void)state;
    char before[ID_MAX], name[ID_MAX];
    struct slice run = SLICE("run_cmabcdefghijklmnopqrstu");
    for (int64_t i = 0; i < 70000; i += 7) {
        trace_piece_name(run, i, name);
        assert_true(!i || strcmp(before, name) < 0);
        memcpy(before, name, sizeof(name));
    }
    assert_string_equal(name, "run_cmabcdefghijklmnopqrstu/011169");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_read_as_written),
        cmocka_unit_test(unknown_documents_count_nothing),
        cmocka_unit_test(a_span_with_two_records_is_one_row),
        cmocka_unit_test(only_missing_parts_are_shown),
        cmocka_unit_test(pieces_sort_as_they_were_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
