/* otlp: which parts of the spans and logs that workers send are kept. */
#include "api/telemetry/otlp.h"
#include "base/json/members.h"
#include "tests/support/world/unit.h"

#define RUN "{\"key\":\"$metadata.ctx.run.id\",\"value\":{\"stringValue\":\"run_a\"}}"
#define SPANS(record) "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" record "]}]}]}"
#define LOGS(record) "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[" record "]}]}]}"

static const struct {
    bool logs;
    const char *body, *member, *value;
} cases[] = {
    { false, SPANS("{\"name\":\"a\",\"attributes\":[" RUN "]}"), "message", "\"a\"" },
    { false, SPANS("{\"name\":5,\"attributes\":[" RUN "]}"), "message", "\"5\"" },
    { false,
      SPANS("{\"startTimeUnixNano\":\"1700000000000000000\",\"endTimeUnixNano\":"
            "\"1700000000000000042\",\"attributes\":[" RUN "]}"),
      "ns", "42" },
    { false,
      SPANS("{\"startTimeUnixNano\":\"1700000000000000000\",\"endTimeUnixNano\":"
            "\"1600000000000000000\",\"attributes\":[" RUN "]}"),
      "ns", "0" },
    { false, SPANS("{\"startTimeUnixNano\":1700000000123456789,\"attributes\":[" RUN "]}"),
      "at", "1700000000123" },
    { false, SPANS("{\"status\":{\"code\":2},\"attributes\":[" RUN "]}"), "isError",
      "true" },
    { false, SPANS("{\"parentSpanId\":\"0123456789abcdef\",\"attributes\":[" RUN "]}"),
      "parentId", "\"0123456789abcdef\"" },
    { false,
      SPANS("{\"attributes\":[" RUN ",{\"key\":\"$metadata.ctx.attempt.number\","
            "\"value\":{\"intValue\":3}}]}"),
      "attemptNumber", "3" },
    { false,
      SPANS("{\"attributes\":[" RUN ",{\"key\":\"n\",\"value\":{\"intValue\":\"9\"}},"
            "{\"key\":\"s\",\"value\":{\"stringValue\":\"\\u0041\"}},{\"key\":\"d\","
            "\"value\":{\"doubleValue\":0.5}}]}"),
      "properties", "{\"n\":9,\"s\":\"\\u0041\",\"d\":0.5}" },
    { false,
      SPANS("{\"attributes\":[" RUN ",{\"key\":\"l\",\"value\":{\"arrayValue\":"
            "{\"values\":[{\"boolValue\":true},{\"kvlistValue\":{\"values\":[{\"key\":"
            "\"k\",\"value\":{\"stringValue\":\"v\"}}]}},{},5]}}}]}"),
      "properties", "{\"l\":[true,{\"k\":\"v\"},null,null]}" },
    { false,
      SPANS("{\"attributes\":[{\"key\":\"ctx.task.id\",\"value\":{\"stringValue\":"
            "\"t\"}}," RUN "]}"),
      "properties", "{}" },
    { false,
      SPANS("{\"events\":[{\"name\":\"e\",\"attributes\":[{\"key\":\"m\",\"value\":"
            "{\"stringValue\":\"x\"}}]}],\"attributes\":[" RUN "]}"),
      "events", "[{\"name\":\"e\",\"properties\":{\"m\":\"x\"}}]" },
    { true, LOGS("{\"severityText\":\"warn\",\"attributes\":[" RUN "]}"), "level",
      "\"WARN\"" },
    { true, LOGS("{\"severityNumber\":17,\"attributes\":[" RUN "]}"), "isError", "true" },
    { true, LOGS("{\"attributes\":[" RUN "]}"), "level", "\"LOG\"" },
    { true, LOGS("{\"body\":{\"stringValue\":\"hi\"},\"attributes\":[" RUN "]}"), "message",
      "\"hi\"" },
    { true, LOGS("{\"body\":{\"intValue\":\"5\"},\"attributes\":[" RUN "]}"), "message",
      "\"5\"" },
    { true, LOGS("{\"spanId\":\"0123456789abcdef\",\"attributes\":[" RUN "]}"), "parentId",
      "\"0123456789abcdef\"" },
};

/* Returns false if there are no more records. */
static bool next_record(struct otlp *otlp, struct slice *record)
{
    while (otlp_next(otlp, record))
        if (record->ptr)
            return true;
    return false;
}

static void record_is_kept_as_plain_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct otlp otlp;
        struct slice record;
        struct trace_event event;
        char run_id[ID_MAX];
        otlp_begin(&otlp, slice_of(cases[i].body), cases[i].logs);
        assert_true(next_record(&otlp, &record));
        assert_int_equal(otlp_read(&otlp, record, run_id, &event), OK);
        assert_string_equal(run_id, "run_a");
        struct slice json = bytes_slice(event.json);
        assert_true(scan_is_json(json));
        assert_true(slice_is(scan_member(json, cases[i].member), cases[i].value));
        assert_false(next_record(&otlp, &record));
        bytes_unref(event.json);
    }
}

static void partial_span_has_the_id_of_its_span(void **state)
{
    static const char body[] =
        SPANS("{\"spanId\":\"aaaaaaaaaaaaaaaa\",\"attributes\":[" RUN
              ",{\"key\":\"$span.partial\","
              "\"value\":{\"boolValue\":true}},{\"key\":\"$span.span_id\",\"value\":"
              "{\"stringValue\":\"bbbbbbbbbbbbbbbb\"}}]}");
    struct otlp otlp;
    struct slice record;
    struct trace_event event;
    char run_id[ID_MAX];
    (void)state;
    otlp_begin(&otlp, slice_of(body), false);
    assert_true(next_record(&otlp, &record));
    assert_int_equal(otlp_read(&otlp, record, run_id, &event), OK);
    assert_string_equal(event.span, "bbbbbbbbbbbbbbbb");
    assert_true(event.partial);
    bytes_unref(event.json);
}

static void record_without_a_run_is_ignored(void **state)
{
    static const char *const bodies[] = {
        SPANS("{\"name\":\"a\"}"),
        SPANS("{\"attributes\":[{\"key\":\"ctx.run.id\",\"value\":{\"intValue\":5}}]}"),
        SPANS("{\"attributes\":{\"ctx.run.id\":\"run_a\"}}"),
        SPANS("{\"attributes\":[{\"key\":\"ctx.run.id\",\"value\":{\"stringValue\":"
              "\"run_0123456789012345678901234567890123456789\"}}]}"),
        SPANS("5"),
        SPANS("[]"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct otlp otlp;
        struct slice record;
        struct trace_event event;
        char run_id[ID_MAX];
        otlp_begin(&otlp, slice_of(bodies[i]), false);
        assert_true(next_record(&otlp, &record));
        assert_int_not_equal(otlp_read(&otlp, record, run_id, &event), OK);
    }
}

static void a_body_of_another_shape_has_no_records(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "[]",
        "{\"resourceSpans\":5}",
        "{\"resourceSpans\":[1,[],{}]}",
        "{\"resourceSpans\":[{\"scopeSpans\":{\"spans\":[{}]}}]}",
        LOGS("{}"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct otlp otlp;
        struct slice record;
        size_t count = 0;
        otlp_begin(&otlp, slice_of(bodies[i]), false);
        while (next_record(&otlp, &record))
            count += scan_type(record) == SCAN_OBJECT && scan_member(record, "name").len;
        assert_int_equal(count, 0);
    }
}

static void add_times(struct buf *out, const char *text, int times)
{
    for (int i = 0; i < times; i++) {
        buf_add_text(out, i ? "," : "");
        buf_add_text(out, text);
    }
}

/* Reads the only record of the body, frees the body and returns the record's JSON. */
static struct bytes *read_only(struct buf *body, bool logs)
{
    struct otlp otlp;
    struct slice record;
    struct trace_event event;
    char run_id[ID_MAX];
    otlp_begin(&otlp, buf_slice(body), logs);
    assert_true(next_record(&otlp, &record));
    assert_int_equal(otlp_read(&otlp, record, run_id, &event), OK);
    buf_finish(body);
    return event.json;
}

static void attributes_beyond_4096_are_dropped_and_marked(void **state)
{
    (void)state;
    struct buf body = { 0 };
    buf_add_text(&body, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":"
                        "[{\"attributes\":[" RUN ",");
    add_times(&body, "{\"key\":\"a\"}", 4096);
    buf_add_text(&body, "]}]}]}]}");
    struct bytes *json = read_only(&body, true);
    struct slice properties = scan_member(bytes_slice(json), "properties");
    assert_true(scan_member(properties, "a").ptr);
    assert_true(slice_is(scan_member(properties, "cut"),
                         "\"there were too many attributes (max 4096)\""));
    bytes_unref(json);
}

static void members_of_a_record_beyond_1000_are_ignored(void **state)
{
    (void)state;
    struct buf body = { 0 };
    buf_add_text(&body, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":"
                        "[{\"attributes\":[" RUN "],");
    add_times(&body, "\"a\":1", 1000);
    buf_add_text(&body, ",\"name\":\"late\"}]}]}]}");
    struct bytes *json = read_only(&body, false);
    assert_true(slice_is(scan_member(bytes_slice(json), "message"), "\"\""));
    bytes_unref(json);
}

static void an_attribute_longer_than_a_record_may_be_is_ignored(void **state)
{
    (void)state;
    struct buf body = { 0 };
    buf_add_text(&body, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":"
                        "[{\"attributes\":[" RUN ",{");
    add_times(&body, "\"\":0", 30000);
    buf_add_text(
        &body, ",\"key\":\"ctx.run.id\",\"value\":{\"stringValue\":\"run_late\"}}]}]}]}]}");
    struct otlp otlp;
    struct slice record;
    struct trace_event event;
    char run_id[ID_MAX];
    otlp_begin(&otlp, buf_slice(&body), true);
    assert_true(next_record(&otlp, &record));
    assert_int_equal(otlp_read(&otlp, record, run_id, &event), OK);
    assert_string_not_equal(run_id, "run_late");
    bytes_unref(event.json);
    buf_finish(&body);
}

/* The message is cut in the middle of an escape or of a character. */
static void a_long_message_keeps_its_beginning_and_notes_that_it_was_cut(void **state)
{
    static const char *const units[] = { "\\u0041", "\\ud83d\\ude00", "\xe2\x82\xac", "x" };
    static const char *const texts[] = { "A", "\xf0\x9f\x98\x80", "\xe2\x82\xac", "x" };
    static const char *const notes[] = { "… (cut, 600.0 kB)", "… (cut, 1.2 MB)",
                                         "… (cut, 300.0 kB)", "… (cut, 100.0 kB)" };
    (void)state;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct buf body = { 0 }, expected = { 0 };
        buf_add_text(&body, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":"
                            "[{\"attributes\":[" RUN "],\"body\":{\"stringValue\":\"");
        for (int n = 0; n < 100000; n++)
            buf_add_text(&body, units[i]);
        buf_add_text(&body, "\"}}]}]}]}");
        struct bytes *json = read_only(&body, true);
        while (expected.len + strlen(texts[i]) <= 8192)
            buf_add_text(&expected, texts[i]);
        buf_add_text(&expected, notes[i]);
        struct slice message = scan_unquoted(scan_member(bytes_slice(json), "message"));
        assert_true(slice_equal(message, buf_slice(&expected)));
        bytes_unref(json);
        buf_finish(&expected);
    }
}

static void a_long_body_that_is_not_a_string_is_replaced(void **state)
{
    (void)state;
    struct buf body = { 0 };
    buf_add_text(&body,
                 "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":"
                 "[{\"attributes\":[" RUN "],\"body\":{\"arrayValue\":{\"values\":[");
    add_times(&body, "{\"intValue\":1}", 20000);
    buf_add_text(&body, "]}}}]}]}]}");
    struct bytes *json = read_only(&body, true);
    assert_true(slice_is(scan_member(bytes_slice(json), "message"),
                         "\"the body was too long (max 128 KiB)\""));
    bytes_unref(json);
}

/* Reading them again for each record took a quarter of a minute. */
static void attributes_of_a_resource_are_read_once(void **state)
{
    (void)state;
    struct buf body = { 0 };
    struct slice record;
    struct otlp otlp;
    struct trace_event event;
    char run_id[ID_MAX];
    buf_add_text(&body, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    add_times(&body, "{}", 13000);
    buf_add_text(&body, ",{\"key\":\"ctx.run.id\",\"value\":{\"stringValue\":\"run_1\"}}]},"
                        "\"scopeSpans\":[{\"spans\":[");
    add_times(&body, "{}", 9000);
    buf_add_text(&body, "]}]}]}");
    int count = 0, calls = 0;
    for (otlp_begin(&otlp, buf_slice(&body), false); otlp_next(&otlp, &record);) {
        if (!record.ptr) {
            calls++; /* reads up to 300 attributes */
            continue;
        }
        count++;
        assert_int_equal(otlp_read(&otlp, record, run_id, &event), OK);
        assert_string_equal(run_id, "run_1");
        bytes_unref(event.json);
    }
    assert_int_equal(count, 9000);
    assert_in_range(calls, 13000 / 300 - 1, 13000 / 200);
    buf_finish(&body);
}

/* A turn of the loop may end between two calls. */
static void many_attributes_of_a_resource_are_read_in_several_calls(void **state)
{
    (void)state;
    struct buf body = { 0 };
    struct slice record = { 0 };
    struct otlp otlp;
    int calls = 0;
    buf_add_text(&body, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[");
    add_times(&body, "{}", 13000);
    buf_add_text(&body, ",{\"key\":\"ctx.run.id\",\"value\":{\"stringValue\":\"run_1\"}}]},"
                        "\"scopeLogs\":[{\"logRecords\":[{}]}]}]}");
    for (otlp_begin(&otlp, buf_slice(&body), true); !record.ptr; calls++) {
        size_t left = otlp.attributes.rest.len;
        assert_true(otlp_next(&otlp, &record));
        if (left)
            assert_true(left - otlp.attributes.rest.len <= 300 * strlen("{},"));
    }
    assert_in_range(calls, 13000 / 300, 13000 / 200);
    assert_true(slice_is(otlp.shared.run, "run_1"));
    assert_true(slice_is(record, "{}"));
    assert_false(otlp_next(&otlp, &record));
    buf_finish(&body);
}

/* Otherwise the first call would walk five times over everything around the first
 * record. */
static void no_call_opens_more_than_one_part_of_a_body(void **state)
{
    (void)state;
    struct slice body = SLICE("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{}]},"
                              "\"scopeSpans\":[{\"spans\":[{},{}]}]}]}");
    struct slice record;
    struct otlp otlp;
    otlp_begin(&otlp, body, false);
    assert_false(otlp.resources.rest.len); /* even otlp_begin does not walk over it */
    unsigned opened = 0, records = 0, calls = 0;
    for (; otlp_next(&otlp, &record); calls++) {
        unsigned now = (otlp.resources.rest.ptr != NULL) + (otlp.scopes.rest.ptr != NULL) +
                       (otlp.attributes.rest.ptr != NULL) + (otlp.records.rest.ptr != NULL);
        assert_in_range(now, opened, opened + 1);
        opened = now;
        records += record.ptr != NULL;
    }
    assert_int_equal(records, 2);
    assert_int_equal(opened, 4);
    assert_in_range(calls, 4 + 2, 4 + 2 + 2); /* two more find the resource and the scope */
}

/* Makes a body with many elements in its list of resources, scopes or spans. */
static void make_body(struct buf *body, size_t list, int elements)
{
    static const char *const around[][2] = {
        { "{\"resourceSpans\":[", "]}" },
        { "{\"resourceSpans\":[{\"scopeSpans\":[", "]}]}" },
        { "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[", "]}]}]}" },
    };
    buf_add_text(body, around[list][0]);
    add_times(body, "{}", elements);
    buf_add_text(body, around[list][1]);
}

/* Returns the number of records; *within: how many of them may be kept. */
static unsigned count_records(struct otlp *otlp, struct slice body, unsigned *within)
{
    struct slice record;
    unsigned count = 0;
    *within = 0;
    for (otlp_begin(otlp, body, false); next_record(otlp, &record); count++)
        *within += !otlp_is_beyond(otlp);
    return count;
}

static void records_beyond_10000_per_body_are_only_counted(void **state)
{
    (void)state;
    for (size_t list = 0; list < 3; list++) {
        struct buf body = { 0 };
        struct otlp otlp;
        unsigned within;
        make_body(&body, list, 2 * OTLP_STEPS_MAX);
        unsigned count = count_records(&otlp, buf_slice(&body), &within);
        assert_int_equal(count, list == 2 ? 2 * OTLP_STEPS_MAX : 0);
        assert_int_equal(within, list == 2 ? OTLP_STEPS_MAX - 2 : 0);
        assert_false(otlp.cut);
        buf_finish(&body);
    }
}

static void body_with_too_many_elements_is_truncated(void **state)
{
    (void)state;
    for (size_t list = 0; list < 3; list++) {
        struct buf body = { 0 };
        struct otlp otlp;
        unsigned within;
        int exactly = OTLP_COUNTED_MAX - (int)list; /* the elements around count, too */
        make_body(&body, list, exactly);
        count_records(&otlp, buf_slice(&body), &within);
        assert_false(otlp.cut);
        buf_clear(&body);
        make_body(&body, list, exactly + 1);
        unsigned count = count_records(&otlp, buf_slice(&body), &within);
        assert_true(otlp.cut);
        assert_int_equal(count, list == 2 ? exactly : 0);
        buf_finish(&body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_is_kept_as_plain_json),
        cmocka_unit_test(partial_span_has_the_id_of_its_span),
        cmocka_unit_test(record_without_a_run_is_ignored),
        cmocka_unit_test(a_body_of_another_shape_has_no_records),
        cmocka_unit_test(attributes_of_a_resource_are_read_once),
        cmocka_unit_test(many_attributes_of_a_resource_are_read_in_several_calls),
        cmocka_unit_test(no_call_opens_more_than_one_part_of_a_body),
        cmocka_unit_test(records_beyond_10000_per_body_are_only_counted),
        cmocka_unit_test(body_with_too_many_elements_is_truncated),
        cmocka_unit_test(attributes_beyond_4096_are_dropped_and_marked),
        cmocka_unit_test(members_of_a_record_beyond_1000_are_ignored),
        cmocka_unit_test(an_attribute_longer_than_a_record_may_be_is_ignored),
        cmocka_unit_test(a_long_message_keeps_its_beginning_and_notes_that_it_was_cut),
        cmocka_unit_test(a_long_body_that_is_not_a_string_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
