/* A batch in two phases: it is created, then streams of lines bring its items. It is sealed
 * when all items are there. After a bad line or a failure of the store, its client can
 * still fill it. */
#include "tests/support/world/api_scene.h"
#include "tests/support/world/wall.h"

#include <stdio.h>

enum {
    TOO_LARGE = 3200000,
    LONG_ID = 1000000,
    ABANDONED = 61 * 1000,
    DAY = 24 * 3600 * 1000
};

static char batch[ID_MAX];

static void create(const char *body)
{
    post(body, "/api/v3/batches");
    assert_answered(202);
    keep("id", batch, sizeof(batch));
}

static void stream(const char *lines)
{
    with_headers("Content-Type: application/x-ndjson\r\n");
    post(lines, "/api/v3/batches/%s/items", batch);
}

static void look(void)
{
    get("/api/v2/batches/%s", batch);
    assert_answered(200);
}

#define ITEM(index, payload)                                                               \
    "{\"index\":" index ",\"task\":\"hello\",\"payload\":\"" payload                       \
    "\",\"options\":{\"payloadType\":\"application/json\",\"delay\":\"1h\"}}\n"

/* ---- items ---- */

static void batch_is_sealed_by_its_last_item(void **state)
{
    static const char *const paths[] = { "runs.0", "runs.1", "runs.2" };
    static const char *const payloads[] = { "20", "21", "22" };
    char run[ID_MAX];
    (void)state;
    create("{\"runCount\":3}");
    stream(ITEM("2", "22") ITEM("0", "20"));
    assert_answered(200);
    assert_says("sealed", "false");
    assert_says("itemsAccepted", "2");
    assert_says("enqueuedCount", "2");
    assert_says("expectedCount", "3");
    assert_true(scene_batch_bytes() > 0);
    look();
    assert_says("status", "PENDING");
    assert_says("runs", "[]");
    stream(ITEM("1", "21"));
    assert_says("sealed", "true");
    assert_says("itemsAccepted", "1");
    for (int i = 0; i < 3; i++) {
        look();
        keep(paths[i], run, sizeof(run));
        get("/api/v3/runs/%s", run);
        assert_says("payload", payloads[i]);
    }
}

/* The first item of an index counts, within one stream and across streams. */
static void repeated_index_is_one_item(void **state)
{
    char run[ID_MAX];
    (void)state;
    create("{\"runCount\":2}");
    stream(ITEM("1", "10") ITEM("1", "11"));
    assert_says("itemsAccepted", "1");
    assert_says("itemsDeduplicated", "1");
    stream(ITEM("1", "12") ITEM("0", "13"));
    assert_says("sealed", "true");
    assert_says("itemsAccepted", "1");
    assert_says("itemsDeduplicated", "1");
    look();
    assert_says("runs.2", NULL);
    keep("runs.1", run, sizeof(run));
    get("/api/v3/runs/%s", run);
    assert_says("payload", "10");
}

/* No item of the stream is accepted, not even those before it. */
static void more_items_than_announced_are_rejected(void **state)
{
    (void)state;
    create("{\"runCount\":2}");
    stream(ITEM("0", "0") ITEM("1", "1") ITEM("2", "2"));
    assert_answered(422);
    assert_says("error", "Item index 2 exceeds batch runCount 2");
    assert_int_equal(scene_batch_bytes(), 0);
    stream(ITEM("0", "0") ITEM("1", "1"));
    assert_says("sealed", "true");
    stream(ITEM("0", "0") ITEM("1", "1"));
    assert_says("sealed", "true");
    assert_int_equal(fake_store_count(scene.fake, 1), 2);
}

static void error_names_the_line_of_an_invalid_item(void **state)
{
    (void)state;
    create("{\"runCount\":2}");
    stream(ITEM("0", "0") "{\"index\":1}\n");
    assert_answered(422);
    assert_says("error", "Invalid item at index 1: Expected string at \"task\"");
    stream(ITEM("0", "0") "{\"task\":\"hello\"}\n");
    assert_answered(422);
    assert_says("error",
                "Invalid item at index 1: Expected \"index\", a whole number, in line 2");
    stream(ITEM("0", "0") "{\"index\":1,\n");
    assert_answered(400);
    assert_holds("Invalid JSON at line 2");
    stream("\n");
    assert_answered(400);
    post(ITEM("0", "0"), "/api/v3/batches/%s/items", batch);
    assert_answered(415);
    assert_int_equal(scene_batch_bytes(), 0);
    look();
    assert_says("status", "PENDING");
}

static void stream_into_an_unknown_batch_is_rejected(void **state)
{
    (void)state;
    snprintf(batch, sizeof(batch), "batch_nobody");
    stream(ITEM("0", "0"));
    assert_answered(422);
    assert_says("error", "Batch batch_nobody not found");
    get("/api/v2/batches/%s", batch);
    assert_answered(404);
    get("/api/v1/batches/%s/results", batch);
    assert_answered(404);
    create("{\"runCount\":1}");
    with_key(API_KEY_PROD);
    get("/api/v2/batches/%s", batch);
    assert_answered(404);
}

/* Streams a line that begins with `begin` and is padded until it is too large. */
static void stream_long_line(const char *begin, const char *others)
{
    struct buf lines = { 0 };
    buf_add_text(&lines, begin);
    memset(buf_reserve(&lines, TOO_LARGE), 'x', TOO_LARGE);
    lines.len += TOO_LARGE;
    buf_add_text(&lines, "\"}\n");
    buf_add_text(&lines, others);
    buf_add_char(&lines, '\0');
    stream(lines.ptr);
    buf_finish(&lines);
}

static void stream_too_large(const char *others)
{
    stream_long_line("{\"index\":1,\"task\":\"hello\",\"payload\":\"", others);
}

static void too_large_item_becomes_an_error(void **state)
{
    (void)state;
    create("{\"runCount\":2}");
    stream_too_large(ITEM("0", "0"));
    assert_says("sealed", "true");
    look();
    assert_says("status", "PARTIAL_FAILED");
    assert_says("runs.1", NULL);
    assert_says("processing.errors.0.index", "1");
    assert_says("processing.errors.0.taskIdentifier", "hello");
    assert_says("processing.errors.0.errorCode", "PAYLOAD_TOO_LARGE");
    get("/api/v1/batches/%s", batch);
    assert_says("status", "PENDING");
}

/* The id of its task is kept until the batch is sealed, and in the batch's document. */
static void too_large_item_with_a_long_task_id_is_rejected(void **state)
{
    struct buf begin = { 0 };
    (void)state;
    create("{\"runCount\":2}");
    buf_add_text(&begin, "{\"index\":1,\"task\":\"");
    memset(buf_reserve(&begin, LONG_ID), 't', LONG_ID);
    begin.len += LONG_ID;
    buf_add_text(&begin, "\",\"payload\":\"");
    buf_add_char(&begin, '\0');
    stream_long_line(begin.ptr, ITEM("0", "0"));
    buf_finish(&begin);
    assert_answered(413);
    assert_int_equal(scene_batch_bytes(), 0);
    stream_too_large(ITEM("0", "0"));
    assert_says("sealed", "true");
}

/* ---- the key of a batch ---- */

#define KEYED "{\"runCount\":1,\"idempotencyKey\":\"k\"}"

static void key_returns_its_batch_for_a_day(void **state)
{
    char first[ID_MAX];
    (void)state;
    create(KEYED);
    memcpy(first, batch, sizeof(first));
    stream(ITEM("0", "0"));
    post(KEYED, "/api/v3/batches");
    assert_answered(200);
    assert_says("id", first);
    assert_says("isCached", "true");
    assert_says("idempotencyKey", "k");
    wall_advance(DAY - 1000);
    post(KEYED, "/api/v3/batches");
    assert_says("id", first);
    wall_advance(1000);
    create(KEYED);
    assert_string_not_equal(batch, first);
    assert_says("isCached", "false");
}

/* A client that gets "cached" sends no items: an unfilled batch goes to the next client. */
static void abandoned_batch_is_given_to_the_next_client(void **state)
{
    char first[ID_MAX];
    (void)state;
    create(KEYED);
    memcpy(first, batch, sizeof(first));
    post(KEYED, "/api/v3/batches");
    assert_answered(200);
    assert_says("isCached", "true");
    wall_advance(ABANDONED);
    create(KEYED);
    assert_string_equal(batch, first);
    assert_says("isCached", "false");
    stream(ITEM("0", "0"));
    assert_says("sealed", "true");
    wall_advance(ABANDONED);
    post(KEYED, "/api/v3/batches");
    assert_says("isCached", "true");
}

/* ---- lost responses, and stores that fail ---- */

static void repeated_request_makes_one_batch(void **state)
{
    char first[ID_MAX];
    (void)state;
    for (int i = 0; i < 2; i++) {
        with_headers("x-trigger-request-idempotency-key: r1\r\n");
        create("{\"runCount\":1}");
        assert_says("isCached", "false");
        if (!i)
            memcpy(first, batch, sizeof(first));
    }
    assert_string_equal(batch, first);
    with_headers("x-trigger-request-idempotency-key: r2\r\n");
    create("{\"runCount\":1}");
    assert_string_not_equal(batch, first);
}

/* Its client gets no response and sends everything again. */
static void client_that_lost_its_answer_finds_the_batch_complete(void **state)
{
    (void)state;
    create("{\"runCount\":2}");
    fake_store_set_delay(scene.fake, 200, 0);
    stream(ITEM("0", "0") ITEM("1", "1"));
    assert_int_equal(scene_batch_bytes(), 0);
    fake_store_set_delay(scene.fake, 0, 0);
    stream(ITEM("0", "0") ITEM("1", "1"));
    assert_says("sealed", "true");
    assert_says("itemsAccepted", "0");
    assert_int_equal(fake_store_count(scene.fake, 1), 2);
}

static void fail_next_commit(enum store_status status)
{
    fake_store_fail_with(scene.fake, status);
    *fake_store_fault(scene.fake) = (struct fault){ .countdown = 1 };
}

static void batch_that_could_not_be_written_can_be_streamed_again(void **state)
{
    static const enum store_status failures[] = { STORE_FAILED, STORE_NO_SPACE };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fail_next_commit(failures[i]);
        post("{\"runCount\":2}", "/api/v3/batches");
        assert_answered(503);
        create("{\"runCount\":2}");
        stream(ITEM("0", "0"));
        fail_next_commit(failures[i]);
        stream(ITEM("1", "1"));
        assert_answered(503);
        assert_int_equal(scene_batch_bytes(), 0);
        assert_int_equal(fake_store_count(scene.fake, 1), 2 * i);
        look();
        assert_says("status", "PENDING");
        assert_says("runs", "[]");
        stream(ITEM("0", "0") ITEM("1", "1"));
        assert_says("sealed", "true");
        assert_int_equal(fake_store_count(scene.fake, 1), 2 * i + 2);
    }
}

/* A retry finds the items that another stream has written meanwhile. */
static void concurrent_stream_gets_503_and_can_retry(void **state)
{
    (void)state;
    create("{\"runCount\":1}");
    fail_next_commit(STORE_LOST);
    stream(ITEM("0", "0"));
    assert_answered(503);
    assert_says("error", "The items of this batch are being written; try again");
    assert_int_equal(scene_batch_bytes(), 0);
    stream(ITEM("0", "0"));
    assert_says("sealed", "true");
}

static void batch_that_could_not_be_read_frees_the_stream(void **state)
{
    (void)state;
    create("{\"runCount\":1}");
    *fake_store_load_fault(scene.fake) = (struct fault){ .countdown = 1 };
    stream(ITEM("0", "0"));
    assert_answered(503);
    assert_int_equal(scene_batch_bytes(), 0);
    stream(ITEM("0", "0"));
    assert_says("sealed", "true");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batch_is_sealed_by_its_last_item),
        TEST(repeated_index_is_one_item),
        TEST(more_items_than_announced_are_rejected),
        TEST(error_names_the_line_of_an_invalid_item),
        TEST(stream_into_an_unknown_batch_is_rejected),
        TEST(too_large_item_becomes_an_error),
        TEST(too_large_item_with_a_long_task_id_is_rejected),
        TEST(key_returns_its_batch_for_a_day),
        TEST(abandoned_batch_is_given_to_the_next_client),
        TEST(repeated_request_makes_one_batch),
        TEST(client_that_lost_its_answer_finds_the_batch_complete),
        TEST(batch_that_could_not_be_written_can_be_streamed_again),
        TEST(concurrent_stream_gets_503_and_can_retry),
        TEST(batch_that_could_not_be_read_frees_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
