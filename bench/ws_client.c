/* ws_client.c - thousands of WebSocket connections that mostly listen.
 *
 *   connect ──► upgrade request ──► 101 ──► on_open
 *   readable ─► one recv into group->input ─► frames parsed in place ─► on_message
 *                                               └─ what is incomplete goes to ws->rest
 *
 * The nonce of the handshake and the mask are constants: both protect against what cannot
 * happen between a bench and the server it loads (RFC 6455 §10.3). */
#include "ws_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/list.h"
#include "base/mem.h"

enum {
    INPUT_SIZE = 1 << 18,
    SEND_MAX = 1024, /* bytes of one message of ours */
    CLIENTS_AN_ADDRESS = 5000,
    OP_TEXT = 1,
    OP_BINARY = 2,
    OP_CLOSE = 8,
    OP_PING = 9,
    OP_PONG = 10,
    ABNORMAL = 1006,
};

/* The nonce and its answer are the example of RFC 6455 §1.3. */
static const char NONCE[] = "dGhlIHNhbXBsZSBub25jZQ==";
static const char ACCEPT[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
static const unsigned char MASK[4] = { 0x5a, 0x13, 0xc7, 0x86 };

struct frame {
    unsigned opcode;
    bool final;
    struct slice payload;
};

void ws_group_init(struct ws_group *group, struct poller *poller,
                   const struct options *options, const struct ws_handler *handler)
{
    *group = (struct ws_group){ .poller = poller, .options = options, .handler = handler };
    group->input = mem_alloc(INPUT_SIZE);
    /* Another process, another net: ports in TIME_WAIT are not met again. */
    group->source_net = 1 + (unsigned)getpid() % 0xfffe;
}

void ws_group_finish(struct ws_group *group)
{
    free(group->input);
}

static void close_with(struct ws_client *ws, unsigned code, struct slice reason)
{
    poller_close(&ws->source);
    ws->state = WS_CLOSED;
    ws->group->handler->on_closed(ws, code, reason);
    buf_finish(&ws->rest);
    ws->rest = (struct buf){ 0 };
}

static void send_frame(struct ws_client *ws, unsigned opcode, struct slice payload)
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
    /* What we send is small and rare: a full socket buffer means the server stopped
     * reading, which the next read or the server's own deadline reports. */
    (void)!send(ws->source.fd, frame, len, MSG_NOSIGNAL);
}

void ws_client_send(struct ws_client *ws, struct slice text)
{
    send_frame(ws, OP_TEXT, text);
}

void ws_client_close(struct ws_client *ws)
{
    if (ws->state == WS_OPEN)
        send_frame(ws, OP_CLOSE, (struct slice){ "\x03\xe8", 2 });
    poller_close(&ws->source);
    ws->state = WS_CLOSED;
    buf_finish(&ws->rest);
    ws->rest = (struct buf){ 0 };
}

static void send_upgrade(struct ws_client *ws)
{
    const struct options *options = ws->group->options;
    struct buf head = { 0 };
    buf_print(
        &head,
        "GET /realtime/v1/ws HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
        "Sec-WebSocket-Protocol: runs.v1.json\r\nAuthorization: Bearer %s\r\n\r\n",
        options->host, NONCE, options->key);
    (void)!send(ws->source.fd, head.ptr, head.len, MSG_NOSIGNAL);
    buf_finish(&head);
    ws->state = WS_UPGRADING;
    poller_change(ws->group->poller, &ws->source, EPOLLIN);
}

/* Returns the bytes used; 0 while the reply is not complete or when it was a refusal. */
static size_t take_upgrade(struct ws_client *ws, struct slice in)
{
    const char *end = memmem(in.ptr, in.len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    struct slice head = { in.ptr, (size_t)(end - in.ptr) };
    if (!slice_starts(head, "HTTP/1.1 101 ") ||
        !memmem(head.ptr, head.len, ACCEPT, sizeof(ACCEPT) - 1)) {
        struct slice line;
        slice_split(&head, '\r', &line);
        close_with(ws, ABNORMAL, line);
        return 0;
    }
    ws->state = WS_OPEN;
    ws->group->handler->on_open(ws);
    return head.len + 4;
}

/* The bytes of the frame, or 0 while it is not complete. */
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

static void take_frame(struct ws_client *ws, const struct frame *frame, int64_t received_ns)
{
    struct slice payload = frame->payload;
    unsigned code = ABNORMAL;
    switch (frame->final ? frame->opcode : 0) {
    case OP_TEXT:
    case OP_BINARY: ws->group->handler->on_message(ws, payload, received_ns); return;
    case OP_PING: send_frame(ws, OP_PONG, payload); return;
    case OP_PONG: return;
    case OP_CLOSE:
        if (payload.len >= 2) {
            code = (unsigned)(unsigned char)payload.ptr[0] << 8 |
                   (unsigned char)payload.ptr[1];
            payload = slice_from(payload, 2);
        }
        close_with(ws, code, payload);
        return;
    default: close_with(ws, ABNORMAL, SLICE("a fragmented or unknown frame"));
    }
}

/* Consumes what is complete and returns the number of bytes of it. */
static size_t take_input(struct ws_client *ws, struct slice in, int64_t received_ns)
{
    struct slice rest = in;
    size_t used = 1;
    while (rest.len && used && ws->state != WS_CLOSED) {
        struct frame frame;
        if (ws->state == WS_UPGRADING) {
            used = take_upgrade(ws, rest);
        } else {
            used = parse_frame(rest, &frame);
            if (used)
                take_frame(ws, &frame, received_ns);
        }
        rest = slice_from(rest, used);
    }
    return in.len - rest.len;
}

static void read_some(struct ws_client *ws)
{
    struct ws_group *group = ws->group;
    ssize_t n = recv(ws->source.fd, group->input, INPUT_SIZE, 0);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        const char *why = n < 0 ? strerror(errno) : "the server hung up";
        close_with(ws, ABNORMAL, slice_of(why));
        return;
    }
    int64_t received_ns = now_ns();
    struct slice in = { group->input, (size_t)n };
    group->reads++;
    group->bytes += in.len;
    if (ws->rest.len == 0) {
        size_t used = take_input(ws, in, received_ns);
        if (ws->state != WS_CLOSED && used < in.len)
            buf_add(&ws->rest, slice_from(in, used));
        return;
    }
    buf_add(&ws->rest, in);
    size_t used = take_input(ws, buf_slice(&ws->rest), received_ns);
    if (ws->state == WS_CLOSED)
        return;
    buf_drop(&ws->rest, used);
    if (ws->rest.len == 0) {
        buf_finish(&ws->rest);
        ws->rest = (struct buf){ 0 };
    }
}

static void on_ready(struct source *source, uint32_t events)
{
    struct ws_client *ws = container_of(source, struct ws_client, source);
    if (ws->state == WS_CONNECTING && !(events & (EPOLLERR | EPOLLHUP)))
        send_upgrade(ws);
    else
        read_some(ws);
}

static bool is_loopback(const struct sockaddr_in *address)
{
    return ntohl(address->sin_addr.s_addr) >> 24 == 127;
}

static void bind_source(int fd, const struct ws_group *group, size_t number)
{
    int on = 1;
    uint32_t host = 1 + (uint32_t)(number / CLIENTS_AN_ADDRESS);
    struct sockaddr_in source = { .sin_family = AF_INET };
    source.sin_addr.s_addr = htonl(127U << 24 | group->source_net << 8 | host);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&source, sizeof(source)))
        fatal("cannot use a loopback address: %s", strerror(errno));
}

void ws_client_open(struct ws_client *ws, struct ws_group *group, size_t number)
{
    const struct sockaddr_in *address = &group->options->address;
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fatal("cannot open socket %zu: %s (ulimit -n)", number, strerror(errno));
    if (is_loopback(address))
        bind_source(fd, group, number);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *ws = (struct ws_client){ .group = group, .state = WS_CONNECTING };
    ws->source = (struct source){ .fd = fd, .ready = on_ready };
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
        errno != EINPROGRESS)
        fatal("cannot connect to %s: %s", group->options->host, strerror(errno));
    poller_add(group->poller, &ws->source, EPOLLOUT);
}
