/* tunnel.c - passes bytes between a connection and the owner of its tunnel. */
#include "net/http/tunnel.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/metrics.h"
#include "net/http/http_conn.h"
#include "net/http/http_reply.h"
#include "net/http/server_state.h"

enum { UNSENT_MAX = 64 * 1024, PROBE_AFTER_S = 60, PROBE_EVERY_S = 10, PROBES = 6 };

struct tunnel {
    struct connection c;
    const struct tunnel_ops *ops;
    void *owner;
};

static const struct connection_ops connection_ops;

static struct tunnel *of(struct connection *c)
{
    return container_of(c, struct tunnel, c);
}

void *tunnel_owner(const struct tunnel *tunnel)
{
    return tunnel->owner;
}

static bool keeps_up(const struct tunnel *tunnel)
{
    return outbox_unsent(&tunnel->c.outbox) <= UNSENT_MAX;
}

bool tunnel_send(struct tunnel *tunnel, struct slice bytes)
{
    const struct piece piece = { bytes, NULL };
    connection_send(&tunnel->c, &piece, 1);
    return keeps_up(tunnel);
}

void tunnel_pause(struct tunnel *tunnel, bool paused)
{
    struct connection *c = &tunnel->c;
    if (c->closed || c->lingering)
        return;
    connection_pause(c, paused);
    if (!paused && c->pending)
        connection_defer(c);
}

void tunnel_close(struct tunnel *tunnel)
{
    struct connection *c = &tunnel->c;
    if (c->closed || c->lingering)
        return;
    connection_set_deadline(c, c->server->options.closing_timeout_ms);
    connection_linger(c);
}

/* ---- events ---- */

static void on_bytes(struct connection *c, struct slice bytes)
{
    if (c->paused || c->pending)
        connection_keep(c, bytes);
    else
        of(c)->ops->on_bytes(of(c), bytes);
}

static void on_turn(struct connection *c)
{
    if (c->paused || c->lingering)
        return;
    struct buf pending = connection_take_kept(c);
    if (pending.len)
        of(c)->ops->on_bytes(of(c), buf_slice(&pending));
    buf_finish(&pending);
}

static void on_drained(struct connection *c)
{
    if (!c->lingering)
        of(c)->ops->on_drained(of(c));
}

static void ignore(struct connection *c)
{
    (void)c;
}

static void on_closed(struct connection *c)
{
    metric_add(M_WS_CONNECTIONS, -1);
    of(c)->ops->on_closed(of(c));
    server_forget(c);
}

static const struct connection_ops connection_ops = {
    .on_bytes = on_bytes,
    .on_left = connection_close,
    .on_drained = on_drained,
    .on_unsent = ignore,
    .on_deadline = connection_close,
    .on_turn = on_turn,
    .on_closed = on_closed,
};

/* ---- the switch ---- */

static void send_head(struct connection *c, struct slice headers)
{
    struct buf *out = &c->server->scratch;
    buf_clear(out);
    buf_add_text(out, "HTTP/1.1 101 Switching Protocols\r\n");
    buf_add(out, headers);
    buf_add_text(out, "\r\n");
    const struct piece piece = { buf_slice(out), NULL };
    connection_send(c, &piece, 1);
}

/* A peer whose machine is gone says nothing: probes end its connection. */
static void probe(int fd)
{
    int on = 1, after = PROBE_AFTER_S, every = PROBE_EVERY_S, count = PROBES;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof(after));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

struct tunnel *tunnel_accept(struct exchange *x, struct slice headers,
                             const struct tunnel_ops *ops, void *owner)
{
    struct request *request = container_of(x, struct request, x);
    assert(sizeof(struct tunnel) <= request->conn->c.server->conn_size);
    http_reply_count(x, 101);
    struct connection *c = http_conn_hand_over(request);
    struct tunnel *tunnel = of(c);
    tunnel->ops = ops;
    tunnel->owner = owner;
    c->ops = &connection_ops;
    metric_add(M_WS_CONNECTIONS, 1);
    connection_clear_deadline(c);
    probe(c->watch.fd);
    send_head(c, headers);
    if (c->pending)
        connection_defer(c);
    return tunnel;
}
