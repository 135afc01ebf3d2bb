/* run_message: the members that a dequeued message needs before its process is started. */
#include "supervisor/gateway_client/run_message.h"

#include "base/json/scan.h"
#include "tests/support/world/unit.h"

#define WORKER                                                                             \
    "\"backgroundWorker\":{\"id\":\"worker_1\",\"friendlyId\":\"worker_1\",\"version\":"   \
    "\"20260101.2\"}"
#define RUN                                                                                \
    "\"run\":{\"id\":\"run_a\",\"friendlyId\":\"run_a\",\"attemptNumber\":3,"              \
    "\"machine\":{\"name\":\"small-2x\",\"cpu\":1,\"memory\":1.5}}"
#define REST                                                                               \
    "\"snapshot\":{\"id\":\"snapshot_1\",\"friendlyId\":\"snapshot_1\"},"                  \
    "\"environment\":{\"id\":\"env_1\",\"type\":\"PRODUCTION\"},"                          \
    "\"organization\":{\"id\":\"org_1\"},\"project\":{\"id\":\"project_1\"}"

static struct run_message read(const char *text)
{
    struct run_message message;
    struct failure why = { 0 };
    assert_true(scan_is_json(slice_of(text)));
    assert_int_equal(run_message_read(slice_of(text), &message, &why), OK);
    return message;
}

static void a_run_of_a_deployment_is_read(void **state)
{
    (void)state;
    struct run_message m =
        read("{" RUN "," WORKER "," REST
             ",\"deployment\":{\"id\":\"deployment_9\",\"friendlyId\":\"deployment_9\"},"
             "\"image\":\"runcast/"
             "proj_abc:20260101.2\",\"x-runcast\":{\"versionHash\":\"beef\"}}");
    assert_string_equal(m.run, "run_a");
    assert_string_equal(m.snapshot, "snapshot_1");
    assert_int_equal(m.attempt, 3);
    assert_true(m.cores == 1 && m.gigabytes == 1.5);
    assert_string_equal(m.environment, "env_1");
    assert_string_equal(m.organization, "org_1");
    assert_string_equal(m.project, "project_1");
    assert_string_equal(m.project_ref, "proj_abc");
    assert_string_equal(m.version, "20260101.2");
    assert_string_equal(m.deployment, "deployment_9");
    assert_string_equal(m.version_hash, "beef");
    assert_true(m.has_deployment);
    assert_true(slice_starts(bytes_slice(m.text), "{\"run\""));
    run_message_finish(&m);
}

static void a_run_of_a_plain_registration_is_named_by_its_worker(void **state)
{
    (void)state;
    struct run_message m = read("{" RUN "," WORKER "," REST ",\"deployment\":{}}");
    assert_string_equal(m.deployment, "worker_1");
    assert_false(m.has_deployment);
    assert_string_equal(m.project_ref, "");
    run_message_finish(&m);
}

static void message_with_missing_or_invalid_members_is_rejected(void **state)
{
    static const char *const cases[] = {
        "{" RUN "," WORKER "}",
        "{" WORKER "," REST "}",
        "{" RUN "," REST "}",
        "{\"run\":{\"friendlyId\":\"../etc\",\"machine\":{\"cpu\":1,\"memory\":1}}," WORKER
        "," REST "}",
        "{\"run\":{\"friendlyId\":\"run_a\",\"machine\":{\"cpu\":-1,\"memory\":1}}," WORKER
        "," REST "}",
        "{\"run\":[]," WORKER "," REST "}",
        "{" RUN ",\"backgroundWorker\":{\"id\":\"a/b\",\"version\":\"1\"}," REST "}",
        "{" RUN ",\"backgroundWorker\":{\"id\":\"w\",\"version\":\"\\u0000\"}," REST "}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run_message message;
        struct failure why = { 0 };
        assert_true(scan_is_json(slice_of(cases[i])));
        assert_int_equal(run_message_read(slice_of(cases[i]), &message, &why), ERR_INVALID);
        assert_true(!message.run[0] == !message.snapshot[0]);
        run_message_finish(&message);
    }
}

static void messages_of_an_answer_are_returned_one_by_one(void **state)
{
    struct slice message;
    size_t at = 0;
    (void)state;
    assert_true(run_message_next(SLICE("[{\"a\":1},{\"b\":2}]"), &at, &message));
    assert_true(slice_is(message, "{\"a\":1}"));
    assert_true(run_message_next(SLICE("[{\"a\":1},{\"b\":2}]"), &at, &message));
    assert_true(slice_is(message, "{\"b\":2}"));
    assert_false(run_message_next(SLICE("[{\"a\":1},{\"b\":2}]"), &at, &message));
    at = 0;
    assert_false(run_message_next(SLICE("[]"), &at, &message));
    assert_false(run_message_next(SLICE("{}"), &at, &message));
    assert_false(run_message_next(SLICE("[3]"), &at, &message));
    assert_false(run_message_next(SLICE("no JSON"), &at, &message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_a_deployment_is_read),
        cmocka_unit_test(a_run_of_a_plain_registration_is_named_by_its_worker),
        cmocka_unit_test(message_with_missing_or_invalid_members_is_rejected),
        cmocka_unit_test(messages_of_an_answer_are_returned_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
