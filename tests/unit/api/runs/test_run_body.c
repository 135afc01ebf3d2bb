/* The run objects of the management API, byte for byte. */
#include "tests/support/world/unit.h"

#include "api/runs/run_body.h"
#include "base/json/scan.h"

/* ---- the world: one run ---- */

static struct bytes *text(const char *content)
{
    return bytes_create(slice_of(content));
}

/* Makes a run that was just triggered, without anything optional. */
static struct run new_run(void)
{
    return (struct run){
        .id = "run_1",
        .status = RUN_QUEUED,
        .machine = MACHINE_SMALL_1X,
        .created_at = 1700000000123,
        .updated_at = 1700000000123,
        .task = text("hello"),
    };
}

/* Makes a run in which everything is set. */
static struct run full_run(void)
{
    struct slice tags[] = { SLICE("b"), SLICE("a") };
    struct run run = {
        .id = "run_2",
        .status = RUN_COMPLETED,
        .is_test = true,
        .resume_parent = true,
        .from_batch = true,
        .attempt = 3,
        .depth = 2,
        .max_duration_s = 60,
        .usage_ms = 1234,
        .created_at = 1700000000000,
        .updated_at = 1700000005000,
        .number = 7,
        .queued_at = 1700000000750,
        .started_at = 1700000001000,
        .finished_at = 1700000004000,
        .cost_cents = 0.25,
        .base_cost_cents = 0.0025,
        .task = text("say \"hi\""),
        .worker_version = text("20240523.1"),
        .batch = text("batch_1"),
        .tags = tag_list_create(tags, 2),
        .payload = text("{\"json\":{\"to\":\"x\"},\"meta\":{}}"),
        .output = text("done"),
        .metadata = text("{\"step\": 1}"),
    };
    struct run_rare *rare = run_rare_edit(&run);
    rare->delayed_until = 1700000000500;
    rare->expired_at = 1700000003000;
    rare->ttl = text("1h30m");
    rare->region = text("eu");
    rare->idempotency_key = text("hash");
    rare->idempotency_shown = text("welcome");
    rare->payload_type = text("application/super+json");
    rare->output_type = text("text/plain");
    return run;
}

static const struct run_details alone = { 0 };

static void assert_text(struct buf *out, const char *expected)
{
    assert_true(scan_is_json(buf_slice(out)));
    buf_add_char(out, '\0');
    assert_string_equal(out->ptr, expected);
    buf_finish(out);
}

static void assert_whole(struct run *run, enum vocabulary vocabulary, const char *expected)
{
    struct buf out = { 0 };
    run_body_whole(run, vocabulary, &alone, &out);
    assert_text(&out, expected);
    run_finish(run);
}

static void assert_result(struct run *run, const char *expected)
{
    struct buf out = { 0 };
    run_body_result(run, &out);
    assert_text(&out, expected);
    run_finish(run);
}

/* Returns the raw member of the retrieve response; absent if there is none. */
static struct slice member_of(struct buf *out, const char *name)
{
    assert_true(scan_is_json(buf_slice(out)));
    return scan_member(buf_slice(out), name);
}

/* ---- complete objects ---- */

static void new_run_shows_only_required_fields(void **state)
{
    struct run run = new_run();
    (void)state;
    assert_whole(
        &run, VOCABULARY_B,
        "{\"id\":\"run_1\",\"status\":\"QUEUED\",\"taskIdentifier\":\"hello\","
        "\"createdAt\":\"2023-11-14T22:13:20.123Z\",\"updatedAt\":\"2023-11-14T22:13:20."
        "123Z\",\"isQueued\":true,\"isExecuting\":false,\"isWaiting\":false,"
        "\"isCompleted\":false,\"isSuccess\":false,\"isFailed\":false,"
        "\"isCancelled\":false,\"isTest\":false,\"tags\":[],\"costInCents\":0,"
        "\"baseCostInCents\":0,\"durationMs\":0,\"depth\":0,"
        "\"triggerFunction\":\"trigger\",\"attemptCount\":0,\"attempts\":[],"
        "\"relatedRuns\":{\"children\":[]}}");
}

static void completed_run_shows_every_field(void **state)
{
    struct run run = full_run();
    (void)state;
    assert_whole(
        &run, VOCABULARY_A,
        "{\"id\":\"run_2\",\"status\":\"COMPLETED\",\"taskIdentifier\":\"say "
        "\\\"hi\\\"\",\"number\":7,\"idempotencyKey\":\"welcome\",\"version\":\"20240523."
        "1\","
        "\"region\":\"eu\",\"ttl\":\"1h30m\",\"createdAt\":\"2023-11-14T22:13:20.000Z\","
        "\"updatedAt\":\"2023-11-14T22:13:25.000Z\",\"queuedAt\":\"2023-11-14T22:13:20."
        "750Z\",\"startedAt\":\"2023-11-14T22:13:21."
        "000Z\",\"finishedAt\":\"2023-11-14T22:13:24.000Z\",\"delayedUntil\":\"2023-11-"
        "14T22:13:20.500Z\",\"expiredAt\":\"2023-11-14T22:13:23.000Z\",\"isQueued\":false,"
        "\"isExecuting\":false,\"isWaiting\":false,\"isCompleted\":true,"
        "\"isSuccess\":true,\"isFailed\":false,\"isCancelled\":false,\"isTest\":true,"
        "\"tags\":[\"a\",\"b\"],\"costInCents\":0.25,\"baseCostInCents\":0.0025,"
        "\"durationMs\":1234,\"depth\":2,\"metadata\":{\"step\": 1},"
        "\"triggerFunction\":\"batchTriggerAndWait\",\"batchId\":\"batch_1\","
        "\"maxDurationSeconds\":60,"
        "\"payload\":{\"to\":\"x\"},\"output\":\"done\",\"attemptCount\":3,"
        "\"attempts\":[],\"relatedRuns\":{\"children\":[]}}");
}

static void related_runs_have_no_packets(void **state)
{
    struct run run = new_run(), parent = full_run();
    struct run children[] = { new_run(), new_run() };
    struct run_details details = {
        .root = &parent, .parent = &parent, .children = children, .child_count = 2
    };
    struct buf out = { 0 };
    (void)state;

    run_body_whole(&run, VOCABULARY_B, &details, &out);
    struct slice related = member_of(&out, "relatedRuns"), child;
    assert_true(slice_is(scan_member(scan_member(related, "parent"), "id"), "\"run_2\""));
    assert_true(slice_equal(scan_member(related, "root"), scan_member(related, "parent")));
    assert_true(
        slice_is(scan_member(scan_member(related, "root"), "batchId"), "\"batch_1\""));
    assert_false(scan_member(scan_member(related, "root"), "payload").ptr);
    struct scan_members elements = scan_members(scan_member(related, "children"));
    size_t count = 0;
    for (; scan_next_element(&elements, &child); count++)
        assert_true(slice_is(scan_member(child, "triggerFunction"), "\"trigger\""));
    assert_int_equal(count, 2);

    buf_finish(&out);
    run_finish(&run);
    run_finish(&parent);
    run_finish(&children[0]);
    run_finish(&children[1]);
}

/* ---- status and flags ---- */

static void flags_follow_the_status_name(void **state)
{
    static const struct {
        enum run_status status;
        enum vocabulary vocabulary;
        const char *word;
        const char *flags; /* the flags that are true */
    } cases[] = {
        { RUN_DELAYED, VOCABULARY_A, "DELAYED", "isQueued" },
        { RUN_PENDING_VERSION, VOCABULARY_A, "WAITING_FOR_DEPLOY", "isQueued" },
        { RUN_PENDING_VERSION, VOCABULARY_B, "PENDING_VERSION", "isQueued" },
        { RUN_QUEUED, VOCABULARY_A, "QUEUED", "isQueued" },
        { RUN_DEQUEUED, VOCABULARY_A, "EXECUTING", "isExecuting" },
        { RUN_DEQUEUED, VOCABULARY_B, "DEQUEUED", "isExecuting" },
        { RUN_EXECUTING, VOCABULARY_B, "EXECUTING", "isExecuting" },
        { RUN_RETRYING, VOCABULARY_A, "REATTEMPTING", "isExecuting" },
        { RUN_RETRYING, VOCABULARY_B, "EXECUTING", "isExecuting" },
        { RUN_WAITING, VOCABULARY_A, "FROZEN", "isExecuting" },
        { RUN_WAITING, VOCABULARY_B, "WAITING", "isWaiting" },
        { RUN_COMPLETED, VOCABULARY_B, "COMPLETED", "isCompleted isSuccess" },
        { RUN_CANCELED, VOCABULARY_A, "CANCELED", "isCompleted isFailed isCancelled" },
        { RUN_FAILED, VOCABULARY_B, "FAILED", "isCompleted isFailed" },
        { RUN_INTERRUPTED, VOCABULARY_A, "INTERRUPTED", "isCompleted isFailed" },
        { RUN_INTERRUPTED, VOCABULARY_B, "FAILED", "isCompleted isFailed" },
        { RUN_CRASHED, VOCABULARY_A, "CRASHED", "isCompleted isFailed" },
        { RUN_SYSTEM_FAILURE, VOCABULARY_A, "SYSTEM_FAILURE", "isCompleted isFailed" },
        { RUN_EXPIRED, VOCABULARY_A, "EXPIRED", "isCompleted isFailed" },
        { RUN_TIMED_OUT, VOCABULARY_B, "TIMED_OUT", "isCompleted isFailed" },
    };
    static const char *const flags[] = { "isQueued",    "isExecuting", "isWaiting",
                                         "isCompleted", "isSuccess",   "isFailed",
                                         "isCancelled" };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run();
        struct buf out = { 0 }, word = { 0 };
        run.status = (uint8_t)cases[i].status;
        run_body_whole(&run, cases[i].vocabulary, &alone, &out);
        assert_true(scan_string(member_of(&out, "status"), &word));
        assert_true(slice_is(buf_slice(&word), cases[i].word));
        for (size_t j = 0; j < sizeof(flags) / sizeof(flags[0]); j++) {
            bool expected = strstr(cases[i].flags, flags[j]);
            assert_true(slice_is(member_of(&out, flags[j]), expected ? "true" : "false"));
        }
        buf_finish(&out);
        buf_finish(&word);
        run_finish(&run);
    }
}

static void final_run_without_an_end_time_uses_its_last_change(void **state)
{
    struct run run = new_run();
    struct buf out = { 0 };
    (void)state;
    run.status = RUN_CANCELED;
    run.updated_at += 1000;
    run_body_whole(&run, VOCABULARY_A, &alone, &out);
    assert_true(slice_is(member_of(&out, "finishedAt"), "\"2023-11-14T22:13:21.123Z\""));
    buf_finish(&out);
    run_finish(&run);
}

/* ---- packets ---- */

static void packets_are_shown_unchanged(void **state)
{
    static const struct {
        const char *content, *type;
        const char *shown; /* NULL: the field is absent */
    } cases[] = {
        { "12345678901234567890", NULL, "12345678901234567890" },
        { "1e400", "application/json", "1e400" },
        { "0.1", NULL, "0.1" },
        { "-0", NULL, "-0" },
        { "{\"a\":1,\"a\":2}", NULL, "{\"a\":1,\"a\":2}" },
        { "\"\\u0000\"", NULL, "\"\\u0000\"" },
        { "null", NULL, "null" },
        { "[1, 2,\t3]", NULL, "[1, 2,\t3]" },
        { "{\"json\":{\"n\":1e400,\"z\":-0},\"meta\":{\"values\":{}}}",
          "application/super+json", "{\"n\":1e400,\"z\":-0}" },
        { "{\"json\":null}", "application/super+json", "null" },
        { "{\"meta\":{}}", "application/super+json", NULL },
        { "12", "text/plain", "\"12\"" },
        { "a \"b\"\n", "text/plain", "\"a \\\"b\\\"\\n\"" },
        { "x", "application/octet-stream", "\"x\"" },
        { "", "text/plain", NULL },
        { NULL, NULL, NULL },
        { "packets/1.json", "application/store", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run();
        struct buf out = { 0 };
        run.status = RUN_COMPLETED;
        run.payload = run.output = cases[i].content ? text(cases[i].content) : NULL;
        struct run_rare *rare = run_rare_edit(&run);
        rare->payload_type = rare->output_type = cases[i].type ? text(cases[i].type) : NULL;
        bytes_ref(run.output);
        bytes_ref(rare->output_type);
        run_body_whole(&run, VOCABULARY_A, &alone, &out);
        struct slice payload = member_of(&out, "payload");
        struct slice output = member_of(&out, "output");
        assert_true(slice_equal(payload, output));
        assert_int_equal(payload.ptr != NULL, cases[i].shown != NULL);
        if (cases[i].shown)
            assert_true(slice_is(payload, cases[i].shown));
        buf_finish(&out);
        run_finish(&run);
    }
}

static void stored_packets_are_shown_as_urls(void **state)
{
    struct run_details details = { .payload_url = SLICE("http://h/p?a=1&b=2"),
                                   .output_url = SLICE("http://h/o") };
    struct run run = new_run();
    struct buf out = { 0 };
    (void)state;
    run.status = RUN_COMPLETED;
    run_body_whole(&run, VOCABULARY_B, &details, &out);
    assert_true(slice_is(member_of(&out, "payloadPresignedUrl"), "\"http://h/p?a=1&b=2\""));
    assert_true(slice_is(member_of(&out, "outputPresignedUrl"), "\"http://h/o\""));
    assert_false(member_of(&out, "payload").ptr);
    buf_finish(&out);
    run_finish(&run);
}

static void output_is_shown_for_completed_runs_only(void **state)
{
    struct run run = new_run();
    struct buf out = { 0 };
    (void)state;
    run.status = RUN_EXECUTING;
    run.output = text("1");
    run_body_whole(&run, VOCABULARY_B, &alone, &out);
    assert_false(member_of(&out, "output").ptr);
    buf_finish(&out);
    run_finish(&run);
}

static void metadata_is_an_object_or_absent(void **state)
{
    static const struct {
        const char *stored, *shown;
    } cases[] = {
        { "{\"n\":12345678901234567890}", "{\"n\":12345678901234567890}" },
        { "{}", "{}" },
        { "[1]", NULL },
        { "\"text\"", NULL },
        { "null", NULL },
        { NULL, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run();
        struct buf out = { 0 };
        run.metadata = cases[i].stored ? text(cases[i].stored) : NULL;
        run_body_whole(&run, VOCABULARY_A, &alone, &out);
        struct slice shown = member_of(&out, "metadata");
        assert_int_equal(shown.ptr != NULL, cases[i].shown != NULL);
        if (shown.ptr)
            assert_true(slice_is(shown, cases[i].shown));
        assert_true(
            slice_is(run_body_metadata(&run), cases[i].shown ? cases[i].shown : "{}"));
        buf_finish(&out);
        run_finish(&run);
    }
}

static void errors_are_messages(void **state)
{
    static const struct {
        const char *stored, *shown;
    } cases[] = {
        { "{\"type\":\"STRING_ERROR\",\"raw\":\"Canceled by user\"}",
          "{\"message\":\"Canceled by user\"}" },
        { "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"TypeError\",\"message\":\"no\","
          "\"stackTrace\":\"at x\"}",
          "{\"message\":\"no\",\"name\":\"TypeError\",\"stackTrace\":\"at x\"}" },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_RUN_CRASHED\"}",
          "{\"message\":\"trigger.dev internal error (TASK_RUN_CRASHED)\"}" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run();
        struct buf out = { 0 };
        run.status = RUN_FAILED;
        run.error = text(cases[i].stored);
        run_body_whole(&run, VOCABULARY_A, &alone, &out);
        assert_true(slice_is(member_of(&out, "error"), cases[i].shown));
        buf_finish(&out);
        run_finish(&run);
    }
}

static void tags_are_sorted(void **state)
{
    struct slice tags[] = { SLICE("b"),  SLICE("B"),  SLICE("a:c"), SLICE("a"),
                            SLICE("ab"), SLICE("_x"), SLICE("1"),   SLICE("\u00fc"),
                            SLICE("A"),  SLICE("a") };
    struct run run = new_run();
    struct buf out = { 0 };
    (void)state;
    run.tags = tag_list_create(tags, 10);
    run_body_whole(&run, VOCABULARY_A, &alone, &out);
    assert_true(slice_is(member_of(&out, "tags"),
                         "[\"_x\",\"1\",\"a\",\"a\",\"A\",\"a:c\",\"ab\",\"b\",\"B\","
                         "\"\u00fc\"]"));
    buf_finish(&out);
    run_finish(&run);
}

/* ---- in lists ---- */

static void a_list_item_names_its_environment(void **state)
{
    struct run run = new_run();
    struct run_place dev = { SLICE("env_1"), SLICE("dev"), SLICE("Ann \"A\"") };
    struct buf out = { 0 };
    (void)state;
    run_body_item(&run, VOCABULARY_A, &dev, &out);
    assert_text(
        &out,
        "{\"id\":\"run_1\",\"status\":\"QUEUED\",\"taskIdentifier\":\"hello\","
        "\"createdAt\":\"2023-11-14T22:13:20.123Z\",\"updatedAt\":\"2023-11-14T22:13:20."
        "123Z\",\"isQueued\":true,\"isExecuting\":false,\"isWaiting\":false,"
        "\"isCompleted\":false,\"isSuccess\":false,\"isFailed\":false,"
        "\"isCancelled\":false,\"isTest\":false,\"tags\":[],\"costInCents\":0,"
        "\"baseCostInCents\":0,\"durationMs\":0,\"depth\":0,\"attemptCount\":0,"
        "\"taskKind\":\"STANDARD\","
        "\"env\":{\"id\":\"env_1\",\"name\":\"dev\",\"user\":\"Ann \\\"A\\\"\"}}");
    run_finish(&run);
}

static void list_item_without_a_user_omits_it_and_shows_no_packets(void **state)
{
    struct run run = full_run();
    struct run_place prod = { .id = SLICE("env_2"), .slug = SLICE("prod") };
    struct buf out = { 0 };
    (void)state;
    run_body_item(&run, VOCABULARY_B, &prod, &out);
    assert_true(slice_is(member_of(&out, "env"), "{\"id\":\"env_2\",\"name\":\"prod\"}"));
    assert_false(member_of(&out, "payload").ptr);
    assert_false(member_of(&out, "output").ptr);
    assert_true(slice_is(member_of(&out, "batchId"), "\"batch_1\""));
    assert_true(slice_is(member_of(&out, "metadata"), "{\"step\": 1}"));
    buf_finish(&out);
    run_finish(&run);
}

/* ---- results ---- */

static void result_has_the_output_as_text(void **state)
{
    struct run run = full_run();
    (void)state;
    assert_result(&run,
                  "{\"ok\":true,\"id\":\"run_2\",\"taskIdentifier\":\"say \\\"hi\\\"\","
                  "\"output\":\"done\",\"outputType\":\"text/plain\"}");
    run = new_run();
    run.status = RUN_COMPLETED;
    run.output = text("{\"a\":1e400}");
    assert_result(&run, "{\"ok\":true,\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
                        "\"output\":\"{\\\"a\\\":1e400}\","
                        "\"outputType\":\"application/json\"}");
    run = new_run();
    run.status = RUN_COMPLETED;
    assert_result(&run, "{\"ok\":true,\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
                        "\"outputType\":\"application/json\"}");
}

static void a_failed_result_has_the_stored_error(void **state)
{
    struct run run = new_run();
    (void)state;
    run.status = RUN_FAILED;
    run.error = text("{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}");
    assert_result(&run, "{\"ok\":false,\"id\":\"run_1\",\"taskIdentifier\":\"hello\","
                        "\"error\":{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}}");
}

static void a_result_without_a_usable_error_has_a_code(void **state)
{
    static const struct {
        enum run_status status;
        const char *error, *code;
    } cases[] = {
        { RUN_CANCELED, "{\"type\":\"STRING_ERROR\",\"raw\":\"Canceled by user\"}",
          "TASK_RUN_CANCELLED" },
        { RUN_TIMED_OUT, NULL, "MAX_DURATION_EXCEEDED" },
        { RUN_CRASHED, NULL, "TASK_RUN_CRASHED" },
        { RUN_FAILED, "null", "TASK_EXECUTION_FAILED" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run();
        struct buf out = { 0 }, code = { 0 };
        run.status = (uint8_t)cases[i].status;
        run.error = cases[i].error ? text(cases[i].error) : NULL;
        run_body_result(&run, &out);
        struct slice error = member_of(&out, "error");
        assert_true(slice_is(scan_member(error, "type"), "\"INTERNAL_ERROR\""));
        assert_true(scan_string(scan_member(error, "code"), &code));
        assert_true(slice_is(buf_slice(&code), cases[i].code));
        buf_finish(&code);
        buf_finish(&out);
        run_finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_run_shows_only_required_fields),
        cmocka_unit_test(completed_run_shows_every_field),
        cmocka_unit_test(related_runs_have_no_packets),
        cmocka_unit_test(flags_follow_the_status_name),
        cmocka_unit_test(final_run_without_an_end_time_uses_its_last_change),
        cmocka_unit_test(packets_are_shown_unchanged),
        cmocka_unit_test(stored_packets_are_shown_as_urls),
        cmocka_unit_test(output_is_shown_for_completed_runs_only),
        cmocka_unit_test(metadata_is_an_object_or_absent),
        cmocka_unit_test(errors_are_messages),
        cmocka_unit_test(tags_are_sorted),
        cmocka_unit_test(a_list_item_names_its_environment),
        cmocka_unit_test(list_item_without_a_user_omits_it_and_shows_no_packets),
        cmocka_unit_test(result_has_the_output_as_text),
        cmocka_unit_test(a_failed_result_has_the_stored_error),
        cmocka_unit_test(a_result_without_a_usable_error_has_a_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
