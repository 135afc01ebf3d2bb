/* websocket_scene.c - notes the client's events, and plays the server. */
#include "tests/support/world/websocket_scene.h"

#include <openssl/evp.h>

#include "base/cursor.h"
#include "tests/support/world/unit.h"

struct client_world world;
struct far far;
struct websocket *ws;
struct seen seen;

static void on_open(struct websocket *opened)
{
    assert_ptr_equal(websocket_owner(opened), &seen);
    seen.opened++;
}

static void on_message(struct websocket *from, struct slice message, bool is_binary)
{
    assert_ptr_equal(from, ws);
    buf_add_text(&seen.heard, is_binary ? "B(" : "T(");
    buf_add(&seen.heard, message);
    buf_add_char(&seen.heard, ')');
    if (seen.on_message)
        seen.on_message();
}

static void on_closed(struct websocket *closed, const struct websocket_end *end)
{
    assert_ptr_equal(websocket_owner(closed), &seen);
    seen.closed++;
    seen.error = end->error;
    seen.status = end->status;
    seen.code = end->code;
    snprintf(seen.why, sizeof(seen.why), "%s", end->why);
    snprintf(seen.reason, sizeof(seen.reason), "%.*s", SLICE_ARG(end->reason));
}

const struct websocket_ops play_ops = { on_open, on_message, on_closed };

static bool has_closed(void *owner)
{
    (void)owner;
    return seen.closed;
}

bool play_has_opened(void *owner)
{
    (void)owner;
    return seen.opened || seen.closed;
}

static bool has_heard(void *owner)
{
    return slice_equal(buf_slice(&seen.heard), slice_of(owner)) || seen.closed;
}

int play_open(void **state)
{
    (void)state;
    client_world_open(&world);
    memset(&seen, 0, sizeof(seen));
    far.fd = -1;
    return 0;
}

int play_close(void **state)
{
    (void)state;
    if (!seen.closed) {
        websocket_cut(ws);
        assert_int_equal(seen.closed, 0); /* not from inside the call */
        client_world_until(&world, has_closed, NULL);
        assert_int_equal(seen.error, ERR_CANCELED);
    }
    assert_int_equal(seen.closed, 1);
    if (far.fd >= 0)
        far_close(&far);
    buf_finish(&seen.heard);
    client_world_close(&world);
    return 0;
}

void play_begin(struct websocket_options options)
{
    struct failure why;
    options.url = &world.url;
    if (!options.target.ptr)
        options.target = SLICE("/");
    if (websocket_open(world.loop, &options, &play_ops, &seen, &ws, &why))
        fail_msg("%s", why.text);
    assert_int_equal(seen.closed, 0);
}

/* Waits for the client's request, and returns the answer to its key. */
void play_read_key(char accept[WS_ACCEPT_LEN + 1])
{
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    const char *key = memmem(far.got.ptr, far.got.len, "sec-websocket-key: ", 19);
    assert_non_null(key);
    ws_key_answer(EVP_sha1(), (struct slice){ key + 19, WS_KEY_LEN }, accept);
}

void play_accept(const char *more)
{
    char accept[WS_ACCEPT_LEN + 1], answer[400];
    play_read_key(accept);
    buf_clear(&far.got);
    snprintf(answer, sizeof(answer),
             "HTTP/1.1 101 Go\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
             "Sec-WebSocket-Accept: %s\r\n%s\r\n",
             accept, more);
    far_say(&world, &far, answer);
}

void play_connect(struct websocket_options options)
{
    play_begin(options);
    play_accept("");
    client_world_until(&world, play_has_opened, NULL);
    assert_int_equal(seen.opened, 1);
}

/* A frame of the server: not masked. */
void play_add_frame(struct buf *out, unsigned char first, struct slice payload)
{
    unsigned char head[WS_HEAD_MAX];
    size_t len = ws_frame_head(head, 0, payload.len);
    head[0] = first;
    buf_add(out, (struct slice){ (const char *)head, len });
    buf_add(out, payload);
}

void play_say(unsigned char first, const char *text)
{
    struct buf frame = { 0 };
    play_add_frame(&frame, first, slice_of(text));
    far_send(&world, &far, buf_slice(&frame));
    buf_finish(&frame);
}

/* The client's frames, as T(text) B(..) O(pong) P(ping) X1000; each must be masked. */
void play_print(struct buf *out)
{
    static const char names[16] = {
        [1] = 'T', [2] = 'B', [8] = 'X', [9] = 'P', [10] = 'O'
    };
    struct cursor cursor = cursor_over(buf_slice(&far.got));
    buf_clear(out);
    while (cursor_left(&cursor)) {
        unsigned first = (unsigned)cursor_number(&cursor, 1);
        unsigned second = (unsigned)cursor_number(&cursor, 1);
        uint64_t len = second & 0x7F;
        if (len >= 126)
            len = cursor_number(&cursor, len == 126 ? 2 : 8);
        struct slice mask = cursor_bytes(&cursor, 4);
        struct slice payload = cursor_bytes(&cursor, len);
        if (cursor.failed)
            return;
        assert_true(second & 0x80);
        buf_add_char(out, names[first & 15]);
        if (names[first & 15] == 'X' && len >= 2) {
            unsigned char high = (unsigned char)(payload.ptr[0] ^ mask.ptr[0]);
            unsigned char low = (unsigned char)(payload.ptr[1] ^ mask.ptr[1]);
            buf_print(out, "%d", high << 8 | low);
        }
        buf_add_char(out, '(');
        for (size_t i = names[first & 15] == 'X' ? 2 : 0; i < payload.len; i++)
            buf_add_char(out, (char)(payload.ptr[i] ^ mask.ptr[i % 4]));
        buf_add_char(out, ')');
    }
}

static bool has_said(void *owner)
{
    struct buf said = { 0 };
    far_read(&far);
    play_print(&said);
    bool same = slice_is(buf_slice(&said), owner);
    buf_finish(&said);
    return same || far.ended;
}

void play_expect_said(char *text)
{
    struct buf said = { 0 };
    client_world_until(&world, has_said, text);
    play_print(&said);
    if (!slice_is(buf_slice(&said), text))
        fail_msg("not '%s' but '%.*s'", text, SLICE_ARG(buf_slice(&said)));
    buf_finish(&said);
}

void play_expect_heard(char *text)
{
    client_world_until(&world, has_heard, text);
    if (!slice_is(buf_slice(&seen.heard), text))
        fail_msg("not '%s' but '%.*s', %s", text, SLICE_ARG(buf_slice(&seen.heard)),
                 seen.why);
}

void play_expect_end(enum err error, const char *why)
{
    client_world_until(&world, has_closed, NULL);
    if (seen.error != error || !strstr(seen.why, why))
        fail_msg("not '%s' but '%s': %s", why, errors[seen.error].text, seen.why);
}
