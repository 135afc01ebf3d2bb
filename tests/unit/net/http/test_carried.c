/* Requests that another connection carries: answered whole and in any order, left, closed. */
#include "tests/support/world/unit.h"

#include "net/http/carried.h"
#include "net/http/server_state.h"
#include "net/http/ws.h"
#include "tests/support/world/net_world.h"

enum { CALLS_MAX = 4 };

static struct scene {
    struct net_world world;
    struct bytes *peer;
    struct exchange *waiting[CALLS_MAX];
    unsigned waiting_count, requests, gone, bodies;
    bool is_streamed; /* the next responses begin a stream */
} scene;

static struct call {
    struct http_carried carried;
    int status;
    struct buf lines, body;
    unsigned replies, closed;
} calls[CALLS_MAX];

static struct call *of(struct http_carried *carried)
{
    return container_of(carried, struct call, carried);
}

static void on_reply(struct http_carried *carried, int status, struct slice headers,
                     struct slice body)
{
    of(carried)->replies++;
    of(carried)->status = status;
    buf_add(&of(carried)->lines, headers);
    buf_add(&of(carried)->body, body);
}

static void on_closed(struct http_carried *carried)
{
    of(carried)->closed++;
}

static const struct http_carried_ops ops = { on_reply, on_closed };

/* ---- the handler ---- */

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = 8;
    x->stream_body = slice_is(x->path, "/pieces");
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    (void)owner, (void)x, (void)piece;
    scene.bodies++;
}

static void on_request(void *owner, struct exchange *x)
{
    (void)owner;
    scene.requests++;
    if (slice_is(x->path, "/wait"))
        scene.waiting[scene.waiting_count++] = x;
    else if (slice_is(x->path, "/ws"))
        assert_null(ws_accept(x, NULL, NULL, NULL));
    else if (slice_is(x->path, "/stream"))
        http_stream_begin(scene.waiting[scene.waiting_count++] = x, 200, SLICE(""));
    else if (slice_is(x->path, "/sized"))
        http_stream_begin_sized(scene.waiting[scene.waiting_count++] = x, 200, SLICE(""),
                                9);
    else
        http_reply(x, 200, SLICE("a: b\r\n"), x->body);
}

static void on_gone(void *owner, struct exchange *x)
{
    (void)owner;
    scene.gone++;
    if (!scene.waiting_count)
        http_reply(x, 500, SLICE(""), SLICE("of a body that was refused"));
}

static int open_scene(void **state)
{
    const struct server_options options = {
        .handler = { .on_head = on_head,
                     .on_body = on_body,
                     .on_request = on_request,
                     .on_gone = on_gone },
        .owner = &scene,
    };
    (void)state;
    scene = (struct scene){ 0 };
    memset(calls, 0, sizeof(calls));
    scene.peer = bytes_create(SLICE("192.0.2.1"));
    net_world_open(&scene.world, options);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    net_world_close(&scene.world);
    bytes_unref(scene.peer);
    for (size_t i = 0; i < CALLS_MAX; i++) {
        buf_finish(&calls[i].lines);
        buf_finish(&calls[i].body);
    }
    return 0;
}

static void carry(unsigned number, const char *request)
{
    http_carry(scene.world.server, &calls[number].carried, &ops, scene.peer,
               slice_of(request));
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void expect_end(unsigned number, int status, const char *body)
{
    net_world_turn(&scene.world);
    assert_int_equal(calls[number].status, status);
    if (body)
        assert_true(slice_is(buf_slice(&calls[number].body), body));
    assert_int_equal(calls[number].replies, status ? 1 : 0);
    assert_int_equal(calls[number].carried.is_answered, status != 0);
    assert_int_equal(calls[number].closed, 1);
    assert_int_equal(scene.world.server->open_exchanges, scene.waiting_count);
}

/* ---- tests ---- */

static void a_response_is_given_whole(void **state)
{
    (void)state;
    carry(0, "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\n\r\nbody");
    assert_int_equal(calls[0].closed, 0); /* never from inside http_carry */
    expect_end(0, 200, "body");
    assert_true(slice_is(buf_slice(&calls[0].lines), "a: b\r\n"));
    carry(1, "POST /pieces HTTP/1.1\r\nHost: a\r\ncontent-length: 4\r\n\r\nbody");
    expect_end(1, 200, "");
    assert_int_equal(scene.bodies, 1);
    assert_int_equal(scene.world.server->connection_count, 0);
}

static void responses_come_in_any_order(void **state)
{
    struct bytes *shared = bytes_create(SLICE("shared")), *parts[] = { shared, shared };
    (void)state;
    carry(0, GET("/wait"));
    carry(1, GET("/wait"));
    carry(2, GET("/"));
    assert_string_equal(scene.waiting[0]->peer, "192.0.2.1");
    assert_false(scene.waiting[0]->relayed);
    expect_end(2, 200, "");
    scene.waiting_count = 0;
    http_reply_shared(scene.waiting[1], 201, SLICE(""), shared);
    http_reply_parts(scene.waiting[0], 202, SLICE(""), parts, 2);
    expect_end(1, 201, "shared");
    expect_end(0, 202, "sharedshared");
    bytes_unref(shared);
}

static void the_server_refuses_what_is_malformed(void **state)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        { "GET / HTTP/1.1\r\n\r\n", 400 },
        { "nonsense\r\n\r\n", 400 },
        { "POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 9\r\n\r\n123456789", 413 },
    };
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        carry(i, cases[i].request);
        expect_end(i, cases[i].status, NULL);
    }
    assert_int_equal(scene.requests, 0);
}

static void a_client_that_leaves_still_gets_its_response(void **state)
{
    (void)state;
    carry(0, GET("/wait"));
    http_carried_leave(&calls[0].carried);
    http_carried_leave(&calls[0].carried);
    assert_int_equal(scene.gone, 1);
    assert_true(scene.waiting[0]->gone);
    net_world_turn(&scene.world);
    assert_int_equal(calls[0].closed, 0);
    scene.waiting_count = 0;
    http_reply(scene.waiting[0], 204, SLICE(""), SLICE("no content"));
    expect_end(0, 204, "");
}

static void a_request_that_is_incomplete_ends_when_its_client_leaves(void **state)
{
    (void)state;
    carry(0, "GET / HTTP/1.1\r\n");
    http_carried_leave(&calls[0].carried);
    expect_end(0, 0, "");
    assert_int_equal(scene.requests, 0);
}

static void a_closed_call_gets_no_response(void **state)
{
    (void)state;
    carry(0, GET("/wait"));
    http_carried_close(&calls[0].carried);
    net_world_turn(&scene.world);
    assert_int_equal(scene.gone, 1);
    assert_int_equal(calls[0].closed, 0); /* the exchange has it until the reply */
    scene.waiting_count = 0;
    http_reply(scene.waiting[0], 200, SLICE(""), SLICE("too late"));
    expect_end(0, 0, "");
}

static void a_stream_is_lost(void **state)
{
    static const char *const requests[] = { GET("/stream"), GET("/sized") };
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        carry(i, requests[i]);
        assert_false(http_stream_write(scene.waiting[0], SLICE("piece")));
        net_world_turn(&scene.world);
        assert_int_equal(scene.gone, i + 1);
        scene.waiting_count = 0;
        http_stream_cut(scene.waiting[0]);
        expect_end(i, 0, "");
    }
}

static void a_call_never_becomes_a_websocket(void **state)
{
    (void)state;
    carry(0, "GET /ws HTTP/1.1\r\nHost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
             "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
             "\r\n");
    expect_end(0, 400, NULL);
}

static void an_early_response_is_the_only_one(void **state)
{
    (void)state;
    carry(0, GET("/wait"));
    http_reply_early(scene.waiting[0], 503, SLICE(""), SLICE("early"));
    net_world_turn(&scene.world);
    assert_int_equal(calls[0].closed, 0);
    scene.waiting_count = 0;
    http_reply(scene.waiting[0], 200, SLICE(""), SLICE("late"));
    expect_end(0, 503, "early");
}

static void the_server_closes_with_calls_in_progress(void **state)
{
    (void)state;
    carry(0, GET("/wait"));
    server_close(scene.world.server, net_world_on_closed);
    net_world_turn(&scene.world);
    assert_int_equal(scene.gone, 1);
    http_reply(scene.waiting[0], 200, SLICE(""), SLICE(""));
    net_world_turn(&scene.world);
    assert_int_equal(calls[0].closed, 1);
    assert_int_equal(calls[0].replies, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_response_is_given_whole),
        TEST(responses_come_in_any_order),
        TEST(the_server_refuses_what_is_malformed),
        TEST(a_client_that_leaves_still_gets_its_response),
        TEST(a_request_that_is_incomplete_ends_when_its_client_leaves),
        TEST(a_closed_call_gets_no_response),
        TEST(a_stream_is_lost),
        TEST(a_call_never_becomes_a_websocket),
        TEST(an_early_response_is_the_only_one),
        TEST(the_server_closes_with_calls_in_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
