/* Brief requests that share a connection: the test plays a server that answers in any order,
 * never, or with nonsense, or that knows no such connections. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "net/client/relay.h"
#include "net/mux.h"
#include "tests/support/world/client_world.h"

enum { CALLS = 4, FIRST_BYTE_MS = 300 };

static struct client_world world;
static struct relay_pool *pool;
static struct far far; /* of the shared connection */

static struct call {
    struct relay relay;
    unsigned answers, ends;
    int status;
    struct buf lines, body;
    enum err error;
} calls[CALLS], alone;

static struct call *of(struct relay *relay)
{
    return container_of(relay, struct call, relay);
}

static void on_ready(struct relay *relay)
{
    (void)relay;
}

static void on_head(struct relay *relay, int status, const struct http_header *headers,
                    size_t count)
{
    (void)headers, (void)count;
    of(relay)->status = status;
}

static void on_piece(struct relay *relay, struct slice piece)
{
    buf_add(&of(relay)->body, piece);
}

static void on_end(struct relay *relay, enum err error, const char *why)
{
    (void)why;
    of(relay)->ends++;
    of(relay)->error = error;
}

static void on_answer(struct relay *relay, int status, struct slice lines,
                      struct slice body)
{
    of(relay)->answers++;
    of(relay)->status = status;
    buf_add(&of(relay)->lines, lines);
    buf_add(&of(relay)->body, body);
}

static const struct relay_ops ops = { on_ready, on_head, on_piece, on_end, on_answer };

/* ---- the greeter, which needs no greeting ---- */

static void *create_greeting(void *owner)
{
    (void)owner;
    return mem_alloc(1);
}

static enum relay_greet next_greeting(void *greeting, int status, struct slice answer,
                                      struct buf *body, const char **why)
{
    (void)greeting, (void)status, (void)answer, (void)body, (void)why;
    return RELAY_GREET_DONE;
}

static void sign(void *greeting, struct slice head, struct slice note, struct buf *line)
{
    (void)greeting, (void)head;
    buf_print(line, "x-note: %.*s\r\n", SLICE_ARG(note));
}

static void seal(void *greeting, struct slice items, struct buf *mac)
{
    (void)greeting;
    buf_print(mac, "%08zu", items.len);
}

static const struct relay_greeter greeter = { .target = "/greeting",
                                              .create = create_greeting,
                                              .destroy = free,
                                              .next = next_greeting,
                                              .sign = sign,
                                              .mux_target = "/mux",
                                              .mux_note = "mux",
                                              .mux_older_note = "older",
                                              .seal = seal };

static int open_world(void **state)
{
    struct failure why;
    (void)state;
    client_world_open(&world);
    memset(calls, 0, sizeof(calls));
    alone = (struct call){ 0 };
    far = (struct far){ .fd = -1 };
    const struct relay_pool_options options = { .url = &world.url,
                                                .greeter = &greeter,
                                                .first_byte_ms = FIRST_BYTE_MS };
    assert_int_equal(relay_pool_create(world.loop, &options, &pool, &why), OK);
    return 0;
}

static void on_pool_closed(void *owner)
{
    (void)owner;
    pool = NULL;
}

static bool pool_is_closed(void *owner)
{
    (void)owner;
    return !pool;
}

static void finish(struct call *call)
{
    relay_cancel(&call->relay);
    buf_finish(&call->lines);
    buf_finish(&call->body);
}

static int close_world(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS; i++)
        finish(&calls[i]);
    finish(&alone);
    if (pool && far.fd >= 0)
        relay_pool_close(pool, on_pool_closed, NULL);
    client_world_until(&world, pool_is_closed, NULL);
    far_close(&far);
    client_world_close(&world);
    return 0;
}

static const struct http_header headers[] = { { SLICE("host"), SLICE("a") } };

static bool begin(struct call *call)
{
    const struct relay_request request = { .method = "POST",
                                           .target = SLICE("/x"),
                                           .headers = headers,
                                           .header_count = 1,
                                           .has_length = true,
                                           .length = 4,
                                           .note = SLICE("::1 --"),
                                           .is_brief = true,
                                           .body = SLICE("body") };
    struct failure why;
    if (relay_begin(pool, &call->relay, &request, &ops, &why))
        fail_msg("%s", why.text);
    return call->relay.is_muxed;
}

static bool has_ended(void *owner)
{
    const struct call *call = owner;
    return call->answers || call->ends;
}

/* The first request asks for the connection, and goes without it. Either may connect first. */
static void ask(const char *response)
{
    struct far own = { 0 };
    assert_false(begin(&alone));
    relay_write(&alone.relay, SLICE("body"));
    relay_finish(&alone.relay);
    far_accept(&world, &far);
    far_accept(&world, &own);
    far_await(&world, &far, "\r\n\r\n");
    far_await(&world, &own, "\r\n\r\n");
    if (far_has(&own, "GET /mux ")) {
        struct far other = far;
        far = own;
        own = other;
    }
    far_await(&world, &own, "body");
    assert_true(far_has(&far, "GET /mux ") && far_has(&far, "x-note: mux\r\n"));
    far_say(&world, &far, response);
    far_say(&world, &own, "HTTP/1.1 204 No\r\n\r\n");
    client_world_until(&world, has_ended, &alone);
    far_close(&own);
    client_world_turn(&world);
    buf_clear(&far.got);
}

/* After a 404, the next request asks with the older note, on the connection that had it. */
static void ask_with_older_note(const char *response)
{
    struct far own = { 0 };
    ask("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    assert_false(begin(&calls[0]));
    relay_write(&calls[0].relay, SLICE("body"));
    relay_finish(&calls[0].relay);
    far_accept(&world, &own);
    far_await(&world, &own, "body");
    far_await(&world, &far, "\r\n\r\n");
    assert_true(far_has(&far, "GET /mux ") && far_has(&far, "x-note: older\r\n"));
    far_say(&world, &far, response);
    far_say(&world, &own, "HTTP/1.1 204 No\r\n\r\n");
    client_world_until(&world, has_ended, &calls[0]);
    far_close(&own);
    client_world_turn(&world);
    buf_clear(&far.got);
}

/* ---- the server ---- */

/* Reads the items of the next message. Returns their number. */
static size_t read_message(struct mux_item items[CALLS])
{
    struct mux_reader reader = { 0 };
    struct slice message, got;
    size_t count = 0;
    enum mux_read read = MUX_MORE;
    while (read == MUX_MORE) {
        client_world_turn(&world);
        far_read(&far);
        mux_reader_finish(&reader);
        reader = (struct mux_reader){ 0 };
        got = buf_slice(&far.got);
        read = mux_read(&reader, &got, &message);
    }
    assert_int_equal(read, MUX_MESSAGE);
    assert_int_equal(got.len, 0);
    struct buf mac = { 0 };
    buf_print(&mac, "%08zu", message.len - 8);
    assert_memory_equal(message.ptr, mac.ptr, 8);
    buf_finish(&mac);
    for (message = slice_from(message, 8); message.len; count++)
        assert_true(mux_take(&message, &items[count]));
    mux_reader_finish(&reader);
    return count;
}

/* The connection is open once it takes a request; that one is canceled. */
static void await_mux(void)
{
    struct mux_item items[CALLS];
    while (!begin(&calls[CALLS - 1])) {
        relay_cancel(&calls[CALLS - 1].relay);
        client_world_turn(&world);
    }
    relay_cancel(&calls[CALLS - 1].relay);
    assert_int_equal(read_message(items), 2);
    buf_clear(&far.got);
}

static const char switching[] =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n"
    "upgrade: websocket\r\n\r\n";

static void open_mux(void)
{
    ask(switching);
    await_mux();
}

static void say_items(const struct mux_item *items, size_t count)
{
    unsigned char head[MUX_HEAD_LEN];
    struct buf all = { 0 };
    for (size_t i = 0; i < count; i++)
        mux_add(&all, &items[i]);
    mux_write_head(all.len, head);
    far_send(&world, &far, (struct slice){ (const char *)head, sizeof(head) });
    far_send(&world, &far, buf_slice(&all));
    buf_finish(&all);
}

static void expect_end(struct call *call, enum err error)
{
    client_world_until(&world, has_ended, call);
    assert_int_equal(call->error, error);
    assert_int_equal(call->answers + call->ends, 1);
}

/* ---- tests ---- */

static void requests_of_a_turn_are_one_message(void **state)
{
    struct mux_item items[CALLS];
    (void)state;
    open_mux();
    for (size_t i = 0; i < 3; i++)
        assert_true(begin(&calls[i]));
    assert_false(calls[0].relay.was_sent);
    assert_int_equal(read_message(items), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(calls[i].relay.was_sent);
        assert_int_equal(items[i].kind, MUX_CALL);
        assert_true(slice_is(items[i].first, "::1 --"));
        assert_true(
            slice_is(items[i].second,
                     "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody"));
    }
    const struct mux_item answers[] = {
        { MUX_ANSWER, items[2].id, 200, SLICE("a: b\r\n"), SLICE("third") },
        { MUX_ANSWER, items[1].id + 100, 200, SLICE(""), SLICE("of no request") },
        { MUX_LOST, items[1].id, 0, SLICE(""), SLICE("") },
        { MUX_ANSWER, items[0].id, 503, SLICE(""), SLICE("first") },
    };
    say_items(answers, 4);
    expect_end(&calls[0], OK);
    expect_end(&calls[1], ERR_LOST);
    expect_end(&calls[2], OK);
    assert_int_equal(calls[0].status, 503);
    assert_int_equal(calls[2].status, 200);
    assert_true(slice_is(buf_slice(&calls[2].lines), "a: b\r\n"));
    assert_true(slice_is(buf_slice(&calls[2].body), "third"));
}

static void expect_left(uint32_t id)
{
    struct mux_item item[CALLS];
    buf_clear(&far.got);
    assert_int_equal(read_message(item), 1);
    assert_int_equal(item[0].kind, MUX_LEFT);
    assert_int_equal(item[0].id, id);
}

static void a_silent_server_ends_each_request(void **state)
{
    struct mux_item items[CALLS];
    (void)state;
    open_mux();
    begin(&calls[0]);
    assert_int_equal(read_message(items), 1);
    expect_end(&calls[0], ERR_NO_ANSWER);
    expect_left(items[0].id);
    buf_clear(&far.got);
    assert_true(begin(&calls[1])); /* the connection stays */
    assert_int_equal(read_message(items), 1);
    expect_end(&calls[1], ERR_NO_ANSWER);
}

static void a_canceled_request_is_forgotten(void **state)
{
    struct mux_item items[CALLS];
    (void)state;
    open_mux();
    begin(&calls[0]);
    assert_int_equal(read_message(items), 1);
    relay_leave(&calls[0].relay);
    expect_left(items[0].id);
    relay_cancel(&calls[0].relay);
    begin(&calls[1]);
    buf_clear(&far.got);
    uint32_t first = items[0].id;
    assert_int_equal(read_message(items), 1);
    const struct mux_item answers[] = {
        { MUX_ANSWER, first, 200, SLICE(""), SLICE("") },
        { MUX_ANSWER, items[0].id, 200, SLICE(""), SLICE("") },
    };
    say_items(answers, 2);
    expect_end(&calls[1], OK);
    assert_int_equal(calls[0].answers + calls[0].ends, 0);
}

static void malformed_messages_end_all_requests(void **state)
{
    struct mux_item items[CALLS];
    (void)state;
    open_mux();
    begin(&calls[0]);
    begin(&calls[1]);
    read_message(items);
    far_send(&world, &far, (struct slice){ "\0\0\0\4abcd", 8 });
    expect_end(&calls[0], ERR_LOST);
    expect_end(&calls[1], ERR_LOST);
    assert_true(calls[0].relay.was_sent);
    far_await_end(&world, &far);
    assert_false(begin(&calls[2])); /* it is opened again after a second */
}

static void a_server_that_does_not_multiplex_is_asked_rarely(void **state)
{
    (void)state;
    ask_with_older_note("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    assert_false(begin(&calls[1]));
    relay_write(&calls[1].relay, SLICE("body"));
    relay_finish(&calls[1].relay);
    far_await(&world, &far, "body");
    assert_true(far_has(&far, "POST /x "));
    assert_false(far_has(&far, "GET /mux "));
    far_say(&world, &far, "HTTP/1.1 204 No\r\n\r\n");
    expect_end(&calls[1], OK);
}

static void a_server_of_an_older_version_is_asked_with_its_note(void **state)
{
    (void)state;
    ask_with_older_note(switching);
    await_mux();
}

static void requests_in_progress_outlive_the_close_of_their_pool(void **state)
{
    struct mux_item items[CALLS];
    struct failure why;
    (void)state;
    open_mux();
    begin(&calls[0]);
    read_message(items);
    relay_pool_close(pool, on_pool_closed, NULL);
    const struct relay_request request = { .method = "GET", .target = SLICE("/") };
    assert_int_equal(relay_begin(pool, &calls[1].relay, &request, &ops, &why),
                     ERR_DRAINING);
    say_items(&(struct mux_item){ MUX_ANSWER, items[0].id, 200, SLICE(""), SLICE("") }, 1);
    expect_end(&calls[0], OK);
    client_world_until(&world, pool_is_closed, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_of_a_turn_are_one_message),
        TEST(a_silent_server_ends_each_request),
        TEST(a_canceled_request_is_forgotten),
        TEST(malformed_messages_end_all_requests),
        TEST(a_server_that_does_not_multiplex_is_asked_rarely),
        TEST(a_server_of_an_older_version_is_asked_with_its_note),
        TEST(requests_in_progress_outlive_the_close_of_their_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
