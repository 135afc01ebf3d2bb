/* RFC 6455 as a table: frames in, what an echo server says out.
 *
 * The rows follow the groups of the Autobahn test suite: framing, ping and pong, reserved
 * bits, opcodes, fragmentation, UTF-8, closing, limits. Every row is sent whole and byte
 * by byte. (Text only: a binary message is refused with 1003.) */
#include "tests/support/unit.h"

#include <stdio.h>

#include "net/http_check.h"
#include "net/ws.h"
#include "tests/support/ws_peer.h"

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
    RAW = 0x70, /* the bytes as they are */
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

static const struct ws_ops echo_ops = { echo, on_drained, on_ws_closed };

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = 100;
}

static void on_request(void *owner, struct exchange *x)
{
    struct slice asked = http_header(x, "sec-websocket-protocol");
    ws_accept(x, http_list_has(asked, "echo") ? "echo" : NULL, &echo_ops, owner);
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

/* clang-format off */
/* expected ends with X and the code when the server ends the connection. */
static const struct row {
    const char *name;
    struct frame frames[FRAMES_MAX];
    const char *expected;
} rows[] = {
    { "an empty text", { F(TEXT, "") }, "T()" },
    { "a text", { F(TEXT, "hello") }, "T(hello)" },
    { "a text of 125", { F(TEXT, A125) }, "T(" A125 ")" },
    { "a text of 126", { F(TEXT, A125 "5") }, "T(" A125 "5)" },
    { "a text of 127", { F(TEXT, A125 "56") }, "T(" A125 "56)" },
    { "a text of 128", { F(TEXT, A125 "567") }, "T(" A125 "567)" },
    { "two texts", { F(TEXT, "a"), F(TEXT, "b") }, "T(a) T(b)" },
    { "an empty binary", { F(BINARY, "") }, "X1003" },
    { "a binary", { F(BINARY, "\xff\0") }, "X1003" },
    { "a binary in parts", { F(BINARY_BEGIN, "a") }, "X1003" },

    { "an empty ping", { F(PING, "") }, "O()" },
    { "a ping", { F(PING, "hello") }, "O(hello)" },
    { "a binary ping", { F(PING, "\xfe\xff") }, "O(\xfe\xff)" },
    { "a ping of 125", { F(PING, A125) }, "O(" A125 ")" },
    { "a ping of 126", { F(PING, A125 "5") }, "X1002" },
    { "a pong that nobody asked for", { F(PONG, "") }, "" },
    { "a pong with a payload", { F(PONG, "hello") }, "" },
    { "a pong, then a ping", { F(PONG, "a"), F(PING, "b") }, "O(b)" },
    { "a pong of 126", { F(PONG, A125 "5") }, "X1002" },
    { "ten pings",
      { F(PING, "0"), F(PING, "1"), F(PING, "2"), F(PING, "3"), F(PING, "4"), F(PING, "5"),
        F(PING, "6"), F(PING, "7"), F(PING, "8"), F(PING, "9") },
      "O(0) O(1) O(2) O(3) O(4) O(5) O(6) O(7) O(8) O(9)" },
    { "eleven pings",
      { F(PING, ""), F(PING, ""), F(PING, ""), F(PING, ""), F(PING, ""), F(PING, ""),
        F(PING, ""), F(PING, ""), F(PING, ""), F(PING, ""), F(PING, "") },
      "O() O() O() O() O() O() O() O() O() O() X1008" },

    { "reserved bit 3", { F(TEXT | 0x10, "a") }, "X1002" },
    { "reserved bit 2", { F(TEXT, "a"), F(TEXT | 0x20, "b"), F(PING, "") }, "T(a) X1002" },
    { "reserved bits 2 and 3", { F(TEXT | 0x30, "a") }, "X1002" },
    { "reserved bit 1", { F(TEXT | 0x40, "a") }, "X1002" },
    { "reserved bits 1 and 3 of a ping", { F(PING | 0x50, "a") }, "X1002" },
    { "reserved bits 1 and 2 of a binary", { F(BINARY | 0x60, "a") }, "X1002" },
    { "all reserved bits of a close", { F(CLOSE | 0x70, "") }, "X1002" },
    { "a reserved bit of a continuation", { F(TEXT_BEGIN, "a"), F(END | 0x40, "b") },
      "X1002" },

    { "opcode 3", { F(0x83, "") }, "X1002" },
    { "opcode 4", { F(0x84, "a") }, "X1002" },
    { "opcode 5", { F(TEXT, "a"), F(0x85, ""), F(PING, "") }, "T(a) X1002" },
    { "opcode 6", { F(0x86, "a") }, "X1002" },
    { "opcode 7", { F(0x87, "a") }, "X1002" },
    { "opcode 11", { F(0x8B, "") }, "X1002" },
    { "opcode 12", { F(0x8C, "a") }, "X1002" },
    { "opcode 13", { F(0x8D, "") }, "X1002" },
    { "opcode 14", { F(0x8E, "a") }, "X1002" },
    { "opcode 15", { F(0x8F, "a") }, "X1002" },
    { "opcode 3 inside a message", { F(TEXT_BEGIN, "a"), F(0x83, "") }, "X1002" },

    { "a ping in two", { F(0x09, "a"), F(END, "b") }, "X1002" },
    { "a pong in two", { F(0x0A, "a"), F(END, "b") }, "X1002" },
    { "a close in two", { F(0x08, "\x03\xe8"), F(END, "") }, "X1002" },
    { "a text in two", { F(TEXT_BEGIN, "frag"), F(END, "ment") }, "T(fragment)" },
    { "a text in three", { F(TEXT_BEGIN, "a"), F(GO_ON, "b"), F(END, "c") }, "T(abc)" },
    { "empty fragments", { F(TEXT_BEGIN, ""), F(GO_ON, ""), F(END, "") }, "T()" },
    { "one fragment that is not empty", { F(TEXT_BEGIN, ""), F(GO_ON, "mid"), F(END, "") },
      "T(mid)" },
    { "a ping between fragments", { F(TEXT_BEGIN, "a"), F(PING, "p"), F(END, "b") },
      "O(p) T(ab)" },
    { "a pong between fragments", { F(TEXT_BEGIN, "a"), F(PONG, "p"), F(END, "b") },
      "T(ab)" },
    { "pings between many fragments",
      { F(TEXT_BEGIN, "a"), F(GO_ON, "b"), F(PING, "1"), F(GO_ON, "c"), F(GO_ON, "d"),
        F(PING, "2"), F(END, "e") },
      "O(1) O(2) T(abcde)" },
    { "a close between fragments", { F(TEXT_BEGIN, "a"), F(CLOSE, ""), F(END, "b") }, "X" },
    { "a continuation without a start", { F(END, "a") }, "X1002" },
    { "the same, unfinished", { F(GO_ON, "a") }, "X1002" },
    { "a continuation behind a message", { F(TEXT, "a"), F(END, "b") }, "T(a) X1002" },
    { "a continuation behind fragments",
      { F(TEXT_BEGIN, "a"), F(END, "b"), F(GO_ON, "c"), F(END, "d") }, "T(ab) X1002" },
    { "a text inside a message", { F(TEXT_BEGIN, "a"), F(TEXT, "b") }, "X1002" },
    { "a beginning inside a message", { F(TEXT_BEGIN, "a"), F(TEXT_BEGIN, "b") }, "X1002" },
    { "a binary inside a message", { F(TEXT_BEGIN, "a"), F(BINARY, "b") }, "X1002" },

    { "a character cut by fragments", { F(TEXT_BEGIN, "\xce"), F(END, "\xba") },
      "T(\xce\xba)" },
    { "a character cut by an empty fragment",
      { F(TEXT_BEGIN, "\xf0\x9f"), F(GO_ON, ""), F(PING, ""), F(END, "\x98\x80") },
      "O() T(\xf0\x9f\x98\x80)" },
    { "a character that is not finished", { F(TEXT, "\xce") }, "X1007" },
    { "the same behind fragments", { F(TEXT_BEGIN, "a"), F(GO_ON, "\xe2\x82"), F(END, "") },
      "X1007" },
    { "a bad character before the end of the message", { F(TEXT_BEGIN, "\xc0") }, "X1007" },
    { "a bad character before the end of the frame",
      { F(RAW, "\x81\x8a\x00\x00\x00\x00"
               "abc\xff") },
      "X1007" },
    { "a bad one in the second fragment", { F(TEXT_BEGIN, "\xf4"), F(GO_ON, "\x90") },
      "X1007" },
    { "a bad one in the 4096th byte of a frame", { F(RAW, "\x81\xfe\x20\x00\x00\x00\x00\x00"
                                                          A100 "\xff") },
      "X1007" },
    { "the state is new for each message", { F(TEXT, "\xce\xba"), F(TEXT, "b") },
      "T(\xce\xba) T(b)" },
    { "a bad payload of a ping is nobody's business", { F(PING, "\xff") }, "O(\xff)" },

    { "a close", { F(CLOSE, "") }, "X" },
    { "a close with a code", { F(CLOSE, "\x03\xe8") }, "X1000" },
    { "a close with a reason", { F(CLOSE, "\x03\xe8" "bye") }, "X1000" },
    { "a close with a reason of 123", { F(CLOSE, "\x03\xe8" A100 A10 A10 "012") }, "X1000" },
    { "a close with a reason of 124", { F(CLOSE, "\x03\xe8" A100 A10 A10 "0123") }, "X1002" },
    { "a close with one byte", { F(CLOSE, "\x03") }, "X1002" },
    { "a close, then a text", { F(CLOSE, "\x03\xe8"), F(TEXT, "a") }, "X1000" },
    { "a close, then a ping", { F(CLOSE, "\x03\xe8"), F(PING, "a") }, "X1000" },
    { "two closes", { F(CLOSE, "\x03\xe8"), F(CLOSE, "\x03\xe9") }, "X1000" },
    { "a text, then a close", { F(TEXT, "a"), F(CLOSE, "\x03\xe8") }, "T(a) X1000" },
    { "a close with a bad reason", { F(CLOSE, "\x03\xe8\xce\xba\xe1\xbd\xff") }, "X1007" },
    { "a close with a cut reason", { F(CLOSE, "\x03\xe8\xce") }, "X1007" },
    { "code 0", { F(CLOSE, "\0\0") }, "X1002" },
    { "code 999", { F(CLOSE, "\x03\xe7") }, "X1002" },
    { "code 1001", { F(CLOSE, "\x03\xe9") }, "X1001" },
    { "code 1002", { F(CLOSE, "\x03\xea") }, "X1002" },
    { "code 1003", { F(CLOSE, "\x03\xeb") }, "X1003" },
    { "code 1004", { F(CLOSE, "\x03\xec") }, "X1002" },
    { "code 1005", { F(CLOSE, "\x03\xed") }, "X1002" },
    { "code 1006", { F(CLOSE, "\x03\xee") }, "X1002" },
    { "code 1007", { F(CLOSE, "\x03\xef") }, "X1007" },
    { "code 1008", { F(CLOSE, "\x03\xf0") }, "X1008" },
    { "code 1009", { F(CLOSE, "\x03\xf1") }, "X1009" },
    { "code 1010", { F(CLOSE, "\x03\xf2") }, "X1010" },
    { "code 1011", { F(CLOSE, "\x03\xf3") }, "X1011" },
    { "code 1012", { F(CLOSE, "\x03\xf4") }, "X1012" },
    { "code 1014", { F(CLOSE, "\x03\xf6") }, "X1014" },
    { "code 1015", { F(CLOSE, "\x03\xf7") }, "X1002" },
    { "code 1016", { F(CLOSE, "\x03\xf8") }, "X1002" },
    { "code 1100", { F(CLOSE, "\x04\x4c") }, "X1002" },
    { "code 2000", { F(CLOSE, "\x07\xd0") }, "X1002" },
    { "code 2999", { F(CLOSE, "\x0b\xb7") }, "X1002" },
    { "code 3000", { F(CLOSE, "\x0b\xb8") }, "X3000" },
    { "code 3999", { F(CLOSE, "\x0f\x9f") }, "X3999" },
    { "code 4000", { F(CLOSE, "\x0f\xa0") }, "X4000" },
    { "code 4999", { F(CLOSE, "\x13\x87") }, "X4999" },
    { "code 5000", { F(CLOSE, "\x13\x88") }, "X1002" },
    { "code 65535", { F(CLOSE, "\xff\xff") }, "X1002" },

    { "a text without a mask", { F(RAW, "\x81\x05hello") }, "X1002" },
    { "an empty text without a mask", { F(RAW, "\x81\x00") }, "X1002" },
    { "a ping without a mask", { F(RAW, "\x89\x00") }, "X1002" },
    { "a close without a mask", { F(RAW, "\x88\x02\x03\xe8") }, "X1002" },
    { "the head of a text without a mask", { F(RAW, "\x81\x7e\x01\x00") }, "X1002" },
    { "a mask of zeros", { F(RAW, "\x81\x82\0\0\0\0hi") }, "T(hi)" },
    { "a short length in two bytes", { F(RAW, "\x81\xfe\x00\x7d\0\0\0\0" A125) }, "X1002" },
    { "a short length in eight bytes",
      { F(RAW, "\x81\xff\0\0\0\0\0\0\0\x01\0\0\0\0a") },
      "X1002" },
    { "64 KiB in eight bytes, minus one",
      { F(RAW, "\x81\xff\0\0\0\0\0\0\xff\xff\0\0\0\0a") },
      "X1002" },
    { "the head of 64 KiB and one byte", { F(RAW, "\x81\xff\0\0\0\0\0\1\0\1\0\0\0\0") },
      "X1009" },
    { "the head of 4 GiB", { F(RAW, "\x81\xff\0\0\0\1\0\0\0\0\0\0\0\0") }, "X1009" },
    { "the head of 2^63 - 1",
      { F(RAW, "\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0") },
      "X1009" },
    { "the head of 2^63", { F(RAW, "\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0") }, "X1009" },
    { "the head of a fragment that is too much",
      { F(TEXT_BEGIN, "a"), F(RAW, "\x80\xff\0\0\0\0\0\1\0\0\0\0\0\0") },
      "X1009" },
};
/* clang-format on */

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

/* step: how many bytes at once. */
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
    ws_peer_await(&scene->world, &peer, expected); /* and nothing else */
    assert_int_equal(peer.ended, strchr(expected, 'X') != NULL);
    assert_false(peer.reset);
    peer_close(&peer);
}

static void every_frame_is_answered_as_the_rfc_says(void **state)
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

/* Markus Kuhn's stress test, and the ends of all planes. */
static const struct {
    bool valid;
    struct slice text;
} utf8[] = {
#define GOOD(literal) { true, { "" literal, sizeof(literal) - 1 } },
#define BAD(literal) { false, { "" literal, sizeof(literal) - 1 } },
#include "tests/unit/utf8.def"
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

/* The payload is sent in fragments of the given size, the bytes step at a time. */
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

static void long_messages_come_back_whole(void **state)
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

static void a_thousand_messages_make_the_round_trip(void **state)
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
/* Requests to open. */
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

static void the_handshake_is_judged_as_the_rfc_says(void **state)
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

/* A client need not wait for the answer before it speaks. */
static void what_follows_the_handshake_at_once_is_heard(void **state)
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
        cmocka_unit_test(every_frame_is_answered_as_the_rfc_says),
        cmocka_unit_test(every_text_is_checked_as_utf8),
        cmocka_unit_test(long_messages_come_back_whole),
        cmocka_unit_test(a_thousand_messages_make_the_round_trip),
        cmocka_unit_test(the_handshake_is_judged_as_the_rfc_says),
        cmocka_unit_test(what_follows_the_handshake_at_once_is_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
