/* workload_sockets.c - the Socket.IO connections of controllers.
 *
 * A notice goes to the controllers whose runner now has that run. Messages in which a
 * controller names its run are ignored. */
#include "supervisor/runners/workload_sockets.h"

#include "base/mem.h"
#include "net/http/ws.h"
#include "net/socket_packet.h"

enum {
    PING_MS = 25 * 1000,
    PONG_TIMEOUT_MS = 20 * 1000,
    UNSENT_MAX = 64 * 1024,
    MESSAGE_MAX = 1000000, /* bytes; controllers are informed of it */
    SOCKETS_MAX = 4,       /* per runner: a controller has one, and perhaps broken ones */
};

static const char space[] = "/workload";

struct workload_sockets {
    struct loop *loop;
    struct runner_shared *shared;
    struct list all; // workload_socket::link
    struct timer timer;
    uint32_t kind;
};

struct workload_socket {
    struct ws *ws;
    char runner[RUNNER_ID_MAX];
    bool inside;      /* the namespace was granted */
    struct list link; // workload_sockets::all
};

static void send(struct workload_socket *socket, struct buf *text)
{
    struct bytes *frame = ws_frame(buf_slice(text), false);
    ws_send(socket->ws, &frame, 1);
    bytes_unref(frame);
    buf_finish(text);
    if (ws_unsent(socket->ws) > UNSENT_MAX && !ws_closing(socket->ws))
        ws_cut(socket->ws, 1008, "nothing is read");
}

static void on_packet(struct workload_socket *socket, const struct socket_packet *packet)
{
    struct buf text = { 0 };
    switch (packet->kind) {
    case SOCKET_CONNECT:
        if (!slice_is(packet->space, space)) {
            ws_close(socket->ws, 1008, "no such namespace");
            break;
        }
        socket->inside = true;
        socket_packet_add_granted(&text, space);
        send(socket, &text);
        break;
    case SOCKET_PING:
        socket_packet_add_pong(&text, packet->data);
        send(socket, &text);
        break;
    case SOCKET_CLOSE:
    case SOCKET_DISCONNECT: ws_close(socket->ws, 1000, ""); break;
    case SOCKET_OPEN:
    case SOCKET_REFUSED:
    case SOCKET_PONG:
    case SOCKET_EVENT: /* run:start and run:stop: the token identifies the run */
    case SOCKET_IGNORED: break;
    }
}

static void on_message(struct ws *ws, struct slice text)
{
    struct socket_packet packet;
    if (ws_closing(ws))
        return;
    if (socket_packet_read(text, &packet))
        ws_close(ws, 1002, "not a packet of Engine.IO 4 and Socket.IO 5");
    else
        on_packet(ws_owner(ws), &packet);
}

static void on_drained(struct ws *ws)
{
    (void)ws;
}

static void on_closed(struct ws *ws)
{
    struct workload_socket *socket = ws_owner(ws);
    list_remove(&socket->link);
    free(socket);
}

static const struct ws_ops ops = { .on_message = on_message,
                                   .on_drained = on_drained,
                                   .on_closed = on_closed };

static unsigned count(const struct workload_sockets *sockets, const struct runner *runner)
{
    unsigned found = 0;
    list_each (link, &sockets->all) {
        const struct workload_socket *socket =
            container_of(link, struct workload_socket, link);
        found += strcmp(socket->runner, runner->id) == 0;
    }
    return found;
}

void workload_sockets_accept(struct workload_sockets *sockets, struct exchange *x,
                             const struct runner *runner)
{
    if (count(sockets, runner) >= SOCKETS_MAX) {
        http_reply(x, 429, SLICE("content-type: application/json\r\n"),
                   SLICE("{\"error\":\"This run has too many sockets open\"}"));
        return;
    }
    struct workload_socket *socket = mem_new(struct workload_socket);
    struct buf text = { 0 };
    memcpy(socket->runner, runner->id, sizeof(socket->runner));
    socket->ws = ws_accept(x, NULL, &ops, socket);
    if (!socket->ws) {
        free(socket);
        return;
    }
    list_append(&sockets->all, &socket->link);
    ws_trust(socket->ws);
    socket_packet_add_open(&text, PING_MS, PONG_TIMEOUT_MS, MESSAGE_MAX);
    send(socket, &text);
    if (!sockets->timer.place)
        loop_set_timer(sockets->loop, &sockets->timer, sockets->kind, PING_MS / 2);
}

static bool has_run(const struct workload_sockets *sockets,
                    const struct workload_socket *socket, struct slice run)
{
    const struct runner *runner = runner_find(sockets->shared, slice_of(socket->runner));
    return runner && runner->has_run && slice_is(run, runner->message.run);
}

static void add_notice(struct buf *out, struct slice run)
{
    socket_packet_begin_event(out, space, "run:notify");
    buf_add_text(out, "{\"version\":\"1\",\"run\":{\"friendlyId\":");
    buf_add_json(out, run);
    buf_add_text(out, "}}");
    socket_packet_end_event(out);
}

void workload_sockets_notify(struct workload_sockets *sockets, struct slice run)
{
    list_each (link, &sockets->all) {
        struct workload_socket *socket = container_of(link, struct workload_socket, link);
        struct buf text = { 0 };
        if (!socket->inside || ws_closing(socket->ws) || !has_run(sockets, socket, run))
            continue;
        add_notice(&text, run);
        send(socket, &text);
    }
}

/* In Engine.IO 4 the server sends the pings, and clients wait for them. */
static void on_time(struct timer *timer)
{
    struct workload_sockets *sockets = container_of(timer, struct workload_sockets, timer);
    list_each (link, &sockets->all) {
        struct workload_socket *socket = container_of(link, struct workload_socket, link);
        struct buf text = { 0 };
        if (ws_closing(socket->ws))
            continue;
        buf_add_char(&text, '2');
        send(socket, &text);
    }
    if (!list_empty(&sockets->all))
        loop_set_timer(sockets->loop, timer, sockets->kind, PING_MS / 2);
}

struct workload_sockets *workload_sockets_create(struct loop *loop,
                                                 struct runner_shared *shared)
{
    struct workload_sockets *sockets = mem_new(struct workload_sockets);
    sockets->loop = loop;
    sockets->shared = shared;
    list_init(&sockets->all);
    sockets->kind = timers_kind(loop_timers(loop), on_time);
    return sockets;
}

void workload_sockets_destroy(struct workload_sockets *sockets)
{
    timers_clear(loop_timers(sockets->loop), &sockets->timer);
    free(sockets);
}
