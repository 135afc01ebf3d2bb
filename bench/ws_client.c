/* ws_client.c - runs.v1 over WebSocket, plain or wrapped in a peer's protocol.
 *
 *   connected ──► upgrade request ──► 101 ──► {"op":"sub"}, or the peer's hello
 *   input ──────► frames parsed in place ───► on_message
 *                    └─ of a peer: its packets ┘
 *
 * The nonce of the handshake and the mask are constants: both protect against attacks that
 * cannot happen between a bench and the server it loads (RFC 6455 §10.3). */
#include "ws_client.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "peer.h"

enum {
    SEND_MAX = 1024, /* bytes of one message that we send */
    OP_TEXT = 1,
    OP_BINARY = 2,
    OP_CLOSE = 8,
    OP_PING = 9,
    OP_PONG = 10,
};

/* The nonce and its accept value are the example in RFC 6455 §1.3. */
static const char NONCE[] = "dGhlIHNhbXBsZSBub25jZQ==";
static const char ACCEPT[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
static const unsigned char MASK[4] = { 0x5a, 0x13, 0xc7, 0x86 };

struct frame {
    unsigned opcode;
    bool final;
    struct slice payload;
};

/* Asks the kernel to acknowledge data when the client reads it (tcp(7), TCP_QUICKACK).
 * After a client has sent something, here a pong, its kernel delays acknowledgements until
 * a later frame makes it send one. That happens inside the server's call, so the server
 * would pay for it. The kernel does this again after each send, so the option is set after
 * each frame. */
static void acknowledge_reads(const struct client *client)
{
    int yes = 1;
    setsockopt(client->source.fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes));
}

static void send_frame(struct client *client, unsigned opcode, struct slice payload)
{
    char frame[SEND_MAX + 8];
    size_t len = 0;
    if (payload.len > SEND_MAX)
        fatal("a message of %zu bytes is too long for the bench", payload.len);
    frame[len++] = (char)(0x80 | opcode);
    if (payload.len < 126) {
        frame[len++] = (char)(0x80 | payload.len);
    } else {
        frame[len++] = (char)(0x80 | 126);
        frame[len++] = (char)(payload.len >> 8);
        frame[len++] = (char)payload.len;
    }
    memcpy(frame + len, MASK, sizeof(MASK));
    len += sizeof(MASK);
    for (size_t i = 0; i < payload.len; i++)
        frame[len++] = (char)(payload.ptr[i] ^ MASK[i % sizeof(MASK)]);
    client_send(client, (struct slice){ frame, len });
    acknowledge_reads(client);
}

void ws_client_send(struct client *client, struct slice text)
{
    send_frame(client, OP_TEXT, text);
}

/* Sends a peer's packet; "": nothing. */
static void send_word(struct client *client, struct slice word)
{
    if (word.len)
        send_frame(client, client->group->peer->binary ? OP_BINARY : OP_TEXT, word);
}

void ws_client_publish(struct client *client, struct slice message)
{
    struct buf word = { 0 };
    client->group->peer->publish(message, &word);
    send_word(client, buf_slice(&word));
    buf_finish(&word);
}

static void leave(struct client *client)
{
    send_frame(client, OP_CLOSE, (struct slice){ "\x03\xe8", 2 });
}

static void send_upgrade(struct client *client)
{
    const struct options *options = client->group->options;
    const struct peer *peer = client->group->peer;
    struct buf head = { 0 };
    buf_print(&head,
              "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: %s\r\n",
              peer ? peer->path : "/realtime/v1/ws", options->host, NONCE);
    if (!peer) /* only a gateway gets the key */
        buf_print(&head,
                  "Sec-WebSocket-Protocol: runs.v1.%s\r\nAuthorization: Bearer %s\r\n",
                  options->encoding, options->key);
    else if (peer->subprotocol[0])
        buf_print(&head, "Sec-WebSocket-Protocol: %s\r\n", peer->subprotocol);
    buf_add_text(&head, "\r\n");
    client_send(client, buf_slice(&head));
    buf_finish(&head);
}

static void subscribe(struct client *client)
{
    const struct wish *wish = &client->wish;
    char message[240], from[80] = "";
    const char *before = "\"", *after = "\"";
    if (strcmp(wish->name, "tags") == 0) {
        before = "[\"";
        after = "\"]";
    } else if (strcmp(wish->name, "all") == 0) {
        before = "true";
        after = "";
    }
    if (client->epoch[0])
        snprintf(from, sizeof(from), ",\"from\":[\"%s\",%" PRIu64 ",%" PRIu64 "]",
                 client->epoch, client->seq, client->base);
    snprintf(message, sizeof(message), "{\"op\":\"sub\",\"id\":1,\"%s\":%s%s%s%s}",
             wish->name, before, *after ? wish->value : "", after, from);
    ws_client_send(client, slice_of(message));
}

/* Reports what a gateway would send now: no rows before the first change. */
static void say_subscribed(struct client *client, int64_t received_ns)
{
    client->group->handler->on_message(client, SLICE("{\"op\":\"ok\",\"count\":0}"),
                                       received_ns);
}

/* Takes complete packets and returns their length. */
static size_t take_words(struct client *client, struct slice in, int64_t received_ns)
{
    struct slice rest = in;
    size_t used = 1;
    while (rest.len && used) {
        struct peer_word word = { 0 };
        used = client->group->peer->take(rest, &word);
        rest = slice_from(rest, used);
        send_word(client, word.reply);
        if (word.subscribed)
            say_subscribed(client, received_ns);
        if (word.message.ptr)
            client->group->handler->on_message(client, word.message, received_ns);
    }
    return in.len - rest.len;
}

/* A packet may span frames: an incomplete one waits in client->line. */
static void take_payload(struct client *client, struct slice payload, int64_t received_ns)
{
    struct buf *line = &client->line;
    if (line->len == 0) {
        size_t used = take_words(client, payload, received_ns);
        if (used < payload.len)
            buf_add(line, slice_from(payload, used));
        return;
    }
    buf_add(line, payload);
    buf_drop(line, take_words(client, buf_slice(line), received_ns));
}

/* Returns the bytes used; 0 while the response is incomplete, or if it was a refusal. */
static size_t take_upgrade(struct client *client, struct slice in, int64_t received_ns)
{
    const char *end = memmem(in.ptr, in.len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    struct slice head = { in.ptr, (size_t)(end - in.ptr) };
    if (!slice_starts(head, "HTTP/1.1 101 ") ||
        !memmem(head.ptr, head.len, ACCEPT, sizeof(ACCEPT) - 1)) {
        struct slice line;
        slice_split(&head, '\r', &line);
        client_fail(client, ABNORMAL, line);
        return 0;
    }
    client->state = CLIENT_OPEN;
    client->group->opened++;
    const struct peer *peer = client->group->peer;
    if (!peer)
        subscribe(client);
    else if (peer->subscribes_itself)
        say_subscribed(client, received_ns);
    else
        send_word(client, peer->hello);
    return head.len + 4;
}

/* Returns the length of the frame, or 0 while it is incomplete. */
static size_t parse_frame(struct slice in, struct frame *frame)
{
    struct cursor cursor = cursor_over(in);
    unsigned first = (unsigned)cursor_number(&cursor, 1);
    uint64_t len = cursor_number(&cursor, 1);
    if (len == 126)
        len = cursor_number(&cursor, 2);
    else if (len == 127)
        len = cursor_number(&cursor, 8);
    frame->opcode = first & 15;
    frame->final = first & 0x80;
    frame->payload = cursor_bytes(&cursor, len);
    return cursor.failed ? 0 : in.len - cursor_left(&cursor);
}

static void take_frame(struct client *client, const struct frame *frame,
                       int64_t received_ns)
{
    struct slice payload = frame->payload;
    unsigned code = ABNORMAL;
    switch (frame->final ? frame->opcode : 0) {
    case OP_TEXT:
    case OP_BINARY:
        if (client->group->peer)
            take_payload(client, payload, received_ns);
        else
            client->group->handler->on_message(client, payload, received_ns);
        return;
    case OP_PING: send_frame(client, OP_PONG, payload); return;
    case OP_PONG: return;
    case OP_CLOSE:
        if (payload.len >= 2) {
            code = (unsigned)(unsigned char)payload.ptr[0] << 8 |
                   (unsigned char)payload.ptr[1];
            payload = slice_from(payload, 2);
        }
        client_fail(client, code, payload);
        return;
    default: client_fail(client, ABNORMAL, SLICE("a fragmented or unknown frame"));
    }
}

static size_t take(struct client *client, struct slice in, int64_t received_ns)
{
    struct frame frame;
    if (client->state == CLIENT_BEGINNING)
        return take_upgrade(client, in, received_ns);
    size_t used = parse_frame(in, &frame);
    if (used)
        take_frame(client, &frame, received_ns);
    return used;
}

const struct transport ws_transport = { "ws", send_upgrade, take, leave };
