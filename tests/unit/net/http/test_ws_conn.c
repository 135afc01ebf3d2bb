/* RFC 6455 as a table: frames in, and the responses of an echo server.
 *
 * The rows follow the groups of the Autobahn test suite: framing, ping and pong, reserved
 * bits, opcodes, fragmentation, UTF-8, closing, limits. Every row is sent whole and byte
 * by byte. (Text only: a binary message is rejected with 1003.) */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "net/http/http_check.h"
#include "net/http/ws.h"
#include "tests/support/world/ws_peer.h"

enum {
    FRAMES_MAX = 12,
    TEXT = 0x81,
    TEXT_BEGIN = 0x01,
    BINARY = 0x82,
    BINARY_BEGIN = 0x02,
    GO_ON = 0x00,
    END = 0x80,
    CLOSE = 0x88,
    PING = 0x89,
    PONG = 0x8A,
    RAW = 0x70, /* the bytes unchanged */
};

struct scene {
    struct net_world world;
    unsigned closed;
};

static void echo(struct ws *ws, struct slice message)
{
    struct bytes *frame = ws_frame(message, false);
    ws_send(ws, &frame, 1);
    bytes_unref(frame);
}

static void on_drained(struct ws *ws)
{
    (void)ws;
}

static void on_ws_closed(struct ws *ws)
{
    struct scene *scene = ws_owner(ws);
    scene->closed++;
}

static const struct ws_ops echo_ops = { .on_message = echo,
                                        .on_drained = on_drained,
                                        .on_closed = on_ws_closed };

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = 100;
}

static void on_request(void *owner, struct exchange *x)
{
    struct slice asked = http_header(x, "sec-websocket-protocol");
    const char *protocol = http_list_has(asked, "echo") ? "echo" : NULL;
    struct ws *ws = ws_accept(x, protocol, &echo_ops, owner);
    if (ws)
        ws_trust(ws);
}

static void open_scene(struct scene *scene, struct server_options options)
{
    options.handler = (struct http_handler){ .on_head = on_head, .on_request = on_request };
    options.owner = scene;
    *scene = (struct scene){ 0 };
    net_world_open(&scene->world, options);
}

struct frame {
    unsigned char first;
    struct slice payload;
};

#define F(first, literal)                                                                  \
    {                                                                                      \
        first,                                                                             \
        {                                                                                  \
            "" literal, sizeof(literal) - 1                                                \
        }                                                                                  \
    }
#define A10 "0123456789"
#define A100 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10
#define A125 A100 A10 A10 "01234"

/* `expected` ends with X and the close code if the server closes the connection. */
static const struct row {
    const char *name;
    struct frame frames[FRAMES_MAX];
    const char *expected;
} rows[] = {
#include "tests/unit/net/http/ws_frames.def"
};

static void build(const struct frame *frames, struct buf *out)
{
    buf_clear(out);
    for (size_t i = 0; i < FRAMES_MAX && frames[i].payload.ptr; i++) {
        if (frames[i].first == RAW)
            buf_add(out, frames[i].payload);
        else
            ws_peer_add_frame(out, frames[i].first, frames[i].payload);
    }
}

/* step: number of bytes sent at a time. */
static void check(struct scene *scene, const char *name, struct slice bytes, size_t step,
                  const char *expected)
{
    struct peer peer;
    ws_peer_open(&scene->world, &peer, "/");
    while (bytes.len) {
        struct slice part = { bytes.ptr, bytes.len < step ? bytes.len : step };
        peer_send(&scene->world, &peer, part);
        bytes = slice_from(bytes, part.len);
        uv_run(&scene->world.uv, UV_RUN_NOWAIT);
    }
    bool heard = ws_peer_hears(&scene->world, &peer, expected);
    if (!heard)
        print_error("in the row '%s'\n", name);
    ws_peer_await(&scene->world, &peer, expected);
    if (strchr(expected, 'X'))
        peer_await_end(&scene->world, &peer);
    net_world_turn(&scene->world);
    ws_peer_await(&scene->world, &peer, expected); /* nothing else is received */
    assert_int_equal(peer.ended, strchr(expected, 'X') != NULL);
    assert_false(peer.reset);
    peer_close(&peer);
}

static void every_frame_is_answered_as_the_rfc_requires(void **state)
{
    struct scene scene;
    struct buf bytes = { 0 };
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        build(rows[i].frames, &bytes);
        check(&scene, rows[i].name, buf_slice(&bytes), bytes.len, rows[i].expected);
        check(&scene, rows[i].name, buf_slice(&bytes), 1, rows[i].expected);
    }
    buf_finish(&bytes);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 2 * sizeof(rows) / sizeof(rows[0]));
}

/* From Markus Kuhn's UTF-8 stress test, and the ends of all planes. */
static const struct {
    bool valid;
    struct slice text;
} utf8[] = {
#define GOOD(literal) { true, { "" literal, sizeof(literal) - 1 } },
#define BAD(literal) { false, { "" literal, sizeof(literal) - 1 } },
#include "tests/unit/base/utf8.def"
#undef GOOD
#undef BAD
};

static void check_text(struct scene *scene, struct slice text, bool valid)
{
    struct buf bytes = { 0 }, expected = { 0 };
    if (valid)
        buf_print(&expected, "T(");
    buf_add(&expected, valid ? text : SLICE("X1007"));
    if (valid && slice_equal(text, SLICE("\0")))
        expected.ptr[expected.len - 1] = '0';
    buf_add(&expected, valid ? SLICE(")\0") : SLICE("\0"));
    ws_peer_add_frame(&bytes, TEXT, text);
    check(scene, "whole", buf_slice(&bytes), bytes.len, expected.ptr);
    check(scene, "by octets", buf_slice(&bytes), 1, expected.ptr);
    buf_clear(&bytes);
    for (size_t i = 0; i < text.len; i++)
        ws_peer_add_frame(&bytes, i ? GO_ON : TEXT_BEGIN,
                          (struct slice){ text.ptr + i, 1 });
    ws_peer_add_frame(&bytes, END, SLICE(""));
    check(scene, "in fragments", buf_slice(&bytes), bytes.len, expected.ptr);
    buf_finish(&bytes);
    buf_finish(&expected);
}

static void every_text_is_checked_as_utf8(void **state)
{
    struct scene scene;
    (void)state;
    open_scene(&scene, (struct server_options){ .ws_fragments_max = 1000 });
    for (size_t i = 0; i < sizeof(utf8) / sizeof(utf8[0]); i++)
        check_text(&scene, utf8[i].text, utf8[i].valid);
    net_world_close(&scene.world);
}

struct long_echo {
    struct peer *peer;
    size_t len;
};

static bool has_come_back(void *owner)
{
    struct long_echo *echoed = owner;
    peer_read(echoed->peer);
    return echoed->peer->got.len >= echoed->len || echoed->peer->ended;
}

/* Sends the payload in fragments of the given size, `step` bytes at a time. */
static void echo_long(struct scene *scene, size_t len, size_t fragment, size_t step)
{
    struct buf text = { 0 }, bytes = { 0 };
    struct peer peer;
    for (size_t i = 0; i < len; i++)
        buf_add_char(&text, (char)('a' + i % 26));
    for (size_t at = 0; at < len || at == 0; at += fragment) {
        bool last = at + fragment >= len;
        struct slice part = { text.ptr + at, last ? len - at : fragment };
        ws_peer_add_frame(&bytes, (unsigned char)((at ? 0 : 1) | (last ? 0x80 : 0)), part);
    }
    ws_peer_open(&scene->world, &peer, "/");
    for (size_t at = 0; at < bytes.len; at += step) {
        size_t part = bytes.len - at < step ? bytes.len - at : step;
        peer_send(&scene->world, &peer, (struct slice){ bytes.ptr + at, part });
        uv_run(&scene->world.uv, UV_RUN_NOWAIT);
    }
    struct bytes *frame = ws_frame(buf_slice(&text), false);
    struct long_echo echoed = { &peer, frame->len };
    net_world_until(&scene->world, has_come_back, &echoed);
    assert_true(slice_equal(buf_slice(&peer.got), bytes_slice(frame)));
    bytes_unref(frame);
    peer_close(&peer);
    buf_finish(&text);
    buf_finish(&bytes);
}

static void long_messages_are_echoed_completely(void **state)
{
    static const size_t lengths[] = { 125,   126,   127,    128,     4095,    4096,
                                      65535, 65536, 262144, 1048576, 16777216 };
    struct scene scene;
    (void)state;
    open_scene(&scene, (struct server_options){ .ws_message_max = 16 << 20,
                                                .ws_fragments_max = UINT32_MAX });
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = lengths[i];
        echo_long(&scene, len, len, len + 14);
        echo_long(&scene, len, len, len > 1 << 20 ? 65536 : 997);
        if (len <= 1 << 20)
            echo_long(&scene, len, len > 65536 ? 4096 : 64, len);
    }
    net_world_close(&scene.world);
}

static void a_thousand_messages_are_echoed(void **state)
{
    struct scene scene;
    struct peer peer;
    struct buf frame = { 0 };
    (void)state;
    open_scene(&scene, (struct server_options){ .ws_messages_burst = 2000 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof(text), "T(%d)", i);
        buf_clear(&frame);
        ws_peer_add_frame(&frame, TEXT, (struct slice){ text + 2, strlen(text) - 3 });
        peer_send(&scene.world, &peer, buf_slice(&frame));
        ws_peer_await(&scene.world, &peer, text);
        ws_peer_clear(&peer);
    }
    buf_finish(&frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* clang-format off */
/* Upgrade requests. */
static const struct {
    const char *name, *request, *status, *text;
} handshakes[] = {
#define UP "Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
#define V "Sec-WebSocket-Version: 13\r\n"
#define K "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define OPEN "GET / HTTP/1.1\r\n" UP
    { "the usual one", OPEN V K "\r\n", "101",
      "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" },
    { "another path and a query", "GET /a?token=b HTTP/1.1\r\n" UP V K "\r\n", "101", "" },
    { "a list of connection tokens",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, upgrade\r\n"
      "Upgrade: WebSocket\r\n" V K "\r\n", "101", "" },
    { "two connection headers",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: Upgrade\r\n"
      "Upgrade: websocket\r\n" V K "\r\n", "101", "" },
    { "one of several protocols", OPEN V K "Sec-WebSocket-Protocol: x, echo\r\n\r\n", "101",
      "sec-websocket-protocol: echo\r\n" },
    { "an extension is not taken", OPEN V K
      "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", "101", "" },
    { "an origin", OPEN V K "Origin: http://a\r\n\r\n", "101", "" },
    { "POST", "POST / HTTP/1.1\r\n" UP V K "\r\n", "405", "allow: GET" },
    { "HEAD", "HEAD / HTTP/1.1\r\n" UP V K "\r\n", "405", "allow: GET" },
    { "no upgrade", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "426", "upgrade: websocket" },
    { "another upgrade", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
      V K "\r\n", "400", "Upgrade: websocket" },
    { "no connection token", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n" V K
      "\r\n", "400", "Connection: Upgrade" },
    { "another connection token", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
      "Connection: upgraded\r\n" V K "\r\n", "400", "Connection: Upgrade" },
    { "no version", OPEN K "\r\n", "426", "sec-websocket-version: 13" },
    { "version 8", OPEN K "Sec-WebSocket-Version: 8\r\n\r\n", "426",
      "sec-websocket-version: 13" },
    { "version 14", OPEN K "Sec-WebSocket-Version: 14\r\n\r\n", "426", "" },
    { "version 013", OPEN K "Sec-WebSocket-Version: 013\r\n\r\n", "426", "" },
    { "two versions", OPEN K V V "\r\n", "400", "once" },
    { "no key", OPEN V "\r\n", "400", "Sec-WebSocket-Key" },
    { "an empty key", OPEN V "Sec-WebSocket-Key:\r\n\r\n", "400", "Sec-WebSocket-Key" },
    { "a short key", OPEN V "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n\r\n", "400", "" },
    { "a long key", OPEN V "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==AAAA\r\n\r\n", "400",
      "" },
    { "a key of 17 bytes", OPEN V "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQA=\r\n\r\n",
      "400", "" },
    { "a key that is no base64", OPEN V "Sec-WebSocket-Key: ?GhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
      "400", "" },
    { "two keys", OPEN V K K "\r\n", "400", "once" },
    { "two upgrades", OPEN "Upgrade: websocket\r\n" V K "\r\n", "400", "once" },
    { "two origins", OPEN V K "Origin: http://a\r\nOrigin: http://b\r\n\r\n", "400", "once" },
    { "a body", OPEN V K "Content-Length: 2\r\n\r\nhi", "400", "without a body" },
    { "a body in chunks", OPEN V K "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400",
      "without a body" },
    { "HTTP/1.0", "GET / HTTP/1.0\r\n" UP V K "\r\n", "400", "HTTP/1.1" },
    { "no host", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" V K "\r\n",
      "400", "Host" },
};
/* clang-format on */

static void check_handshake(struct scene *scene, size_t row, size_t step)
{
    struct peer peer;
    char line[32];
    struct slice bytes = slice_of(handshakes[row].request);
    peer_open(&scene->world, &peer);
    for (size_t at = 0; at < bytes.len; at += step) {
        size_t len = bytes.len - at < step ? bytes.len - at : step;
        peer_send(&scene->world, &peer, (struct slice){ bytes.ptr + at, len });
        uv_run(&scene->world.uv, UV_RUN_NOWAIT);
    }
    snprintf(line, sizeof(line), "HTTP/1.1 %s ", handshakes[row].status);
    peer_await(&scene->world, &peer, "\r\n\r\n");
    if (!peer_has(&peer, line) || !peer_has(&peer, handshakes[row].text))
        fail_msg("%s: %.*s", handshakes[row].name, SLICE_ARG(buf_slice(&peer.got)));
    assert_false(peer_has(&peer, "sec-websocket-extensions"));
    peer_close(&peer);
}

static void handshakes_are_checked_as_the_rfc_requires(void **state)
{
    struct scene scene;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (size_t i = 0; i < sizeof(handshakes) / sizeof(handshakes[0]); i++) {
        check_handshake(&scene, i, 10000);
        check_handshake(&scene, i, 1);
    }
    net_world_close(&scene.world);
}

/* A client may send before it has the response to its handshake. */
static void messages_right_after_the_handshake_are_read(void **state)
{
    struct scene scene;
    struct peer peer;
    struct buf bytes = { 0 };
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    buf_add_text(&bytes, OPEN V K "\r\n");
    ws_peer_add_frame(&bytes, TEXT, SLICE("early"));
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, buf_slice(&bytes));
    peer_await(&scene.world, &peer,
               "\r\n\r\n\x81\x05"
               "early");
    peer_close(&peer);
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_is_answered_as_the_rfc_requires),
        cmocka_unit_test(every_text_is_checked_as_utf8),
        cmocka_unit_test(long_messages_are_echoed_completely),
        cmocka_unit_test(a_thousand_messages_are_echoed),
        cmocka_unit_test(handshakes_are_checked_as_the_rfc_requires),
        cmocka_unit_test(messages_right_after_the_handshake_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
