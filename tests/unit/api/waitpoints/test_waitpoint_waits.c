/* A run that waits for a token or for a time, and resumes. */
#include "tests/support/world/api_scene.h"
#include "tests/support/world/wall.h"

enum { HOUR = 3600 * 1000 };

#define TOKENS "/api/v1/waitpoints/tokens"
#define WAITS "EXECUTING_WITH_WAITPOINTS"

static char run[ID_MAX], token[ID_MAX];

static void create(const char *body)
{
    post(body, TOKENS);
    assert_answered(200);
    keep("id", token, sizeof(token));
}

static void wait_for_token(void)
{
    post("{}", "/engine/v1/runs/%s/waitpoints/tokens/%s/wait", run, token);
}

static void wait_for_time(const char *body)
{
    post(body, "/engine/v1/runs/%s/wait/duration", run);
}

static void complete(const char *body)
{
    post(body, TOKENS "/%s/complete", token);
}

static void a_run_waits_until_its_token_is_completed(void **state)
{
    (void)state;
    start_run(run);
    create("{}");
    wait_for_token();
    assert_answered(200);
    assert_says("success", "true");
    assert_execution(run, WAITS);
    complete("{\"data\":{\"n\":1}}");
    assert_answered(200);
    await_execution(run, "EXECUTING");
    assert_says("execution.completedWaitpoints.0.friendlyId", token);
    assert_says("execution.completedWaitpoints.0.output", "{\"n\":1}");
    assert_says("execution.completedWaitpoints.0.outputIsError", "false");
}

static void failed_completion_resumes_no_run(void **state)
{
    (void)state;
    start_run(run);
    create("{}");
    wait_for_token();
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 1 };
    complete("{\"data\":1}");
    assert_answered(503);
    assert_execution(run, WAITS);
    complete("{\"data\":2}");
    assert_answered(200);
    await_execution(run, "EXECUTING");
    assert_says("execution.completedWaitpoints.0.output", "2");
}

static void failed_wait_can_be_retried(void **state)
{
    (void)state;
    start_run(run);
    create("{}");
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 1 };
    wait_for_token();
    assert_answered(503);
    assert_execution(run, "EXECUTING");
    *fake_store_load_fault(scene.fake) = (struct fault){ .countdown = 1 };
    wait_for_token();
    assert_answered(503);
    wait_for_token();
    assert_answered(200);
    assert_execution(run, WAITS);
    complete("{}");
    await_execution(run, "EXECUTING");
    assert_says("execution.completedWaitpoints.1", NULL);
}

static void completed_token_does_not_block(void **state)
{
    (void)state;
    start_run(run);
    create("{}");
    complete("{\"data\":1}");
    wait_for_token();
    assert_answered(200);
    await_execution(run, "EXECUTING");
    assert_says("execution.completedWaitpoints.0.output", "1");
    create("{\"timeout\":\"1h\"}");
    wall_advance(HOUR);
    wait_for_token();
    assert_answered(200);
    await_execution(run, "EXECUTING");
    assert_holds("TRIGGER_WAITPOINT_TIMEOUT");
}

static void time_in_the_past_does_not_block(void **state)
{
    char waitpoint[ID_MAX];
    (void)state;
    start_run(run);
    wait_for_time("{\"date\":\"2024-01-31T09:00:00.000Z\"}");
    assert_answered(200);
    assert_says("waitUntil", "2024-01-31T09:00:00.000Z");
    keep("waitpoint.id", waitpoint, sizeof(waitpoint));
    await_execution(run, "EXECUTING");
    assert_says("execution.completedWaitpoints.0.friendlyId", waitpoint);
    assert_says("execution.completedWaitpoints.0.type", "DATETIME");
}

/* A run that restarts and reaches its wait again waits only for the rest of it. */
static void key_of_a_timed_wait_returns_the_same_time(void **state)
{
    char first[ID_MAX];
    (void)state;
    start_run(run);
    wait_for_time("{\"date\":\"2099-01-31T09:00:00Z\",\"idempotencyKey\":\"k\"}");
    assert_answered(200);
    keep("waitpoint.id", first, sizeof(first));
    assert_execution(run, WAITS);
    start_run(run);
    wait_for_time("{\"date\":\"2100-01-31T09:00:00Z\",\"idempotencyKey\":\"k\"}");
    assert_says("waitpoint.id", first);
    assert_says("waitUntil", "2099-01-31T09:00:00.000Z");
    create("{\"idempotencyKey\":\"k\"}");
    assert_string_not_equal(token, first);
    assert_says("isCached", "false");
    get(TOKENS);
    assert_says("data.0.id", token);
    assert_says("data.1", NULL);
}

static void invalid_wait_leaves_the_run_unchanged(void **state)
{
    static const char *const dates[] = { "{\"date\":\"soon\"}", "{\"date\":0}", "{}", "[" };
    (void)state;
    start_run(run);
    for (size_t i = 0; i < 4; i++) {
        wait_for_time(dates[i]);
        assert_answered(400);
    }
    memcpy(token, "waitpoint_nobody", sizeof("waitpoint_nobody"));
    wait_for_token();
    assert_answered(404);
    with_key(API_KEY_PROD);
    post("{}", TOKENS);
    keep("id", token, sizeof(token));
    wait_for_token();
    assert_answered(404);
    assert_says("error", "Waitpoint not found");
    assert_execution(run, "EXECUTING");
    create("{}");
    memcpy(run, "run_nobody", sizeof("run_nobody"));
    wait_for_token();
    assert_answered(404);
    assert_says("error", "Run not found");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_waits_until_its_token_is_completed),
        TEST(failed_completion_resumes_no_run),
        TEST(failed_wait_can_be_retried),
        TEST(completed_token_does_not_block),
        TEST(time_in_the_past_does_not_block),
        TEST(key_of_a_timed_wait_returns_the_same_time),
        TEST(invalid_wait_leaves_the_run_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
