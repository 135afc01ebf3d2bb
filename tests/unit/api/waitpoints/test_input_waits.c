/* Tokens that the next record of an input stream completes. */
#include "tests/support/world/api_scene.h"
#include "tests/support/world/wall.h"

enum { HOUR = 3600 * 1000 };

#define TOKENS "/api/v1/waitpoints/tokens"
#define WAITS "EXECUTING_WITH_WAITPOINTS"

static char run[ID_MAX], token[ID_MAX];

static void ask(const char *body)
{
    post(body, "/api/v1/runs/%s/input-streams/wait", run);
}

static void create(const char *body)
{
    ask(body);
    assert_answered(200);
    keep("waitpointId", token, sizeof(token));
}

static void wait_for_it(void)
{
    post("{}", "/engine/v1/runs/%s/waitpoints/tokens/%s/wait", run, token);
    assert_answered(200);
}

static void write_record(const char *data)
{
    post(data, "/realtime/v1/streams/%s/input/chat", run);
    assert_answered(200);
}

/* Asserts that the run has resumed with this record as the token's output. */
static void assert_got(const char *output)
{
    await_execution(run, "EXECUTING");
    assert_says("execution.completedWaitpoints.0.friendlyId", token);
    assert_says("execution.completedWaitpoints.0.output", output);
    assert_says("execution.completedWaitpoints.1", NULL);
}

static void next_record_resumes_the_run(void **state)
{
    (void)state;
    start_run(run);
    create("{\"streamId\":\"chat\"}");
    assert_says("isCached", "false");
    wait_for_it();
    assert_execution(run, WAITS);
    post("{\"data\":1}", "/realtime/v1/streams/%s/input/other", run);
    assert_execution(run, WAITS);
    write_record("{\"data\":{ \"n\":12345678901234567890 }}");
    assert_got("{ \"n\":12345678901234567890 }");
}

static void existing_record_completes_the_token_at_once(void **state)
{
    (void)state;
    start_run(run);
    write_record("{\"data\":\"zero\"}");
    write_record("{\"data\":\"one\"}");
    create("{\"streamId\":\"chat\"}");
    get(TOKENS "/%s", token);
    assert_says("status", "COMPLETED");
    assert_says("output", "\"zero\"");
    create("{\"streamId\":\"chat\",\"lastSeqNum\":0}");
    wait_for_it();
    assert_got("\"one\"");
}

/* The record that completes it follows the last one that the caller saw. It is not the
 * newest record. */
static void run_that_saw_all_records_waits_for_the_next(void **state)
{
    (void)state;
    start_run(run);
    write_record("{\"data\":\"zero\"}");
    create("{\"streamId\":\"chat\",\"lastSeqNum\":0}");
    wait_for_it();
    assert_execution(run, WAITS);
    write_record("{\"data\":\"one\"}");
    write_record("{\"data\":\"two\"}");
    assert_got("\"one\"");
}

/* When the record came, no run waited, so the wait itself has to look for it. */
static void a_record_between_token_and_wait_is_not_missed(void **state)
{
    (void)state;
    start_run(run);
    create("{\"streamId\":\"chat\",\"lastSeqNum\":-1}");
    write_record("{\"data\":[1,2]}");
    get(TOKENS "/%s", token);
    assert_says("status", "WAITING");
    wait_for_it();
    assert_got("[1,2]");
}

static void wait_without_a_record_times_out(void **state)
{
    (void)state;
    start_run(run);
    create("{\"streamId\":\"chat\",\"timeout\":\"1h\"}");
    wall_advance(HOUR);
    wait_for_it();
    await_execution(run, "EXECUTING");
    assert_holds("TRIGGER_WAITPOINT_TIMEOUT");
    write_record("{\"data\":\"late\"}");
    create("{\"streamId\":\"chat\"}");
    wait_for_it();
    assert_got("\"late\"");
}

static void key_belongs_to_its_run_and_stream(void **state)
{
    char first[ID_MAX];
    (void)state;
    start_run(run);
    create("{\"streamId\":\"chat\",\"idempotencyKey\":\"k\"}");
    memcpy(first, token, sizeof(first));
    create("{\"streamId\":\"chat\",\"idempotencyKey\":\"k\"}");
    assert_says("isCached", "true");
    assert_string_equal(token, first);
    create("{\"streamId\":\"other\",\"idempotencyKey\":\"k\"}");
    assert_says("isCached", "false");
    assert_string_not_equal(token, first);
    start_run(run);
    create("{\"streamId\":\"chat\",\"idempotencyKey\":\"k\"}");
    assert_says("isCached", "false");
    assert_string_not_equal(token, first);
}

static void invalid_input_wait_is_rejected(void **state)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "{\"streamId\":1}",
        "{\"streamId\":\"\"}",
        "{\"streamId\":\"a\\u0007\"}",
        "{\"streamId\":\"chat\",\"timeout\":60}",
        "{\"streamId\":\"chat\",\"timeout\":\"soon\"}",
        "{\"streamId\":\"chat\",\"lastSeqNum\":-2}",
        "{\"streamId\":\"chat\",\"lastSeqNum\":1.5}",
        "{\"streamId\":\"chat\",\"lastSeqNum\":9007199254740992}",
    };
    (void)state;
    start_run(run);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        ask(bodies[i]);
        assert_answered(400);
    }
    get(TOKENS);
    assert_says("data.0", NULL);
}

static void only_an_unfinished_run_can_wait(void **state)
{
    (void)state;
    start_run(run);
    with_key(API_KEY_PROD);
    ask("{\"streamId\":\"chat\"}");
    assert_answered(404);
    assert_says("error", "Run not found");
    post("{}", "/api/v2/runs/%s/cancel", run);
    assert_answered(200);
    ask("{\"streamId\":\"chat\"}");
    assert_answered(400);
    assert_says("error", "Cannot wait for an input stream of a completed run");
}

static void failed_input_token_can_be_retried(void **state)
{
    (void)state;
    start_run(run);
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 1 };
    ask("{\"streamId\":\"chat\"}");
    assert_answered(503);
    create("{\"streamId\":\"chat\"}");
    wait_for_it();
    write_record("{\"data\":null}");
    assert_got("null");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(next_record_resumes_the_run),
        TEST(existing_record_completes_the_token_at_once),
        TEST(run_that_saw_all_records_waits_for_the_next),
        TEST(a_record_between_token_and_wait_is_not_missed),
        TEST(wait_without_a_record_times_out),
        TEST(key_belongs_to_its_run_and_stream),
        TEST(invalid_input_wait_is_rejected),
        TEST(only_an_unfinished_run_can_wait),
        TEST(failed_input_token_can_be_retried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
