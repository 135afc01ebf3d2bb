/* ws_peer.c - masks the frames of the client, and shows those of the server as text. */
#include "tests/support/world/ws_peer.h"

#include "tests/support/world/unit.h"

#include "base/cursor.h"

void ws_peer_open(struct net_world *world, struct peer *peer, const char *path)
{
    struct buf request = { 0 };
    buf_print(&request,
              "GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
              "\r\n",
              path);
    peer_open(world, peer);
    peer_send(world, peer, buf_slice(&request));
    peer_await(world, peer, "\r\n\r\n");
    assert_true(peer_has(peer, "HTTP/1.1 101 "));
    assert_true(peer_has(peer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")); /* RFC 6455 §1.3 */
    buf_clear(&peer->got);
    buf_finish(&request);
}

static void add_number(struct buf *out, uint64_t number, unsigned width)
{
    while (width--)
        buf_add_char(out, (char)(number >> 8 * width));
}

void ws_peer_add_frame(struct buf *out, unsigned char first, struct slice payload)
{
    static const unsigned char mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
    buf_add_char(out, (char)first);
    if (payload.len < 126) {
        buf_add_char(out, (char)(0x80 | payload.len));
    } else {
        unsigned width = payload.len <= UINT16_MAX ? 2 : 8;
        buf_add_char(out, (char)(width == 2 ? 0xFE : 0xFF));
        add_number(out, payload.len, width);
    }
    buf_add(out, (struct slice){ (const char *)mask, sizeof(mask) });
    for (size_t i = 0; i < payload.len; i++)
        buf_add_char(out, (char)(payload.ptr[i] ^ mask[i % 4]));
}

static void print_frame(struct buf *out, unsigned first, struct slice payload)
{
    static const char names[16] = {
        [1] = 'T', [2] = 'B', [8] = 'X', [9] = 'P', [10] = 'O'
    };
    char name = names[first & 15];
    if (out->len)
        buf_add_char(out, ' ');
    buf_add_char(out, name && (first & 0xF0) == 0x80 ? name : '?');
    struct cursor cursor = cursor_over(payload);
    if (name == 'X' && payload.len)
        buf_print(out, "%d", (int)cursor_number(&cursor, 2));
    if (name == 'X')
        return;
    buf_add_char(out, '(');
    for (size_t i = 0; i < payload.len; i++)
        buf_add_char(out, payload.ptr[i] ? payload.ptr[i] : '0');
    buf_add_char(out, ')');
}

void ws_peer_print(struct peer *peer, struct buf *out)
{
    peer_read(peer);
    struct cursor cursor = cursor_over(buf_slice(&peer->got));
    buf_clear(out);
    while (cursor_left(&cursor)) {
        unsigned first = (unsigned)cursor_number(&cursor, 1);
        uint64_t len = cursor_number(&cursor, 1);
        if (len >= 126)
            len = cursor_number(&cursor, len == 126 ? 2 : 8);
        struct slice payload = cursor_bytes(&cursor, len);
        if (cursor.failed)
            return;
        print_frame(out, first, payload);
    }
}

bool ws_peer_said(struct peer *peer, const char *text)
{
    struct buf said = { 0 };
    ws_peer_print(peer, &said);
    bool same = slice_is(buf_slice(&said), text);
    buf_finish(&said);
    return same;
}

struct wait {
    struct peer *peer;
    const char *text;
};

static bool has_said(void *owner)
{
    struct wait *wait = owner;
    return ws_peer_said(wait->peer, wait->text) || wait->peer->ended;
}

bool ws_peer_hears(struct net_world *world, struct peer *peer, const char *text)
{
    struct wait wait = { peer, text };
    return net_world_waits(world, has_said, &wait) && ws_peer_said(peer, text);
}

void ws_peer_await(struct net_world *world, struct peer *peer, const char *text)
{
    struct buf said = { 0 };
    bool heard = ws_peer_hears(world, peer, text);
    ws_peer_print(peer, &said);
    if (!heard)
        fail_msg("not '%s' but '%.*s'%s", text, SLICE_ARG(buf_slice(&said)),
                 peer->ended ? ", ended" : "");
    buf_finish(&said);
}

void ws_peer_clear(struct peer *peer)
{
    buf_clear(&peer->got);
}
