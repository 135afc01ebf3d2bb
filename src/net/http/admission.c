/* admission.c - turns accepted sockets into connections, within the limit of connections.
 *
 *   connections: 0 ──────────────────── 7/8 ──────────── max
 *                 all are accepted       each new one     503 and close (listener.c)
 *                                        closes another */
#include "net/http/admission.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/metrics.h"
#include "net/http/http_conn.h"
#include "net/http/secure.h"
#include "net/http/server_state.h"
#include "net/http/ws_conn.h"

/* Admin connections accepted above the limit, so that an operator can investigate. The
 * limit may have been reached, or lowered below the number of open connections. */
enum { ADMIN_CONNECTIONS = 64 };

/* Above 7/8 of the limit, closes another connection for each new one: the oldest that never
 * sent a valid credential, otherwise the one idle for the longest time. So a client that
 * floods the gateway closes its own connections. */
static void make_room(struct server *server, const struct connection *newest)
{
    unsigned most = server->options.connections_max;
    if (server->open_count <= most - most / 8)
        return;
    bool alone = list_empty(&server->unauthenticated) ||
                 server->unauthenticated.next == &newest->spare;
    struct list *from = alone ? &server->idle : &server->unauthenticated;
    if (list_empty(from))
        return;
    server_warn(server, "closing idle connections",
                "7/8 of the connection limit are in use");
    metric_add(M_CONNECTIONS_EVICTED, 1);
    connection_close(container_of(from->next, struct connection, spare));
}

static void note_listener(struct http_conn *conn, const struct listener *listener)
{
    struct server *server = listener->server;
    conn->c.admin = listener->options.admin;
    conn->header_due = listener->options.proxied;
    conn->tls_due = listener->options.secure && conn->header_due;
    if (listener->options.secure && !conn->tls_due)
        secure_begin(&conn->c);
    server->admin_count += conn->c.admin;
    if (conn->c.admin)
        connection_trust(&conn->c);
    else
        list_append(&server->unauthenticated, &conn->c.spare);
}

size_t admission_conn_size(void)
{
    size_t http = sizeof(struct http_conn), ws = sizeof(struct ws);
    return http > ws ? http : ws;
}

struct connection *admission_adopt(struct listener *listener, int fd,
                                   const struct address *peer)
{
    struct server *server = listener->server;
    size_t session = server->options.on_session_end ? sizeof(struct http_session *) : 0;
    int on = 1;
    if (listener->options.handed && !listener->path) /* it may be older than the listener */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct http_conn *conn = http_conn_create(server, fd, server->conn_size + session);
    if (!conn)
        return NULL;
    list_append(&server->connections, &conn->c.link);
    server->connection_count++;
    server->open_count++;
    note_listener(conn, listener);
    http_conn_begin(conn, *peer);
    make_room(server, &conn->c);
    return &conn->c;
}

bool admission_is_full(const struct listener *listener)
{
    const struct server *server = listener->server;
    bool full = server->open_count >= server->options.connections_max;
    return full && (!listener->options.admin || server->admin_count >= ADMIN_CONNECTIONS);
}
