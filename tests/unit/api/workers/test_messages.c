/* Messages to workers, word for word. */
#include "tests/support/world/unit.h"

#include "accounts/variables.h"
#include "api/workers/dequeued_message.h"
#include "base/json/scan.h"

static struct organization organization = { .id = "org_1", .name = "Org", .slug = "org" };
static struct project project = {
    .id = "project_1",
    .ref = "proj_x",
    .name = "Project",
    .slug = "project",
    .organization_id = "org_1",
    .organization = &organization,
};
static const struct account account = {
    .number = 1,
    .id = "env_1",
    .project_id = "project_1",
    .project = &project,
    .secret_key = "tr_dev_x",
};
static const struct task_home home = { .account = &account,
                                       .base_url = { "http://h:1", 10 },
                                       .cents_per_ms = 3.38e-06 };
static const struct worker worker = { .id = "worker_1", .version = "20231114.1" };

static struct bytes *text(const char *content)
{
    return bytes_create(slice_of(content));
}

static struct run new_run(enum run_status status, enum run_execution execution)
{
    return (struct run){
        .id = "run_1",
        .snapshot = 2,
        .status = (uint8_t)status,
        .execution = (uint8_t)execution,
        .machine = MACHINE_SMALL_1X,
        .created_at = 1700000000000,
        .updated_at = 1700000001000,
        .task = text("hello"),
        .queue = text("task/hello"),
        .worker_version = text("20231114.1"),
    };
}

#define SNAPSHOT(status, description)                                                      \
    "{\"id\":\"snapshot_run_1-n0000000002\","                                              \
    "\"friendlyId\":\"snapshot_run_1-n0000000002\","                                       \
    "\"executionStatus\":\"" status "\",\"description\":\"" description                    \
    "\",\"createdAt\":\"2023-11-14T22:13:21.000Z\"}"
#define RUN(status, attempt)                                                               \
    "{\"id\":\"run_1\",\"friendlyId\":\"run_1\",\"status\":\"" status                      \
    "\",\"attemptNumber\":" attempt "}"
#define CENTS "0.00000338"
#define MACHINE                                                                            \
    "\"machine\":{\"name\":\"small-1x\",\"cpu\":0.5,\"memory\":0.5,\"centsPerMs\":" CENTS  \
    "}"

static void assert_json(struct buf *out, const char *expected)
{
    buf_add_char(out, '\0');
    assert_true(scan_is_json(slice_of(out->ptr)));
    assert_string_equal(out->ptr, expected);
    buf_finish(out);
}

static void dequeued_run_includes_its_lease(void **state)
{
    (void)state;
    struct run run = new_run(RUN_DEQUEUED, EXECUTION_PENDING_EXECUTING);
    struct buf out = { 0 };
    run.attempt = 1;
    run.is_test = true;
    struct dequeued dequeued = { .run = &run,
                                 .account = &account,
                                 .worker = &worker,
                                 .at = 1700000002000,
                                 .cents_per_ms = 3.38e-06 };
    message_add_dequeued(&out, &dequeued);
    assert_json(
        &out, "{\"version\":\"1\",\"dequeuedAt\":\"2023-11-14T22:13:22.000Z\","
              "\"snapshot\":" SNAPSHOT(
                  "PENDING_EXECUTING",
                  "The run was dequeued") ",\"completedWaitpoints\":[],"
                                          "\"backgroundWorker\":{\"id\":\"worker_1\","
                                          "\"friendlyId\":\"worker_1\","
                                          "\"version\":\"20231114.1\"},\"deployment\":{},"
                                          "\"run\":{\"id\":\"run_1\",\"friendlyId\":\"run_"
                                          "1\",\"isTest\":true,"
                                          "\"isReplay\":false," MACHINE
                                          ",\"attemptNumber\":2,\"masterQueue\":\"env_1\","
                                          "\"traceContext\":{}},\"environment\":{\"id\":"
                                          "\"env_1\",\"type\":\"DEVELOPMENT\"},"
                                          "\"organization\":{\"id\":\"org_1\"},\"project\":"
                                          "{\"id\":\"project_1\"}}");
    run_finish(&run);
}

static const struct worker deployed = {
    .id = "worker_1",
    .version = "20231114.1",
    .deployment = "deployment_1",
    .short_code = "abcd1234",
    .runtime = "node-22",
    .archive_hash = "00ff",
};

static void a_run_of_a_deployed_version_names_its_deployment(void **state)
{
    (void)state;
    struct run run = new_run(RUN_DEQUEUED, EXECUTION_PENDING_EXECUTING);
    struct buf out = { 0 };
    struct dequeued dequeued = { .run = &run, .account = &account, .worker = &deployed };
    message_add_dequeued(&out, &dequeued);
    struct slice message = buf_slice(&out);
    assert_true(scan_equal(scan_member(scan_member(message, "deployment"), "friendlyId"),
                           SLICE("\"deployment_1\"")));
    assert_true(scan_equal(scan_member(scan_member(message, "deployment"), "id"),
                           SLICE("\"deployment_1\"")));
    assert_true(scan_member(scan_member(message, "deployment"), "imagePlatform").len > 2);
    assert_true(
        scan_equal(scan_member(message, "image"), SLICE("\"runcast/proj_x:20231114.1\"")));
    assert_true(
        scan_equal(scan_member(message, "x-runcast"), SLICE("{\"versionHash\":\"00ff\"}")));
    buf_finish(&out);
    run_finish(&run);
}

static void the_latest_snapshot_has_no_attempt_before_the_first(void **state)
{
    (void)state;
    struct run run = new_run(RUN_DEQUEUED, EXECUTION_PENDING_EXECUTING);
    struct buf out = { 0 };
    message_add_latest(&out, &run, SLICE("[]"));
    assert_json(
        &out,
        "{\"execution\":{\"version\":\"1\",\"snapshot\":" SNAPSHOT(
            "PENDING_EXECUTING",
            "The run was dequeued") ",\"run\":" RUN("DEQUEUED",
                                                    "null") ","
                                                            "\"completedWaitpoints\":[]}}");
    run_finish(&run);
}

static void latest_snapshot_has_the_given_waitpoints(void **state)
{
    (void)state;
    struct run run = new_run(RUN_EXECUTING, EXECUTION_EXECUTING);
    struct buf out = { 0 };
    run.attempt = 1;
    run.batch = text("batch_1");
    message_add_latest(&out, &run, SLICE("[{\"id\":\"waitpoint_1\"}]"));
    assert_json(
        &out,
        "{\"execution\":{\"version\":\"1\",\"snapshot\":" SNAPSHOT(
            "EXECUTING",
            "The run executes") ",\"run\":" RUN("EXECUTING",
                                                "1") ",\"completedWaitpoints\":[{\"id\":"
                                                     "\"waitpoint_1\"}],\"batch\":{\"id\":"
                                                     "\"batch_1\",\"friendlyId\":\"batch_"
                                                     "1\"}}}");
    run_finish(&run);
}

static void a_result_names_what_the_worker_does_next(void **state)
{
    (void)state;
    static const struct {
        enum attempt_result result;
        const char *name;
    } cases[] = {
        { ATTEMPT_RUN_FINISHED, "RUN_FINISHED" },
        { ATTEMPT_RETRY_IMMEDIATELY, "RETRY_IMMEDIATELY" },
        { ATTEMPT_RETRY_QUEUED, "RETRY_QUEUED" },
        { ATTEMPT_PENDING_CANCEL, "RUN_PENDING_CANCEL" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run run = new_run(RUN_RETRYING, EXECUTION_EXECUTING);
        struct buf out = { 0 }, expected = { 0 };
        run.attempt = 1;
        message_add_result(&out, &run, cases[i].result);
        buf_print(&expected,
                  "{\"result\":{\"attemptStatus\":\"%s\",\"snapshot\":%s,"
                  "\"run\":%s}}",
                  cases[i].name, SNAPSHOT("EXECUTING", "The run executes"),
                  RUN("RETRYING_AFTER_FAILURE", "1"));
        assert_json(&out, expected.ptr);
        buf_finish(&expected);
        run_finish(&run);
    }
}

#define VARIABLES                                                                          \
    "\"TRIGGER_API_URL\":\"http://h:1\",\"TRIGGER_STREAM_URL\":\"http://h:1\","            \
    "\"TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT\":\"http://h:1/otel/env_1/"                     \
    "hy_9tgMHrLL-QD30NygUypRK8FWqU8agcjdA5Gm5Rwg\","                                       \
    "\"TRIGGER_OTEL_BATCH_PROCESSING_ENABLED\":\"1\","                                     \
    "\"TRIGGER_OTEL_LOG_MAX_QUEUE_SIZE\":\"10000\","                                       \
    "\"TRIGGER_OTEL_LOG_MAX_EXPORT_BATCH_SIZE\":\"400\","                                  \
    "\"TRIGGER_OTEL_LOG_SCHEDULED_DELAY_MILLIS\":\"20\","                                  \
    "\"TRIGGER_OTEL_SPAN_MAX_QUEUE_SIZE\":\"10000\","                                      \
    "\"TRIGGER_OTEL_SPAN_MAX_EXPORT_BATCH_SIZE\":\"400\","                                 \
    "\"TRIGGER_OTEL_SPAN_SCHEDULED_DELAY_MILLIS\":\"20\","                                 \
    "\"TRIGGER_REALTIME_STREAM_VERSION\":\"v1\""
#define TENANT                                                                             \
    "\"environment\":{\"id\":\"env_1\",\"slug\":\"dev\",\"type\":\"DEVELOPMENT\"},"        \
    "\"organization\":{\"id\":\"org_1\",\"slug\":\"org\",\"name\":\"Org\"},"               \
    "\"project\":{\"id\":\"project_1\",\"ref\":\"proj_x\",\"slug\":\"project\","           \
    "\"name\":\"Project\"}"
#define COSTS                                                                              \
    "\"durationMs\":0,\"costInCents\":0.25,\"baseCostInCents\":0.0025,\"traceContext\":{}" \
    ","                                                                                    \
    "\"realtimeStreamsVersion\":\"v2\""
#define START                                                                              \
    "{\"run\":" RUN("EXECUTING", "1") ",\"snapshot\":" SNAPSHOT(                           \
        "EXECUTING", "The run executes") ",\"envVars\":{" VARIABLES                        \
                                         ",\"TRIGGER_RUN_ID\":\"run_1\",\"TRIGGER_"        \
                                         "MACHINE_PRESET\":\"small-1x\"},"                 \
                                         "\"execution\":{\"attempt\":{\"number\":1,"       \
                                         "\"startedAt\":\"2023-11-14T22:13:21.000Z\"},"

static struct run started_run(void)
{
    struct run run = new_run(RUN_EXECUTING, EXECUTION_EXECUTING);
    run.attempt = 1;
    run.attempt_at = 1700000001000;
    run.cost_cents = 0.25;
    run.base_cost_cents = 0.0025;
    return run;
}

static void execution_omits_unset_values(void **state)
{
    (void)state;
    struct run run = started_run();
    struct buf out = { 0 };
    size_t place = message_add_start(&out, &run, &home, NULL);
    assert_memory_equal(out.ptr + place - 11, "\"payload\":\"\"", 12);
    assert_json(&out,
                START "\"run\":{\"id\":\"run_1\",\"payload\":\"\",\"payloadType\":"
                      "\"application/json\",\"tags\":[],\"isTest\":false,"
                      "\"isReplay\":false,\"createdAt\":\"2023-11-14T22:13:20.000Z\","
                      "\"version\":\"20231114.1\"," COSTS "},"
                      "\"task\":{\"id\":\"hello\",\"filePath\":\"\"},"
                      "\"queue\":{\"id\":\"task/hello\",\"name\":\"task/hello\"}," TENANT
                      "," MACHINE "}}");
    run_finish(&run);
}

static void execution_contains_set_values(void **state)
{
    (void)state;
    struct run run = started_run();
    struct slice tags[] = { SLICE("one"), SLICE("t\"wo") };
    struct worker_task task = { .id = text("hello"),
                                .file_path = text("src/a.ts"),
                                .export_name = text("a") };
    const struct worker with_task = { .tasks = &task, .task_count = 1 };
    struct buf out = { 0 };
    run_rare_edit(&run)->payload_type = text("application/super+json");
    run.tags = tag_list_create(tags, 2);
    run.metadata = text("{\"n\":1e400}");
    run.started_at = 1700000000500;
    run.max_attempts = 3;
    run.max_duration_s = 60;
    run_rare_edit(&run)->priority_ms = 1500;
    run_rare_edit(&run)->parent = text("run_0");
    run_rare_edit(&run)->root = text("run_00");
    run.batch = text("batch_1");
    message_add_start(&out, &run, &home, &with_task);
    assert_json(
        &out,
        START "\"run\":{\"id\":\"run_1\",\"payload\":\"\","
              "\"payloadType\":\"application/super+json\",\"tags\":[\"one\",\"t\\\"wo\"],"
              "\"isTest\":false,\"isReplay\":false,"
              "\"createdAt\":\"2023-11-14T22:13:20.000Z\","
              "\"startedAt\":\"2023-11-14T22:13:20.500Z\",\"maxAttempts\":3,"
              "\"maxDuration\":60,\"metadata\":{\"n\":1e400},\"priority\":1.5,"
              "\"version\":\"20231114.1\",\"parentTaskRunId\":\"run_0\","
              "\"rootTaskRunId\":\"run_00\"," COSTS "},"
              "\"task\":{\"id\":\"hello\",\"filePath\":\"src/a.ts\",\"exportName\":\"a\"},"
              "\"queue\":{\"id\":\"task/hello\",\"name\":\"task/hello\"}," TENANT
              "," MACHINE ",\"batch\":{\"id\":\"batch_1\"}}}");
    bytes_unref(task.id);
    bytes_unref(task.file_path);
    bytes_unref(task.export_name);
    run_finish(&run);
}

static void an_execution_of_a_deployed_version_names_its_deployment(void **state)
{
    (void)state;
    struct run run = started_run();
    struct buf out = { 0 };
    message_add_start(&out, &run, &home, &deployed);
    struct slice execution = scan_member(buf_slice(&out), "execution");
    assert_true(scan_equal(scan_member(execution, "deployment"),
                           SLICE("{\"id\":\"deployment_1\",\"shortCode\":\"abcd1234\","
                                 "\"version\":\"20231114.1\",\"runtime\":\"node-22\","
                                 "\"runtimeVersion\":\"\"}")));
    buf_finish(&out);
    run_finish(&run);
}

static void the_project_has_no_variables_of_a_run(void **state)
{
    (void)state;
    struct buf out = { 0 };
    message_add_variables(&out, NULL, &home);
    assert_json(&out, "{" VARIABLES "}");
}

/* Variables of the service itself cannot be overridden by a user's; others can. */
static void service_variables_cannot_be_overridden(void **state)
{
    (void)state;
    struct buf out = { 0 };
    struct account own = account;
    struct task_home own_home = { .account = &own, .base_url = SLICE("http://h:1") };
    variables_put(&own, SLICE("B"), SLICE("2\n\"x\""), false, 1);
    variables_put(&own, SLICE("A"), SLICE("hush"), true, 1);
    variables_put(&own, SLICE("TRIGGER_RUN_ID"), SLICE("mine"), false, 1);
    variables_put(&own, SLICE("TRIGGER_STREAM_URL"), SLICE("http://elsewhere"), false, 1);
    message_add_variables(&out, NULL, &own_home);
    assert_json(&out, "{\"A\":\"hush\",\"B\":\"2\\n\\\"x\\\"\"," VARIABLES "}");

    variables_put(&own, SLICE("TRIGGER_REALTIME_STREAM_VERSION"), SLICE("v2"), false, 1);
    message_add_variables(&out, NULL, &own_home);
    buf_add_char(&out, '\0');
    assert_non_null(strstr(out.ptr, "STREAM_VERSION\":\"v2\""));
    assert_null(strstr(out.ptr, "\"v1\""));
    buf_finish(&out);
    variables_destroy(own.variables);
}

static void the_queues_of_the_sdk_hold_what_a_run_may_log(void **state)
{
    (void)state;
    struct buf out = { 0 };
    struct task_home own_home = { .account = &account,
                                  .base_url = SLICE("http://h:1"),
                                  .log_rows = 20000 };
    message_add_variables(&out, NULL, &own_home);
    buf_add_char(&out, '\0');
    assert_non_null(strstr(out.ptr, "LOG_MAX_QUEUE_SIZE\":\"20000\""));
    assert_non_null(strstr(out.ptr, "LOG_MAX_EXPORT_BATCH_SIZE\":\"800\""));
    assert_non_null(strstr(out.ptr, "SPAN_MAX_QUEUE_SIZE\":\"20000\""));
    assert_non_null(strstr(out.ptr, "SPAN_MAX_EXPORT_BATCH_SIZE\":\"800\""));
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dequeued_run_includes_its_lease),
        cmocka_unit_test(a_run_of_a_deployed_version_names_its_deployment),
        cmocka_unit_test(an_execution_of_a_deployed_version_names_its_deployment),
        cmocka_unit_test(the_latest_snapshot_has_no_attempt_before_the_first),
        cmocka_unit_test(latest_snapshot_has_the_given_waitpoints),
        cmocka_unit_test(a_result_names_what_the_worker_does_next),
        cmocka_unit_test(execution_omits_unset_values),
        cmocka_unit_test(execution_contains_set_values),
        cmocka_unit_test(the_project_has_no_variables_of_a_run),
        cmocka_unit_test(service_variables_cannot_be_overridden),
        cmocka_unit_test(the_queues_of_the_sdk_hold_what_a_run_may_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
