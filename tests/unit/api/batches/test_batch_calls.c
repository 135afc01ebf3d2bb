/* Batches in one request, a parent that waits for a batch, and results. */
#include "tests/support/world/api_scene.h"
#include "tests/support/world/wall.h"

#include <stdio.h>

enum { HOUR = 3600 * 1000, TOO_LARGE = 3200000 };

static char batch[ID_MAX];

#define HELD "\"options\":{\"delay\":\"1h\"}"
#define TWO "{\"items\":[{\"task\":\"hello\"," HELD "},{\"task\":\"hello\"," HELD "}]}"

static size_t runs(void)
{
    return fake_store_count(scene.fake, 1);
}

static void cancel_child(int number)
{
    char path[24], run[ID_MAX];
    snprintf(path, sizeof(path), "runs.%d", number);
    get("/api/v2/batches/%s", batch);
    keep(path, run, sizeof(run));
    post("{}", "/api/v2/runs/%s/cancel", run);
    assert_answered(200);
}

/* ---- in one request ---- */

static void batch_completes_with_its_runs(void **state)
{
    (void)state;
    post(TWO, "/api/v2/tasks/batch");
    assert_answered(202);
    assert_says("runCount", "2");
    keep("id", batch, sizeof(batch));
    cancel_child(0);
    get("/api/v2/batches/%s", batch);
    assert_says("status", "PENDING");
    get("/api/v1/batches/%s/results", batch);
    assert_answered(200);
    assert_says("items.0.ok", "false");
    assert_says("items.0.taskIdentifier", "hello");
    assert_says("items.1", NULL);
    cancel_child(1);
    get("/api/v2/batches/%s", batch);
    assert_says("status", "COMPLETED");
    get("/api/v1/batches/%s/results", batch);
    assert_says("items.1.ok", "false");
    assert_says("items.2", NULL);
}

static void unreadable_results_are_an_error(void **state)
{
    (void)state;
    post(TWO, "/api/v2/tasks/batch");
    keep("id", batch, sizeof(batch));
    *fake_store_load_fault(scene.fake) = (struct fault){ .countdown = 1 };
    get("/api/v1/batches/%s/results", batch);
    assert_answered(503);
    get("/api/v1/batches/%s/results", batch);
    assert_answered(200);
    assert_says("items", "[]");
}

/* The second request may have other items: they are ignored. */
static void key_returns_the_whole_batch_until_it_expires(void **state)
{
    char run[ID_MAX];
    static const char headers[] = "idempotency-key: k\r\nidempotency-key-ttl: 1h\r\n";
    (void)state;
    with_headers(headers);
    post(TWO, "/api/v1/tasks/batch");
    assert_answered(202);
    assert_says("isCached", "false");
    keep("id", batch, sizeof(batch));
    keep("runs.1.id", run, sizeof(run));
    with_headers(headers);
    post("{\"items\":[{\"task\":\"hello\"}]}", "/api/v1/tasks/batch");
    assert_says("id", batch);
    assert_says("isCached", "true");
    assert_says("runs.1.id", run);
    assert_says("runs.1.isCached", "true");
    assert_int_equal(runs(), 2);
    wall_advance(HOUR);
    with_headers(headers);
    post(TWO, "/api/v1/tasks/batch");
    assert_says("isCached", "false");
    assert_int_equal(runs(), 4);
}

static void item_with_a_known_key_is_the_older_run(void **state)
{
    static const char keyed[] =
        "{\"items\":[{\"task\":\"hello\",\"options\":{\"delay\":"
        "\"1h\",\"idempotencyKey\":\"k\"}},{\"task\":\"hello\"," HELD "}]}";
    char run[ID_MAX];
    (void)state;
    post(keyed, "/api/v1/tasks/batch");
    assert_says("runs.0.isCached", "false");
    keep("runs.0.id", run, sizeof(run));
    post(keyed, "/api/v1/tasks/batch");
    assert_says("runs.0.id", run);
    assert_says("runs.0.isCached", "true");
    assert_says("runs.1.isCached", "false");
    assert_int_equal(runs(), 3);
}

static void invalid_or_failed_batch_leaves_no_run(void **state)
{
    (void)state;
    post("{\"items\":[]}", "/api/v1/tasks/batch");
    assert_answered(400);
    post("{\"items\":[{\"task\":\"hello\"},{\"payload\":1}]}", "/api/v1/tasks/batch");
    assert_answered(400);
    assert_holds("items[1].task");
    post("{\"items\":[{\"task\":\"hello\"}", "/api/v1/tasks/batch");
    assert_answered(400);
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 1 };
    with_headers("idempotency-key: k\r\n");
    post(TWO, "/api/v1/tasks/batch");
    assert_answered(503);
    assert_int_equal(runs(), 0);
    with_headers("idempotency-key: k\r\n");
    post(TWO, "/api/v1/tasks/batch");
    assert_answered(202);
    assert_says("isCached", "false");
    assert_int_equal(runs(), 2);
}

static void repeated_call_makes_its_runs_once(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        with_headers("x-trigger-request-idempotency-key: r\r\n");
        post(TWO, "/api/v2/tasks/batch");
        assert_answered(202);
        if (i)
            assert_says("id", batch);
        keep("id", batch, sizeof(batch));
    }
    assert_int_equal(runs(), 2);
}

/* ---- a parent that waits ---- */

static void post_waiting(const char *run, const char *more, const char *target)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{%s,\"parentRunId\":\"%s\",\"resumeParentOnCompletion\":true}", more, run);
    post(body, "%s", target);
}

static const char items[] =
    "\"items\":[{\"task\":\"hello\"," HELD "},{\"task\":\"hello\"," HELD "}]";

static void a_parent_waits_for_every_run_of_its_batch(void **state)
{
    char parent[ID_MAX];
    (void)state;
    start_run(parent);
    post_waiting(parent, items, "/api/v2/tasks/batch");
    assert_answered(202);
    keep("id", batch, sizeof(batch));
    assert_execution(parent, "EXECUTING_WITH_WAITPOINTS");
    cancel_child(0);
    assert_execution(parent, "EXECUTING_WITH_WAITPOINTS");
    cancel_child(1);
    await_execution(parent, "EXECUTING");
}

static void unknown_parent_is_rejected(void **state)
{
    (void)state;
    post_waiting("run_nobody", items, "/api/v2/tasks/batch");
    assert_answered(422);
    assert_holds("run_nobody");
    post_waiting("run_nobody", "\"runCount\":1", "/api/v3/batches");
    assert_answered(422);
    assert_int_equal(runs(), 0);
}

static void stream_one(struct slice payload)
{
    struct buf target = { 0 }, line = { 0 };
    buf_print(&target, "/api/v3/batches/%s/items", batch);
    buf_add_text(&line, "{\"index\":0,\"task\":\"hello\"," HELD ",\"payload\":\"");
    buf_add(&line, payload);
    buf_add_text(&line, "\"}\n");
    api_world_ask(&scene, API_KEY_DEV, "POST", buf_slice(&target),
                  SLICE("Content-Type: application/x-ndjson\r\n"), buf_slice(&line), 0);
    buf_finish(&target);
    buf_finish(&line);
}

static void create_waiting(const char *parent)
{
    post_waiting(parent, "\"runCount\":1,\"idempotencyKey\":\"k\"", "/api/v3/batches");
    keep("id", batch, sizeof(batch));
}

/* The batch was stored but the wait was not: a repeated stream makes the parent wait. */
static void parent_that_could_not_be_blocked_waits_after_a_retry(void **state)
{
    char parent[ID_MAX];
    (void)state;
    start_run(parent);
    create_waiting(parent);
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 2 };
    stream_one(SLICE("1"));
    assert_answered(503);
    assert_int_equal(scene_batch_bytes(), 0);
    assert_execution(parent, "EXECUTING");
    stream_one(SLICE("1"));
    assert_answered(200);
    assert_says("sealed", "true");
    assert_execution(parent, "EXECUTING_WITH_WAITPOINTS");
    assert_int_equal(runs(), 2);
    cancel_child(0);
    await_execution(parent, "EXECUTING");
}

static void parent_waits_for_a_batch_found_by_key(void **state)
{
    char first[ID_MAX], second[ID_MAX];
    (void)state;
    start_run(first);
    create_waiting(first);
    stream_one(SLICE("1"));
    start_run(second);
    create_waiting(second);
    assert_says("isCached", "true");
    assert_execution(second, "EXECUTING_WITH_WAITPOINTS");
    cancel_child(0);
    await_execution(first, "EXECUTING");
    await_execution(second, "EXECUTING");
}

static void parent_does_not_wait_for_an_item_that_became_an_error(void **state)
{
    char parent[ID_MAX];
    struct buf payload = { 0 };
    (void)state;
    memset(buf_reserve(&payload, TOO_LARGE), 'x', TOO_LARGE);
    payload.len = TOO_LARGE;
    start_run(parent);
    create_waiting(parent);
    stream_one(buf_slice(&payload));
    buf_finish(&payload);
    assert_says("sealed", "true");
    assert_execution(parent, "EXECUTING");
    assert_holds("The item is larger than 3145728 bytes");
    assert_holds(batch);
    get("/api/v2/batches/%s", batch);
    assert_says("status", "ABORTED");
    get("/api/v1/batches/%s", batch);
    assert_says("status", "COMPLETED");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batch_completes_with_its_runs),
        TEST(unreadable_results_are_an_error),
        TEST(key_returns_the_whole_batch_until_it_expires),
        TEST(item_with_a_known_key_is_the_older_run),
        TEST(invalid_or_failed_batch_leaves_no_run),
        TEST(repeated_call_makes_its_runs_once),
        TEST(a_parent_waits_for_every_run_of_its_batch),
        TEST(unknown_parent_is_rejected),
        TEST(parent_that_could_not_be_blocked_waits_after_a_retry),
        TEST(parent_waits_for_a_batch_found_by_key),
        TEST(parent_does_not_wait_for_an_item_that_became_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
