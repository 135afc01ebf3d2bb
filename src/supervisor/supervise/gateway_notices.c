/* gateway_notices.c - keeps one Socket.IO connection to the gateway open. */
#include "supervisor/supervise/gateway_notices.h"

#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/socket_packet.h"

enum { PAUSE_MS = 500, PAUSE_MAX_MS = 10 * 1000 };

static const char space[] = "/worker";

struct gateway_notices {
    struct loop *loop;
    struct gateway_notices_options options;
    const struct gateway_notices_events *events;
    void *owner;
    struct websocket *ws; /* NULL: not open */
    bool inside;          /* the gateway has granted the namespace */
    int64_t pause_ms;
    struct timer timer;
    uint32_t kind;
    void (*closed)(void *owner); /* NULL: gateway_notices_close was not called */
};

static void send(struct gateway_notices *notices, struct buf *text)
{
    if (notices->ws)
        websocket_send(notices->ws, buf_slice(text), false);
    buf_finish(text);
}

static void send_request(struct gateway_notices *notices, const char *name, const char *run)
{
    struct buf text = { 0 };
    if (!notices->inside)
        return;
    socket_packet_begin_event(&text, space, name);
    buf_add_text(&text, "{\"version\":\"1\",\"runFriendlyIds\":[");
    buf_add_json(&text, slice_of(run));
    buf_add_text(&text, "]}");
    socket_packet_end_event(&text);
    send(notices, &text);
}

void gateway_notices_follow(struct gateway_notices *notices, const char *run)
{
    send_request(notices, "run:subscribe", run);
}

void gateway_notices_leave(struct gateway_notices *notices, const char *run)
{
    send_request(notices, "run:unsubscribe", run);
}

static void on_open(struct websocket *ws)
{
    struct gateway_notices *notices = websocket_owner(ws);
    struct buf text = { 0 };
    buf_print(&text, "40%s,", space);
    send(notices, &text);
}

/* Reads {"run":{"friendlyId":"run_…"}}. A run id has no escapes. */
static void take_notice(struct gateway_notices *notices, struct slice body)
{
    if (scan_type(body) != SCAN_OBJECT)
        return;
    struct slice run = scan_member(body, "run");
    struct slice id = scan_type(run) == SCAN_OBJECT ? scan_member(run, "friendlyId")
                                                    : (struct slice){ 0 };
    if (scan_type(id) != SCAN_STRING || memchr(id.ptr, '\\', id.len))
        return;
    id = scan_unquoted(id);
    if (id.len)
        notices->events->on_notice(notices->owner, id);
}

static void on_packet(struct gateway_notices *notices, const struct socket_packet *packet)
{
    struct buf text = { 0 };
    bool is_here = slice_is(packet->space, space);
    switch (packet->kind) {
    case SOCKET_PING:
        socket_packet_add_pong(&text, packet->data);
        send(notices, &text);
        break;
    case SOCKET_CONNECT:
        if (!is_here || notices->inside)
            break;
        notices->inside = true;
        notices->pause_ms = PAUSE_MS;
        notices->events->on_open(notices->owner);
        break;
    case SOCKET_EVENT:
        if (is_here && slice_is(packet->name, "run:notify"))
            take_notice(notices, packet->body);
        break;
    case SOCKET_CLOSE:
    case SOCKET_DISCONNECT:
    case SOCKET_REFUSED: websocket_close(notices->ws, 1000, ""); break;
    case SOCKET_OPEN:
    case SOCKET_PONG:
    case SOCKET_IGNORED: break;
    }
}

static void on_message(struct websocket *ws, struct slice message, bool is_binary)
{
    struct socket_packet packet;
    if (is_binary || socket_packet_read(message, &packet))
        websocket_close(ws, 1002, "not a packet");
    else
        on_packet(websocket_owner(ws), &packet);
}

static void destroy(struct gateway_notices *notices)
{
    void (*closed)(void *owner) = notices->closed;
    void *owner = notices->owner;
    timers_clear(loop_timers(notices->loop), &notices->timer);
    free(notices);
    closed(owner);
}

static void try_again(struct gateway_notices *notices)
{
    loop_set_timer(notices->loop, &notices->timer, notices->kind, notices->pause_ms);
    notices->pause_ms *= 2;
    if (notices->pause_ms > PAUSE_MAX_MS)
        notices->pause_ms = PAUSE_MAX_MS;
}

static void on_closed(struct websocket *ws, const struct websocket_end *end)
{
    struct gateway_notices *notices = websocket_owner(ws);
    log_debug("notice socket closed", "reason", end->why ? end->why : "", NULL);
    notices->ws = NULL;
    notices->inside = false;
    if (notices->closed)
        destroy(notices);
    else
        try_again(notices);
}

static const struct websocket_ops ops = { on_open, on_message, on_closed };

static void open_now(struct gateway_notices *notices)
{
    struct failure why = { 0 };
    struct http_header credential = { SLICE("authorization"), notices->options.credential };
    struct websocket_options options = {
        .url = notices->options.url,
        .trust = notices->options.trust,
        .target = SLICE("/socket.io/?EIO=4&transport=websocket"),
        .headers = &credential,
        .header_count = 1,
    };
    if (!websocket_open(notices->loop, &options, &ops, notices, &notices->ws, &why))
        return;
    log_warn("cannot open the notice socket; retrying", "reason", why.text, NULL);
    notices->ws = NULL;
    try_again(notices);
}

static void on_time(struct timer *timer)
{
    struct gateway_notices *notices = container_of(timer, struct gateway_notices, timer);
    if (notices->closed)
        destroy(notices);
    else
        open_now(notices);
}

struct gateway_notices *
gateway_notices_create(struct loop *loop, const struct gateway_notices_options *options,
                       const struct gateway_notices_events *events, void *owner)
{
    struct gateway_notices *notices = mem_new(struct gateway_notices);
    *notices = (struct gateway_notices){ .loop = loop,
                                         .options = *options,
                                         .events = events,
                                         .owner = owner,
                                         .pause_ms = PAUSE_MS };
    notices->kind = timers_kind(loop_timers(loop), on_time);
    open_now(notices);
    return notices;
}

void gateway_notices_close(struct gateway_notices *notices, void (*closed)(void *owner))
{
    notices->closed = closed;
    if (notices->ws)
        websocket_cut(notices->ws);
    else
        loop_set_timer(notices->loop, &notices->timer, notices->kind, 0);
}
