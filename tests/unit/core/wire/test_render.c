/* A run as a row, for clients of each view. */
#include "tests/support/world/unit.h"

#include "core/wire/render.h"
#include "tests/support/world/show_msgpack.h"

/* ---- the world: one run and its next version ---- */

static struct bytes *text(const char *content)
{
    return bytes_create(slice_of(content));
}

static struct bytes *set(struct bytes **place, const char *content)
{
    bytes_unref(*place);
    return *place = text(content);
}

static void set_tags(struct run *run, const struct slice *names, size_t count)
{
    tag_list_unref(run->tags);
    run->tags = tag_list_create(names, count);
}

/* Just triggered, without optional fields. */
static struct run new_run(void)
{
    return (struct run){
        .id = "run_1",
        .number = 7,
        .version = 1,
        .rev = 10,
        .whole_rev = 10,
        .metadata_rev = 10,
        .status = RUN_QUEUED,
        .created_at = 1700000000123,
        .updated_at = 1700000000123,
        .task = text("hello"),
    };
}

static struct run next_version(const struct run *run)
{
    struct run next;
    run_copy(&next, run);
    next.version++;
    next.rev++;
    next.updated_at = 1700000001000;
    return next;
}

static struct view json_view(uint32_t fields)
{
    return (struct view){ .encoding = ENCODING_JSON, .fields = fields | FIELDS_ALWAYS };
}

static struct view msgpack_view(uint32_t fields)
{
    return (struct view){ .encoding = ENCODING_MSGPACK, .fields = fields | FIELDS_ALWAYS };
}

static void assert_text(const struct buf *out, const char *expected)
{
    struct bytes *found = buf_to_bytes(out);
    assert_string_equal(found->data, expected);
    bytes_unref(found);
}

static void assert_shown(const struct buf *encoded, const char *expected)
{
    struct buf shown = { 0 };
    assert_true(show_msgpack(buf_slice(encoded), &shown));
    assert_text(&shown, expected);
    buf_finish(&shown);
}

static void assert_whole(uint32_t fields, const struct run *run, const char *expected)
{
    struct view view = json_view(fields);
    struct buf out = { 0 };
    render_whole(&view, run, &out);
    assert_text(&out, expected);
    buf_finish(&out);
}

static void assert_delta(const struct run *before, const struct run *after,
                         const char *expected)
{
    struct view view = json_view(FIELDS_ALL);
    struct buf out = { 0 };
    render_delta(&view, before, after, &out);
    assert_text(&out, expected);
    buf_finish(&out);
}

static void finish_both(struct run *before, struct run *after)
{
    run_finish(before);
    run_finish(after);
}

/* ---- whole rows ---- */

static void new_run_has_only_the_required_fields(void **state)
{
    (void)state;
    struct run run = new_run();
    assert_whole(FIELDS_ALL, &run,
                 "[\"run_1\",1,{\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
                 "\"status\":\"QUEUED\",\"createdAt\":\"2023-11-14T22:13:20.123Z\","
                 "\"updatedAt\":\"2023-11-14T22:13:20.123Z\",\"tags\":[],\"payload\":null,"
                 "\"number\":7,\"durationMs\":0,\"costInCents\":0,\"baseCostInCents\":0,"
                 "\"isTest\":false},1]");
    run_finish(&run);
}

static void fill(struct run *run)
{
    const struct slice tags[] = { SLICE("a"), SLICE("b\"c") };
    set_tags(run, tags, 2);
    set(&run->batch, "batch_9");
    set(&run->payload,
        "{\"json\": {\"n\": 12345678901234567890, \"m\": 1e400} ,\"meta\":{}}");
    set(&run_rare_edit(run)->payload_type, "application/super+json");
    set(&run->output, "done \xc3\xa9");
    set(&run_rare_edit(run)->output_type, "text/plain");
    set(&run->metadata, "{\"p\": 0.10}");
    set(&run->error, "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}");
    set(&run_rare_edit(run)->idempotency_shown, "key");
    set(&run_rare_edit(run)->ttl, "1h");
    set(&run->worker_version, "20240523.1");
    run->status = RUN_RETRYING;
    run->is_test = true;
    run->usage_ms = 1234;
    run->cost_cents = 0.25;
    run->base_cost_cents = 1e-7;
    run->attempt = 2;
    run_rare_edit(run)->expired_at = run->finished_at = run->started_at = 1700000002000;
    run_rare_edit(run)->delayed_until = run->queued_at = 1700000003000;
}

static void full_run_has_every_field_and_the_json_of_users_unchanged(void **state)
{
    (void)state;
    struct run run = new_run();
    fill(&run);
    assert_whole(
        FIELDS_ALL, &run,
        "[\"run_1\",1,{\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
        "\"status\":\"REATTEMPTING\",\"createdAt\":\"2023-11-14T22:13:20.123Z\","
        "\"updatedAt\":\"2023-11-14T22:13:20.123Z\",\"tags\":[\"a\",\"b\\\"c\"],"
        "\"batchId\":\"batch_9\","
        "\"payload\":{\"n\": 12345678901234567890, \"m\": 1e400},"
        "\"output\":\"done \xc3\xa9\",\"number\":7,\"durationMs\":1234,"
        "\"costInCents\":0.25,\"baseCostInCents\":1e-7,\"idempotencyKey\":\"key\","
        "\"expiredAt\":\"2023-11-14T22:13:22.000Z\",\"ttl\":\"1h\","
        "\"finishedAt\":\"2023-11-14T22:13:22.000Z\","
        "\"startedAt\":\"2023-11-14T22:13:22.000Z\","
        "\"delayedUntil\":\"2023-11-14T22:13:23.000Z\","
        "\"queuedAt\":\"2023-11-14T22:13:23.000Z\",\"metadata\":{\"p\": 0.10},"
        "\"error\":{\"message\":\"no\"},\"isTest\":true,\"version\":\"20240523.1\","
        "\"attemptCount\":2},1]");
    run_finish(&run);
}

static void msgpack_has_timestamps_and_json_texts(void **state)
{
    (void)state;
    struct run run = new_run();
    fill(&run);
    struct view view = msgpack_view(FIELDS_ALL);
    struct buf out = { 0 };
    render_whole(&view, &run, &out);
    assert_shown(
        &out, "[\"run_1\",1,{\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
              "\"status\":\"REATTEMPTING\",\"createdAt\":@1700000000.123000000,"
              "\"updatedAt\":@1700000000.123000000,\"tags\":[\"a\",\"b\\\"c\"],"
              "\"batchId\":\"batch_9\","
              "\"payload\":\"{\\\"n\\\": 12345678901234567890, \\\"m\\\": 1e400}\","
              "\"output\":\"\\\"done \xc3\xa9\\\"\",\"number\":7,\"durationMs\":1234,"
              "\"costInCents\":0.25,\"baseCostInCents\":1e-7,\"idempotencyKey\":\"key\","
              "\"expiredAt\":@1700000002.000000000,\"ttl\":\"1h\","
              "\"finishedAt\":@1700000002.000000000,\"startedAt\":@1700000002.000000000,"
              "\"delayedUntil\":@1700000003.000000000,\"queuedAt\":@1700000003.000000000,"
              "\"metadata\":\"{\\\"p\\\": 0.10}\","
              "\"error\":\"{\\\"message\\\":\\\"no\\\"}\",\"isTest\":true,"
              "\"version\":\"20240523.1\",\"attemptCount\":2},1]");
    buf_finish(&out);
    run_finish(&run);
}

/* The three forms of https://github.com/msgpack/msgpack, spec.md, timestamp extension. */
static void msgpack_times_take_the_shortest_form(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        struct slice encoded;
    } cases[] = {
        { 1000, { "\xd6\xff\0\0\0\1", 6 } },
        { INT64_C(4294967295000), { "\xd6\xff\xff\xff\xff\xff", 6 } },
        { INT64_C(4294967296000), { "\xd7\xff\0\0\0\1\0\0\0\0", 10 } },
        { 1001, { "\xd7\xff\0\x3d\x09\0\0\0\0\1", 10 } },
        { INT64_C(17179869184000), { "\xc7\x0c\xff\0\0\0\0\0\0\0\4\0\0\0\0", 15 } },
        { -1, { "\xc7\x0c\xff\x3b\x8b\x87\xc0\xff\xff\xff\xff\xff\xff\xff\xff", 15 } },
    };
    struct view view = msgpack_view(0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run();
        run.created_at = cases[i].ms;
        struct buf out = { 0 };
        render_whole(&view, &run, &out);
        char *place = memmem(out.ptr, out.len, "createdAt", 9);
        assert_non_null(place);
        assert_memory_equal(place + 9, cases[i].encoded.ptr, cases[i].encoded.len);
        buf_finish(&out);
        run_finish(&run);
    }
}

static void status_is_written_in_the_vocabulary_of_the_view(void **state)
{
    (void)state;
    struct run run = new_run();
    run.status = RUN_WAITING;
    struct view view = json_view(0);
    view.vocabulary = VOCABULARY_B;
    struct buf out = { 0 };
    render_whole(&view, &run, &out);
    assert_non_null(memmem(out.ptr, out.len, "\"status\":\"WAITING\"", 18));
    buf_finish(&out);
    run_finish(&run);
}

static void view_without_fields_has_the_fields_that_file_a_row(void **state)
{
    (void)state;
    struct run run = new_run();
    fill(&run);
    assert_whole(0, &run,
                 "[\"run_1\",1,{\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
                 "\"status\":\"REATTEMPTING\",\"createdAt\":\"2023-11-14T22:13:20.123Z\","
                 "\"updatedAt\":\"2023-11-14T22:13:20.123Z\",\"tags\":[\"a\",\"b\\\"c\"],"
                 "\"batchId\":\"batch_9\"},1]");
    run_finish(&run);
}

static void metadata_that_is_not_an_object_is_omitted(void **state)
{
    (void)state;
    struct run run = new_run();
    set(&run.metadata, "[1]");
    struct view view = json_view(FIELDS_ALL);
    struct buf out = { 0 };
    render_whole(&view, &run, &out);
    assert_null(memmem(out.ptr, out.len, "metadata", 8));
    buf_finish(&out);
    run_finish(&run);
}

/* ---- deltas ---- */

static void delta_has_exactly_the_fields_that_differ(void **state)
{
    (void)state;
    struct run before = new_run();
    struct run after = next_version(&before);
    after.status = RUN_EXECUTING;
    after.started_at = 1700000001000;
    assert_delta(&before, &after,
                 "[\"run_1\",2,{\"status\":\"EXECUTING\","
                 "\"updatedAt\":\"2023-11-14T22:13:21.000Z\","
                 "\"startedAt\":\"2023-11-14T22:13:21.000Z\"}]");
    finish_both(&before, &after);
}

static void status_and_updated_at_are_in_every_delta(void **state)
{
    (void)state;
    struct run before = new_run();
    struct run after = next_version(&before);
    after.updated_at = before.updated_at;
    assert_delta(&before, &after,
                 "[\"run_1\",2,{\"status\":\"QUEUED\","
                 "\"updatedAt\":\"2023-11-14T22:13:20.123Z\"}]");
    finish_both(&before, &after);
}

static void cleared_field_becomes_null(void **state)
{
    (void)state;
    struct run before = new_run();
    set(&run_rare_edit(&before)->idempotency_shown, "key");
    run_rare_edit(&before)->delayed_until = 1700000003000;
    struct run after = next_version(&before);
    bytes_clear(&run_rare_edit(&after)->idempotency_shown);
    run_rare_edit(&after)->delayed_until = 0;
    assert_delta(&before, &after,
                 "[\"run_1\",2,{\"status\":\"QUEUED\","
                 "\"updatedAt\":\"2023-11-14T22:13:21.000Z\",\"idempotencyKey\":null,"
                 "\"delayedUntil\":null}]");
    finish_both(&before, &after);
}

static void streams_are_shown_only_on_request(void **state)
{
    (void)state;
    struct run before = new_run();
    struct view asked = json_view(FIELDS_ALL), usual = json_view(FIELDS_DEFAULT);
    struct run after = next_version(&before);
    struct buf out = { 0 };
    set(&run_rare_edit(&after)->streams, "[\"tokens\"]");
    render_delta(&asked, &before, &after, &out);
    buf_add_char(&out, 0);
    assert_non_null(strstr(out.ptr, ",\"realtimeStreams\":[\"tokens\"]}"));
    buf_clear(&out);
    render_delta(&usual, &before, &after, &out);
    render_whole(&usual, &after, &out);
    buf_add_char(&out, 0);
    assert_null(strstr(out.ptr, "realtimeStreams"));
    buf_finish(&out);
    finish_both(&before, &after);
}

static void equal_values_at_different_addresses_are_equal(void **state)
{
    (void)state;
    struct run before = new_run();
    set(&run_rare_edit(&before)->ttl, "1h");
    set(&before.metadata, "{}");
    set_tags(&before, (struct slice[]){ SLICE("a") }, 1);
    struct run after = next_version(&before);
    set(&run_rare_edit(&after)->ttl, "1h");
    set(&after.metadata, "{}");
    set_tags(&after, (struct slice[]){ SLICE("a") }, 1);
    after.metadata_rev = after.whole_rev = 11;
    assert_delta(&before, &after,
                 "[\"run_1\",2,{\"status\":\"QUEUED\","
                 "\"updatedAt\":\"2023-11-14T22:13:21.000Z\"}]");
    finish_both(&before, &after);
}

static void metadata_output_and_error_are_sent_when_they_change(void **state)
{
    (void)state;
    struct run before = new_run();
    set(&before.metadata, "{\"p\":1}");
    struct run after = next_version(&before);
    after.status = RUN_COMPLETED;
    set(&after.metadata, "{\"p\":2}");
    set(&after.output, "[1]");
    after.metadata_rev = after.output_rev = 11;
    assert_delta(&before, &after,
                 "[\"run_1\",2,{\"status\":\"COMPLETED\","
                 "\"updatedAt\":\"2023-11-14T22:13:21.000Z\",\"output\":[1],"
                 "\"metadata\":{\"p\":2}}]");
    finish_both(&before, &after);
}

static void packet_that_left_memory_is_not_reported_as_cleared(void **state)
{
    (void)state;
    struct run before = new_run();
    set(&before.payload, "1");
    set(&before.metadata, "{}");
    struct run after = next_version(&before);
    bytes_clear(&after.payload);
    bytes_clear(&after.metadata);
    assert_delta(&before, &after,
                 "[\"run_1\",2,{\"status\":\"QUEUED\","
                 "\"updatedAt\":\"2023-11-14T22:13:21.000Z\"}]");
    finish_both(&before, &after);
}

static void msgpack_delta_has_the_right_number_of_fields(void **state)
{
    (void)state;
    struct run before = new_run();
    set(&run_rare_edit(&before)->ttl, "1h");
    struct run after = next_version(&before);
    bytes_clear(&run_rare_edit(&after)->ttl);
    struct view view = msgpack_view(FIELDS_ALL);
    struct buf out = { 0 };
    render_delta(&view, &before, &after, &out);
    assert_shown(&out, "[\"run_1\",2,{\"status\":\"QUEUED\","
                       "\"updatedAt\":@1700000001.000000000,\"ttl\":null}]");
    buf_finish(&out);
    finish_both(&before, &after);
}

static void delta_omits_fields_that_the_view_does_not_have(void **state)
{
    (void)state;
    struct run before = new_run();
    struct run after = next_version(&before);
    set(&after.metadata, "{\"p\":2}");
    after.metadata_rev = 11;
    after.started_at = 1;
    struct view view = json_view(1 << FIELD_STARTED_AT);
    struct buf out = { 0 };
    render_delta(&view, &before, &after, &out);
    assert_text(&out, "[\"run_1\",2,{\"status\":\"QUEUED\","
                      "\"updatedAt\":\"2023-11-14T22:13:21.000Z\","
                      "\"startedAt\":\"1970-01-01T00:00:00.001Z\"}]");
    buf_finish(&out);
    finish_both(&before, &after);
}

/* ---- catching up ---- */

/* The small fields of a run that has only the required ones, and between them output,
 * metadata and error if present, each with its comma. */
static void assert_small(const struct run *run, uint64_t base, const char *output,
                         const char *metadata, const char *error)
{
    struct buf expected = { 0 };
    buf_print(&expected,
              "[\"run_1\",1,{\"status\":\"QUEUED\","
              "\"updatedAt\":\"2023-11-14T22:13:20.123Z\",%s\"durationMs\":0,"
              "\"costInCents\":0,\"baseCostInCents\":0,\"idempotencyKey\":null,"
              "\"expiredAt\":null,\"ttl\":null,\"finishedAt\":null,\"startedAt\":null,"
              "\"delayedUntil\":null,\"queuedAt\":null,%s%s\"version\":null,"
              "\"attemptCount\":null}]",
              output, metadata, error);
    struct view view = json_view(FIELDS_DEFAULT);
    struct buf out = { 0 };
    render_since(&view, run, base, &out);
    buf_add_char(&expected, '\0');
    assert_text(&out, expected.ptr);
    buf_finish(&out);
    buf_finish(&expected);
}

static void client_older_than_the_last_whole_change_gets_the_whole_run(void **state)
{
    (void)state;
    struct run run = new_run();
    struct view view = json_view(FIELDS_DEFAULT);
    struct buf whole = { 0 }, since = { 0 };
    render_whole(&view, &run, &whole);
    render_since(&view, &run, 9, &since);
    assert_true(slice_equal(buf_slice(&whole), buf_slice(&since)));

    run.whole_rev = 0; /* base 0 knows nothing, whatever the revs are */
    buf_clear(&since);
    render_since(&view, &run, 0, &since);
    assert_true(slice_equal(buf_slice(&whole), buf_slice(&since)));
    buf_finish(&whole);
    buf_finish(&since);
    run_finish(&run);
}

static void client_after_the_last_whole_change_gets_the_small_fields(void **state)
{
    (void)state;
    struct run run = new_run();
    set(&run.metadata, "{}");
    set(&run.payload, "1");
    assert_small(&run, 10, "", "", "");
    run_finish(&run);
}

static void metadata_and_output_are_sent_by_their_own_revs(void **state)
{
    (void)state;
    struct run run = new_run();
    set(&run.metadata, "{\"p\":1}");
    set(&run.output, "true");
    run.metadata_rev = 12;
    run.output_rev = 14;
    assert_small(&run, 11, "\"output\":true,", "\"metadata\":{\"p\":1},",
                 "\"error\":null,");
    assert_small(&run, 13, "\"output\":true,", "", "\"error\":null,");
    assert_small(&run, 14, "", "", "");
    run_finish(&run);
}

/* ---- packets and errors ---- */

static void packet_is_shown_as_the_value_that_its_type_means(void **state)
{
    (void)state;
    static const struct {
        const char *content, *type, *shown; /* shown NULL: absent */
    } cases[] = {
        { "{\"a\":1}", NULL, "{\"a\":1}" },
        { " [1, 2]\n", "application/json", "[1, 2]" },
        { "\"s\"", "application/json", "\"s\"" },
        { "null", "application/json", "null" },
        { "-0", "application/json", "-0" },
        { "{\"a\":1,\"a\":2}", "application/json", "{\"a\":1,\"a\":2}" },
        { "\"\\u0000\"", "application/json", "\"\\u0000\"" },
        { "{\"json\":{\"d\":\"2020\"},\"meta\":{\"values\":{\"d\":[\"Date\"]}}}",
          "application/super+json", "{\"d\":\"2020\"}" },
        { "{\"meta\":{\"json\":1},\"json\":[ 1e400 ]}", "application/super+json",
          "[ 1e400 ]" },
        { "{\"json\":null}", "application/super+json", "null" },
        { "{\"meta\":{}}", "application/super+json", NULL },
        { "say \"hi\"\n", "text/plain", "\"say \\\"hi\\\"\\n\"" },
        { "<a/>", "application/xml", "\"<a/>\"" },
        { "packets/1.json", "application/store", NULL },
        { "", "application/json", NULL },
        { "", "text/plain", NULL },
        { NULL, NULL, NULL },
        { "{\"open\":", "application/json", "\"{\\\"open\\\":\"" },
        { "plain", "application/super+json", "\"plain\"" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out = { 0 };
        struct bytes *content = bytes_create(slice_of(cases[i].content));
        bool shown = render_packet(content, slice_of(cases[i].type), &out);
        bytes_unref(content);
        assert_int_equal(shown, cases[i].shown != NULL);
        assert_text(&out, cases[i].shown ? cases[i].shown : "");
        buf_finish(&out);
    }
}

static void every_field_is_found_by_its_name(void **state)
{
    (void)state;
    for (unsigned field = 0; field < FIELD_COUNT; field++)
        assert_int_equal(field_from_name(slice_of(field_name((enum field)field))), field);
    assert_int_equal(field_from_name(SLICE("Status")), FIELD_COUNT);
    assert_int_equal(field_from_name(SLICE("")), FIELD_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_run_has_only_the_required_fields),
        cmocka_unit_test(full_run_has_every_field_and_the_json_of_users_unchanged),
        cmocka_unit_test(msgpack_has_timestamps_and_json_texts),
        cmocka_unit_test(msgpack_times_take_the_shortest_form),
        cmocka_unit_test(status_is_written_in_the_vocabulary_of_the_view),
        cmocka_unit_test(view_without_fields_has_the_fields_that_file_a_row),
        cmocka_unit_test(metadata_that_is_not_an_object_is_omitted),
        cmocka_unit_test(delta_has_exactly_the_fields_that_differ),
        cmocka_unit_test(status_and_updated_at_are_in_every_delta),
        cmocka_unit_test(cleared_field_becomes_null),
        cmocka_unit_test(streams_are_shown_only_on_request),
        cmocka_unit_test(equal_values_at_different_addresses_are_equal),
        cmocka_unit_test(metadata_output_and_error_are_sent_when_they_change),
        cmocka_unit_test(packet_that_left_memory_is_not_reported_as_cleared),
        cmocka_unit_test(msgpack_delta_has_the_right_number_of_fields),
        cmocka_unit_test(delta_omits_fields_that_the_view_does_not_have),
        cmocka_unit_test(client_older_than_the_last_whole_change_gets_the_whole_run),
        cmocka_unit_test(client_after_the_last_whole_change_gets_the_small_fields),
        cmocka_unit_test(metadata_and_output_are_sent_by_their_own_revs),
        cmocka_unit_test(packet_is_shown_as_the_value_that_its_type_means),
        cmocka_unit_test(every_field_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
