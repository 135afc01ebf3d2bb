/* Calls that a follower forwards, over real sockets: both sides prove their key first, and
 * strangers reach nothing. */
#include "tests/support/world/unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/http/relayed.h"
#include "net/http/ws.h"
#include "server/peers/call_wire.h"
#include "server/peers/peer_wire.h"
#include "tests/support/world/peer_pair.h"

#define KEY PEER_PAIR_KEY
#define OTHER "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

enum { LONG = 100 * 1000 };

static struct peer_pair pair;
static struct client_world *const world = &pair.world;

static struct {
    unsigned heads, requests, bodies, gone;
    struct exchange *waiting; /* at /wait */
    struct buf seen;
} scene;

/* A call of a client, and its response. */
static struct call {
    struct relay relay;
    int status;
    struct buf got, lines;
    bool ended;
    enum err error;
    char why[160];
} call;

/* ---- the leader ---- */

static void on_api_head(void *owner, struct exchange *x)
{
    assert_ptr_equal(owner, &pair);
    assert_true(x->relayed);
    assert_false(http_header(x, RELAYED_HEADER).ptr);
    scene.heads++;
    x->body_limit = 100;
    if (slice_is(x->path, "/peer/mux"))
        assert_true(x->wants_upgrade);
    x->stream_body = slice_is(x->path, "/stream");
}

static void on_api_body(void *owner, struct exchange *x, struct slice piece)
{
    (void)owner;
    (void)x;
    scene.bodies++;
    buf_add(&scene.seen, piece);
}

static void on_api_request(void *owner, struct exchange *x)
{
    struct buf text = { 0 };
    (void)owner;
    scene.requests++;
    if (slice_is(x->path, "/wait")) {
        scene.waiting = x;
        return;
    }
    if (slice_is(x->path, "/long")) {
        buf_reserve(&text, LONG);
        memset(text.ptr, 'l', LONG);
        http_reply(x, 200, (struct slice){ 0 }, (struct slice){ text.ptr, LONG });
        buf_finish(&text);
        return;
    }
    if (slice_is(x->path, "/stream")) {
        http_stream_begin(x, 200, (struct slice){ 0 });
        http_stream_write(x, SLICE("streamed"));
        http_stream_end(x);
        return;
    }
    struct slice mark = http_header(x, "x-mark"), host = http_header(x, "host");
    buf_print(&text, "%s%s%s %.*s?%.*s %.*s %.*s %.*s", x->peer, x->secure ? " tls" : "",
              x->hidden ? " hidden" : "", SLICE_ARG(x->path), SLICE_ARG(x->query),
              SLICE_ARG(host), SLICE_ARG(mark), SLICE_ARG(x->body));
    http_reply(x, 200, (struct slice){ 0 }, buf_slice(&text));
    buf_finish(&text);
}

static void on_api_gone(void *owner, struct exchange *x)
{
    (void)owner;
    scene.gone++;
    scene.waiting = NULL;
    http_reply(x, 500, (struct slice){ 0 }, (struct slice){ 0 });
}

static const struct http_handler calls = { .on_head = on_api_head,
                                           .on_body = on_api_body,
                                           .on_request = on_api_request,
                                           .on_gone = on_api_gone };

/* ---- the follower ---- */

static void start_follower(const char *key)
{
    peer_pair_start_follower(&pair, key);
}

static void on_ready(struct relay *relay)
{
    (void)relay;
}

static void on_head(struct relay *relay, int status, const struct http_header *headers,
                    size_t count)
{
    (void)relay;
    (void)headers;
    (void)count;
    call.status = status;
}

static void on_piece(struct relay *relay, struct slice piece)
{
    (void)relay;
    buf_add(&call.got, piece);
}

static void on_end(struct relay *relay, enum err error, const char *why)
{
    (void)relay;
    call.ended = true;
    call.error = error;
    snprintf(call.why, sizeof(call.why), "%s", why);
}

static void on_answer(struct relay *relay, int status, struct slice lines,
                      struct slice body)
{
    on_head(relay, status, NULL, 0);
    on_piece(relay, body);
    buf_add(&call.lines, lines);
    on_end(relay, OK, "");
}

static const struct relay_ops ops = { on_ready, on_head, on_piece, on_end, on_answer };

static bool has_ended(void *owner)
{
    (void)owner;
    return call.ended;
}

static void make_call(struct relay_request request, const char *body)
{
    struct failure why;
    struct relay_pool *pool = forwarder_pool(pair.forwarder);
    assert_non_null(pool);
    call.ended = false;
    buf_clear(&call.got);
    buf_clear(&call.lines);
    request.body = slice_of(body);
    request.has_length = !request.chunked && *body;
    request.length = strlen(body);
    if (relay_begin(pool, &call.relay, &request, &ops, &why))
        fail_msg("%s", why.text);
    if (!call.relay.is_muxed)
        relay_write(&call.relay, slice_of(body));
    relay_finish(&call.relay);
    client_world_until(world, has_ended, NULL);
}

static const struct http_header headers[] = { { SLICE("host"), SLICE("runs.example") },
                                              { SLICE("X-Mark"), SLICE("m  n") } };

static void expect_call(const char *target, const char *note, const char *expected)
{
    make_call((struct relay_request){ .method = "POST",
                                      .target = slice_of(target),
                                      .headers = headers,
                                      .header_count = 2,
                                      .note = slice_of(note) },
              "body");
    if (call.error)
        fail_msg("%s", call.why);
    assert_int_equal(call.status, 200);
    if (!slice_is(buf_slice(&call.got), expected))
        fail_msg("not '%s' but '%.*s'", expected, SLICE_ARG(buf_slice(&call.got)));
}

/* ---- setup ---- */

/* state: the leader has room for one connection with calls; NULL: as usual. */
static int open_scene(void **state)
{
    memset(&scene, 0, sizeof(scene));
    memset(&call, 0, sizeof(call));
    peer_pair_open(&pair);
    peer_pair_start_leader(&pair, &calls, *state ? 1 : 0);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    peer_pair_close(&pair);
    buf_finish(&scene.seen);
    buf_finish(&call.got);
    buf_finish(&call.lines);
    return 0;
}

/* ---- tests ---- */

static void a_call_belongs_to_its_client(void **state)
{
    (void)state;
    start_follower(KEY);
    expect_call("/a%20b?c=d", "203.0.113.9 --",
                "203.0.113.9 /a%20b?c=d runs.example m  n body");
    expect_call("/", "2001:db8::1 sh", "2001:db8::1 tls hidden /? runs.example m  n body");
    make_call((struct relay_request){ .method = "PUT",
                                      .target = SLICE("/stream"),
                                      .headers = headers,
                                      .header_count = 2,
                                      .chunked = true,
                                      .note = SLICE("::1 --") },
              "in pieces");
    assert_int_equal(call.status, 200);
    assert_true(slice_is(buf_slice(&scene.seen), "in pieces"));
    assert_int_equal(scene.requests, 3);
    assert_int_equal(relay_pool_connections(forwarder_pool(pair.forwarder)), 1);
}

static void expect_refusal(enum err error, const char *why)
{
    make_call((struct relay_request){ .method = "POST", .target = SLICE("/") }, "secret");
    if (call.error != error || !strstr(call.why, why))
        fail_msg("not '%s' but '%s'", why, call.why);
    assert_false(call.relay.was_sent);
    assert_int_equal(scene.heads, 0);
}

static void another_key_forwards_nothing(void **state)
{
    (void)state;
    start_follower(OTHER);
    expect_refusal(ERR_UNTRUSTED, "refuses this one");
}

static void only_the_leader_gets_calls(void **state)
{
    (void)state;
    start_follower(KEY);
    pair.leader.id = PEER_PAIR_LEADER + 1;
    expect_refusal(ERR_UNTRUSTED, "another gateway than the leader");
    pair.leader.id = PEER_PAIR_LEADER;
    pair.id = 0;
    expect_refusal(ERR_UNTRUSTED, "does not lead");
    pair.leader.id = 0;
    assert_null(forwarder_pool(pair.forwarder));
}

static void a_lead_that_has_ended_refuses_calls(void **state)
{
    (void)state;
    start_follower(KEY);
    expect_call("/", "203.0.113.9 --", "203.0.113.9 /? runs.example m  n body");
    pair.id = 0;
    make_call((struct relay_request){ .method = "GET",
                                      .target = SLICE("/"),
                                      .headers = headers,
                                      .header_count = 1,
                                      .note = SLICE("::1 --") },
              "");
    assert_int_equal(call.status, 503);
    assert_int_equal(scene.heads, 1);
}

/* ---- multiplexed calls ---- */

static struct relay_request brief(const char *target, const char *note)
{
    return (struct relay_request){ .method = "POST",
                                   .target = slice_of(target),
                                   .headers = headers,
                                   .header_count = 2,
                                   .note = slice_of(note),
                                   .is_brief = true };
}

/* The first calls have connections of their own, until there is one for all. */
static void open_mux(void)
{
    start_follower(KEY);
    do
        make_call(brief("/", "::1 --"), "body");
    while (!call.relay.is_muxed);
}

static void brief_calls_share_a_connection(void **state)
{
    (void)state;
    open_mux();
    for (unsigned i = 0; i < 100; i++) {
        unsigned heads = scene.heads;
        make_call(brief("/a?b", "203.0.113.9 sh"), i % 2 ? "body" : "");
        assert_true(call.relay.is_muxed && call.relay.was_sent);
        assert_int_equal(call.status, 200);
        assert_true(slice_is(buf_slice(&call.got),
                             i % 2 ? "203.0.113.9 tls hidden /a?b runs.example m  n body"
                                   : "203.0.113.9 tls hidden /a?b runs.example m  n "));
        assert_int_equal(scene.heads, heads + 1);
    }
    assert_int_equal(relay_pool_connections(forwarder_pool(pair.forwarder)), 2);
}

static void a_lead_that_has_ended_refuses_muxed_calls(void **state)
{
    (void)state;
    open_mux();
    unsigned heads = scene.heads;
    pair.id = 0;
    make_call(brief("/", "::1 --"), "body");
    assert_true(call.relay.is_muxed);
    assert_int_equal(call.status, 503);
    assert_true(
        slice_is(buf_slice(&call.lines), "retry-after: 1\r\n" RELAYED_UNTAKEN ": 1\r\n"));
    assert_int_equal(scene.heads, heads);
}

/* Messages have copies of bodies: those of many long responses would fill the memory. */
static void a_read_with_a_long_response_is_refused_on_the_shared_connection(void **state)
{
    struct relay_request request = brief("/long", "::1 --");
    (void)state;
    open_mux();
    request.method = "GET";
    make_call(request, "");
    assert_true(call.relay.is_muxed && call.relay.is_for_own);
    assert_int_equal(call.error, ERR_LOST);
    request.is_brief = false;
    make_call(request, "");
    assert_false(call.relay.is_muxed);
    assert_int_equal(call.got.len, LONG);
}

static void a_write_with_a_long_response_is_answered(void **state)
{
    (void)state;
    open_mux();
    make_call(brief("/long", "::1 --"), "body");
    assert_true(call.relay.is_muxed);
    assert_int_equal(call.status, 200);
    assert_int_equal(call.got.len, LONG);
}

static void a_read_that_becomes_a_stream_is_refused_on_the_shared_connection(void **state)
{
    struct relay_request request = brief("/stream", "::1 --");
    (void)state;
    open_mux();
    request.method = "GET";
    make_call(request, "");
    assert_true(call.relay.is_muxed && call.relay.is_for_own);
    make_call(brief("/stream", "::1 --"), "body");
    assert_false(call.relay.is_for_own);
    assert_int_equal(call.error, ERR_LOST);
    make_call(brief("/", "::1 --"), "body");
    assert_true(call.relay.is_muxed);
    assert_int_equal(call.status, 200);
}

static bool is_waiting(void *owner)
{
    (void)owner;
    return scene.waiting;
}

static void begin_waiting(struct relay *relay)
{
    const struct relay_request request = brief("/wait", "::1 --");
    struct failure why;
    if (relay_begin(forwarder_pool(pair.forwarder), relay, &request, &ops, &why))
        fail_msg("%s", why.text);
    assert_true(relay->is_muxed);
    client_world_until(world, is_waiting, NULL);
}

static void muxed_calls_are_answered_in_any_order(void **state)
{
    struct relay relay;
    (void)state;
    open_mux();
    begin_waiting(&relay);
    make_call(brief("/", "::1 --"), "body");
    assert_int_equal(call.status, 200);
    call.ended = false;
    http_reply(scene.waiting, 201, (struct slice){ 0 }, SLICE("at last"));
    client_world_until(world, has_ended, NULL);
    assert_int_equal(call.status, 201);
}

static bool is_left(void *owner)
{
    (void)owner;
    return scene.gone > 0;
}

/* Calls of clients do not keep followers out. */
static void too_many_connections_of_calls_are_refused(void **state)
{
    struct relay_request request = brief("/wait", "::1 --");
    struct relay held;
    struct failure why;
    (void)state;
    start_follower(KEY);
    request.is_brief = false;
    relay_begin(forwarder_pool(pair.forwarder), &held, &request, &ops, &why);
    relay_finish(&held);
    client_world_until(world, is_waiting, NULL);
    make_call((struct relay_request){ .method = "POST", .target = SLICE("/") }, "one more");
    assert_string_equal(call.why, "the leader has too many forwarded calls");
    relay_cancel(&held);
    client_world_until(world, is_left, NULL);
    expect_call("/", "::1 --", "::1 /? runs.example m  n body");
}

static void a_client_of_a_muxed_call_may_leave(void **state)
{
    struct relay relay;
    (void)state;
    open_mux();
    begin_waiting(&relay);
    call.ended = false;
    relay_leave(&relay);
    client_world_until(world, has_ended, NULL);
    assert_int_equal(scene.gone, 1);
    assert_int_equal(call.status, 500);
    scene.gone = 0;
    begin_waiting(&relay);
    call.ended = false;
    relay_cancel(&relay);
    client_world_until(world, is_left, NULL);
    assert_false(call.ended);
}

static void muxed_calls_end_with_their_connection(void **state)
{
    struct relay relay;
    (void)state;
    open_mux();
    begin_waiting(&relay);
    call.ended = false;
    peer_pair_stop_leader(&pair);
    client_world_until(world, has_ended, NULL);
    assert_int_equal(call.error, ERR_LOST);
    assert_true(relay.was_sent);
    peer_pair_start_leader(&pair, &calls, 0);
}

/* A client chooses the path and the headers of its call. */
static void a_client_cannot_open_a_multiplexed_connection(void **state)
{
    static const struct http_header asking[] = { { SLICE("host"), SLICE("a") },
                                                 { SLICE("connection"), SLICE("Upgrade") },
                                                 { SLICE("upgrade"), SLICE("websocket") } };
    (void)state;
    start_follower(KEY);
    make_call((struct relay_request){ .method = "GET",
                                      .target = SLICE(PEER_MUX_TARGET),
                                      .headers = asking,
                                      .header_count = 3,
                                      .upgrades = true,
                                      .note = SLICE("::1 --") },
              "");
    assert_int_equal(call.status, 200);
    assert_int_equal(scene.requests, 1);
}

static void a_muxed_call_never_becomes_a_replication(void **state)
{
    struct relay_request request = brief(PEER_TARGET, "::1 --");
    static const struct http_header asking[] = { { SLICE("host"), SLICE("a") },
                                                 { SLICE("connection"), SLICE("Upgrade") },
                                                 { SLICE("upgrade"), SLICE("websocket") },
                                                 { SLICE("sec-websocket-protocol"),
                                                   SLICE(PEER_PROTOCOL) } };
    (void)state;
    open_mux();
    unsigned requests = scene.requests;
    request.method = "GET";
    request.headers = asking;
    request.header_count = 4;
    make_call(request, "");
    assert_true(call.relay.is_muxed);
    assert_int_equal(call.status, 200);
    assert_int_equal(scene.requests, requests + 1);
}

static void changed_and_repeated_messages_are_refused(void **state)
{
    struct peer_key key = { { 1 } };
    (void)state;
    for (unsigned changes = 0; changes < 6; changes++) {
        enum peer_mux mux = changes < 3 ? PEER_MUX_HASHED : PEER_MUX_SEALED;
        struct peer_mac *out = peer_mac_create(&key, PEER_CALLER);
        struct peer_mac *in = peer_mac_create(&key, PEER_CALLER);
        struct buf message = { 0 };
        call_wire_seal(out, mux, SLICE("items"), &message);
        buf_add_text(&message, changes % 3 == 1 ? "itemz" : "items");
        struct slice once = buf_slice(&message), again = once;
        assert_int_equal(call_wire_open(in, mux, &once), changes % 3 != 1);
        if (changes % 3 == 2)
            assert_false(call_wire_open(in, mux, &again));
        peer_mac_destroy(in);
        peer_mac_destroy(out);
        buf_finish(&message);
    }
}

/* ---- strangers ---- */

static void say(struct far *far, const char *text)
{
    far_say(world, far, text);
}

static void connect_stranger(struct far *far)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port =
                                       htons((uint16_t)peer_server_port(pair.server)) };
    *far = (struct far){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    assert_int_equal(connect(far->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

#define HEAD(line) line " HTTP/1.1\r\nhost: a\r\n"
#define SIGNED "x-runcast-forwarded: 203.0.113.9 -- AAAAAAAAAAAAAAAAAAAAAA\r\n"

static const struct {
    const char *request, *response;
} strangers[] = {
    { HEAD("GET /") "\r\n", "HTTP/1.1 404 " },
    { HEAD("GET /healthz") "\r\n", "HTTP/1.1 404 " },
    { HEAD("GET /") SIGNED "\r\n", "HTTP/1.1 404 " },
    { HEAD("GET /peer/calls") "\r\n", "HTTP/1.1 404 " },
    { HEAD("GET /peer/mux") "connection: upgrade\r\nupgrade: websocket\r\n\r\n",
      "HTTP/1.1 404 " },
    { HEAD("GET /peer/mux") "x-runcast-forwarded: mux -- AAAAAAAAAAAAAAAAAAAAAA\r\n\r\n",
      "HTTP/1.1 404 " },
    { HEAD("POST /peer/calls") "content-length: 400\r\n\r\n", "HTTP/1.1 413 " },
    { HEAD("POST /peer/calls") "\r\n" HEAD("GET /") SIGNED "\r\n", "HTTP/1.1 404 " },
    { HEAD("POST /peer/calls") "\r\n" HEAD("POST /peer/calls") "\r\n", "HTTP/1.1 403 " },
    { HEAD("POST /peer/calls") "\r\n" HEAD(
          "POST /peer/calls") "content-length: 72\r\n\r\n"
                              "0123456789012345678901234567890101234567"
                              "01234567890123456789012345678901",
      "HTTP/1.1 403 " },
    { HEAD("GET /peer/replication") "connection: upgrade\r\nupgrade: websocket\r\n"
                                    "sec-websocket-version: 13\r\n"
                                    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                                    "sec-websocket-protocol: runcast.repl.1\r\n"
                                    "transfer-encoding: chunked\r\n\r\n",
      "HTTP/1.1 400 " },
    { HEAD("POST /peer/calls") "\r\n" HEAD(
          "GET /peer/replication") "connection: upgrade\r\nupgrade: "
                                   "websocket\r\nsec-websocket-version: 13\r\n"
                                   "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                                   "sec-websocket-protocol: runcast.repl.1\r\n\r\n",
      "HTTP/1.1 404 " },
};

static void strangers_reach_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        struct far far;
        connect_stranger(&far);
        say(&far, strangers[i].request);
        far_await_end(world, &far);
        if (!far_has(&far, strangers[i].response))
            fail_msg("%zu: %.*s", i, SLICE_ARG(buf_slice(&far.got)));
        far_close(&far);
    }
    assert_int_equal(scene.heads, 0);
}

/* The time for the handshake begins with its first head. */
static void a_greeting_without_its_body_is_closed_in_time(void **state)
{
    static const char *const greetings[] = {
        HEAD("POST /peer/calls") "content-length: 4\r\n\r\n",
        HEAD("POST /peer/calls") "\r\n" HEAD(
            "POST /peer/calls") "content-length: 72\r\n\r\n0",
    };
    struct far fars[2];
    (void)state;
    int64_t began_ms = loop_now_ms(world->loop);
    for (size_t i = 0; i < 2; i++) {
        connect_stranger(&fars[i]);
        say(&fars[i], greetings[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        far_await_end(world, &fars[i]);
        far_close(&fars[i]);
    }
    /* Without this limit, a body has 30 s. */
    assert_true(loop_now_ms(world->loop) - began_ms < 20 * 1000);
}

/* A MAC counts the calls of its connection, so the same bytes are not accepted twice. */
static void changed_and_repeated_heads_are_refused(void **state)
{
    static const struct http_header sent[] = { { SLICE("host"), SLICE("a") },
                                               { SLICE("x-mark"), SLICE("m") } };
    static const struct {
        const char *name;
        const char *path;
        const char *mark;
        const char *origin;
        unsigned number;
        bool is_right;
    } cases[] = {
        { "as signed", "/", "m", "::1 --", 0, true },
        { "repeated", "/", "m", "::1 --", 1, false },
        { "other path", "/b", "m", "::1 --", 0, false },
        { "other header", "/", "n", "::1 --", 0, false },
        { "other client", "/", "m", "::2 --", 0, false },
    };
    struct peer_key key = { { 1 } };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer_mac *out = peer_mac_create(&key, PEER_CALLER);
        struct peer_mac *in = peer_mac_create(&key, PEER_CALLER);
        unsigned char hash[HASH_LEN] = { 0 }, mac[PEER_MAC_LEN];
        struct buf line = { 0 };
        call_wire_sign(out, SLICE("GET / HTTP/1.1\r\nhost: a\r\nx-mark: m\r\n"),
                       SLICE("::1 --"), &line);
        struct slice text =
            slice_from(buf_slice(&line), strlen(RELAYED_HEADER ": ::1 -- "));
        text.len -= 2;
        struct buf value = { 0 };
        buf_print(&value, "%s %.*s", cases[i].origin, SLICE_ARG(text));
        struct http_header heads[] = { sent[0],
                                       { SLICE("x-mark"), slice_of(cases[i].mark) },
                                       { SLICE(RELAYED_HEADER), buf_slice(&value) } };
        struct exchange x = { .method = HTTP_GET_,
                              .path = slice_of(cases[i].path),
                              .headers = heads,
                              .header_count = 3 };
        for (unsigned n = 0; n < cases[i].number; n++)
            peer_mac_next(in, hash, mac);
        enum peer_mux mux;
        if (call_wire_check(in, &x, &mux) != cases[i].is_right)
            fail_msg("%s", cases[i].name);
        assert_int_equal(x.relayed, cases[i].is_right);
        peer_mac_destroy(in);
        peer_mac_destroy(out);
        buf_finish(&line);
        buf_finish(&value);
    }
}

static void a_client_cannot_add_the_header(void **state)
{
    static const struct http_header twice[] = {
        { SLICE("host"), SLICE("a") },
        { SLICE("X-Runcast-Forwarded"), SLICE("::2 -- AAAAAAAAAAAAAAAAAAAAAA") },
    };
    (void)state;
    start_follower(KEY);
    make_call((struct relay_request){ .method = "GET",
                                      .target = SLICE("/"),
                                      .headers = twice,
                                      .header_count = 2,
                                      .note = SLICE("::1 --") },
              "");
    assert_int_equal(call.status, 403);
    assert_int_equal(scene.heads, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_belongs_to_its_client),
        TEST(another_key_forwards_nothing),
        TEST(only_the_leader_gets_calls),
        cmocka_unit_test_prestate_setup_teardown(too_many_connections_of_calls_are_refused,
                                                 open_scene, close_scene, &pair),
        TEST(a_lead_that_has_ended_refuses_calls),
        TEST(strangers_reach_nothing),
        TEST(changed_and_repeated_heads_are_refused),
        TEST(a_greeting_without_its_body_is_closed_in_time),
        TEST(a_client_cannot_add_the_header),
        TEST(brief_calls_share_a_connection),
        TEST(a_lead_that_has_ended_refuses_muxed_calls),
        TEST(a_read_with_a_long_response_is_refused_on_the_shared_connection),
        TEST(a_write_with_a_long_response_is_answered),
        TEST(a_read_that_becomes_a_stream_is_refused_on_the_shared_connection),
        TEST(muxed_calls_are_answered_in_any_order),
        TEST(a_client_of_a_muxed_call_may_leave),
        TEST(muxed_calls_end_with_their_connection),
        TEST(a_client_cannot_open_a_multiplexed_connection),
        TEST(a_muxed_call_never_becomes_a_replication),
        TEST(changed_and_repeated_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
