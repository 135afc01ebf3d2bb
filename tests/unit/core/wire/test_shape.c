/* A run as the row of a table: values that SDKs must not see are corrected. */
#include "tests/support/world/unit.h"

#include "base/json/scan.h"
#include "base/text.h"
#include "core/wire/render.h"
#include "core/wire/shape.h"

static const struct view v4 = { .encoding = ENCODING_SHAPE,
                                .vocabulary = VOCABULARY_B,
                                .fields = FIELDS_ALL };
static const struct view v3 = { .encoding = ENCODING_SHAPE,
                                .vocabulary = VOCABULARY_A,
                                .fields = FIELDS_ALL };

static struct run make_run(void)
{
    struct run run = { .id = "run_a",
                       .number = 7,
                       .version = 1,
                       .rev = 5,
                       .whole_rev = 5,
                       .status = RUN_QUEUED,
                       .created_at = 1704067200123,
                       .updated_at = 1704067200123 };
    run.task = bytes_create(SLICE("mail"));
    return run;
}

/* The decoded text of a column in a whole row; "null" for null. */
static void column_of(const struct view *view, const struct run *run, const char *name,
                      struct buf *text)
{
    struct buf row = { 0 };
    render_whole(view, run, &row);
    assert_true(scan_is_json(buf_slice(&row)));
    struct slice value = scan_member(scan_member(buf_slice(&row), "value"), name);
    assert_true(value.len > 0);
    buf_clear(text);
    if (scan_type(value) == SCAN_STRING)
        assert_true(scan_string(value, text));
    else
        buf_add(text, value);
    buf_add_char(text, '\0');
    buf_finish(&row);
}

static void assert_column(const struct view *view, const struct run *run, const char *name,
                          const char *expected)
{
    struct buf text = { 0 };
    column_of(view, run, name, &text);
    assert_string_equal(text.ptr, expected);
    buf_finish(&text);
}

static void statuses_newer_than_sdk_3_are_mapped_to_its_own(void **state)
{
    (void)state;
    static const struct {
        enum run_status status;
        const char *new, *old;
    } cases[] = {
        { RUN_DELAYED, "DELAYED", "DELAYED" },
        { RUN_PENDING_VERSION, "PENDING_VERSION", "WAITING_FOR_DEPLOY" },
        { RUN_QUEUED, "PENDING", "PENDING" },
        { RUN_DEQUEUED, "DEQUEUED", "EXECUTING" },
        { RUN_EXECUTING, "EXECUTING", "EXECUTING" },
        { RUN_RETRYING, "RETRYING_AFTER_FAILURE", "RETRYING_AFTER_FAILURE" },
        { RUN_WAITING, "WAITING_TO_RESUME", "WAITING_TO_RESUME" },
        { RUN_CANCELED, "CANCELED", "CANCELED" },
        { RUN_COMPLETED, "COMPLETED_SUCCESSFULLY", "COMPLETED_SUCCESSFULLY" },
        { RUN_FAILED, "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_ERRORS" },
        { RUN_INTERRUPTED, "INTERRUPTED", "INTERRUPTED" },
        { RUN_CRASHED, "CRASHED", "CRASHED" },
        { RUN_SYSTEM_FAILURE, "SYSTEM_FAILURE", "SYSTEM_FAILURE" },
        { RUN_EXPIRED, "EXPIRED", "EXPIRED" },
        { RUN_TIMED_OUT, "TIMED_OUT", "TIMED_OUT" },
    };
    struct run run = make_run();
    assert_int_equal(sizeof(cases) / sizeof(cases[0]), RUN_STATUS_COUNT);
    for (size_t i = 0; i < RUN_STATUS_COUNT; i++) {
        run.status = (uint8_t)cases[i].status;
        assert_column(&v4, &run, "status", cases[i].new);
        assert_column(&v3, &run, "status", cases[i].old);
    }
    run_finish(&run);
}

static void errors_are_mapped_to_types_and_codes_that_the_sdk_knows(void **state)
{
    (void)state;
    static const struct {
        const char *stored, *new, *old; /* old NULL: the same */
    } cases[] = {
        { "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"E\",\"message\":\"m\",\"stackTrace\":"
          "\"s\"}",
          "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"E\",\"message\":\"m\",\"stackTrace\":"
          "\"s\"}",
          NULL },
        { "{\"type\":\"BUILT_IN_ERROR\",\"name\":5}",
          "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"Error\",\"message\":\"\",\"stackTrace\":"
          "\"\"}",
          NULL },
        { "{\"type\":\"STRING_ERROR\",\"raw\":\"a\\u00e9\"}",
          "{\"type\":\"STRING_ERROR\",\"raw\":\"a\\u00e9\"}", NULL },
        { "{\"type\":\"CUSTOM_ERROR\"}", "{\"type\":\"CUSTOM_ERROR\",\"raw\":\"\"}", NULL },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_CANCELLED\",\"message\":\"m\"}",
          "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_CANCELLED\",\"message\":\"m\"}",
          NULL },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_STALLED_EXECUTING\"}",
          "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_STALLED_EXECUTING\"}",
          "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_EXECUTION_FAILED\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"OF_NEXT_YEAR\",\"message\":1}",
          "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_EXECUTION_FAILED\"}", NULL },
        { "{\"type\":\"OTHER\"}",
          "{\"type\":\"STRING_ERROR\",\"raw\":\"{\\\"type\\\":\\\"OTHER\\\"}\"}", NULL },
        { "\"text\"", "{\"type\":\"STRING_ERROR\",\"raw\":\"\\\"text\\\"\"}", NULL },
    };
    struct run run = make_run();
    assert_column(&v4, &run, "error", "null");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bytes_clear(&run.error);
        run.error = bytes_create(slice_of(cases[i].stored));
        assert_column(&v4, &run, "error", cases[i].new);
        assert_column(&v3, &run, "error", cases[i].old ? cases[i].old : cases[i].new);
    }
    run_finish(&run);
}

static void content_that_does_not_fit_its_type_is_shown_as_text(void **state)
{
    (void)state;
    static const struct {
        const char *content, *type, *shown; /* type NULL: application/json */
    } cases[] = {
        { "{\"a\":1}", NULL, "application/json" },
        { "{\"a\":", NULL, "text/plain" },
        { "{\"json\":1}", "application/super+json", "application/super+json" },
        { "nonsense", "application/super+json", "text/plain" },
        { "nonsense", "text/plain", "text/plain" },
        { "trigger/packet_1", "application/store", "application/store" },
        { NULL, NULL, "application/json" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = make_run();
        run.output = bytes_create(slice_of(cases[i].content));
        if (cases[i].type)
            run_rare_edit(&run)->output_type = bytes_create(slice_of(cases[i].type));
        assert_column(&v4, &run, "outputType", cases[i].shown);
        assert_column(&v4, &run, "output", cases[i].content ? cases[i].content : "null");
        run_finish(&run);
    }
}

static void row_has_the_columns_of_its_schema(void **state)
{
    (void)state;
    static const uint32_t skips[] = { 0, COLUMN_PAYLOAD_TYPE, 1 << FIELD_PAYLOAD,
                                      1 << FIELD_STREAMS | COLUMN_METADATA_TYPE,
                                      1 << FIELD_ERROR | 1 << FIELD_TTL };
    struct run run = make_run();
    for (size_t i = 0; i < sizeof(skips) / sizeof(skips[0]); i++) {
        struct buf schema = { 0 }, row = { 0 };
        struct view view = v4;
        struct slice wanted, found, value;
        view.skipped = skips[i];
        shape_add_schema(view.skipped, &schema);
        render_whole(&view, &run, &row);
        struct slice object = scan_member(buf_slice(&row), "value");
        struct scan_members a = scan_members(buf_slice(&schema)), b = scan_members(object);
        size_t count = 0;
        for (; scan_next_member(&a, &wanted, &value); count++) {
            assert_true(scan_next_member(&b, &found, &value));
            assert_true(slice_equal(wanted, found));
        }
        assert_false(scan_next_member(&b, &found, &value));
        assert_true(count >= 25);
        buf_finish(&schema);
        buf_finish(&row);
    }
    run_finish(&run);
}

static void times_have_no_zone_and_lists_are_json(void **state)
{
    (void)state;
    const struct slice names[] = { SLICE("NULL"), SLICE("a\"b\\,{}") };
    struct run run = make_run();
    assert_column(&v4, &run, "createdAt", "2024-01-01T00:00:00.123");
    assert_column(&v4, &run, "completedAt", "null");
    assert_column(&v4, &run, "runTags", "[]");
    assert_column(&v4, &run, "realtimeStreams", "[]");
    run_rare_edit(&run)->streams = bytes_create(SLICE("[\"a\",\"b\"]"));
    assert_column(&v4, &run, "realtimeStreams", "[\"a\",\"b\"]");
    run.tags = tag_list_create(names, 2);
    assert_column(&v4, &run, "runTags", "[\"NULL\",\"a\\\"b\\\\,{}\"]");
    assert_column(&v4, &run, "number", "7");
    assert_column(&v4, &run, "costInCents", "0");
    run_finish(&run);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_newer_than_sdk_3_are_mapped_to_its_own),
        cmocka_unit_test(errors_are_mapped_to_types_and_codes_that_the_sdk_knows),
        cmocka_unit_test(content_that_does_not_fit_its_type_is_shown_as_text),
        cmocka_unit_test(row_has_the_columns_of_its_schema),
        cmocka_unit_test(times_have_no_zone_and_lists_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
