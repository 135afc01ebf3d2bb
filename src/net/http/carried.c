/* carried.c - a connection without a socket for each request that another one carries. */
#include "net/http/carried.h"

#include "net/http/http_conn.h"
#include "net/http/server_state.h"

void http_carry(struct server *server, struct http_carried *carried,
                const struct http_carried_ops *ops, struct bytes *peer,
                struct slice request)
{
    size_t session = server->options.on_session_end ? sizeof(struct http_session *) : 0;
    struct http_conn *conn =
        http_conn_create_carried(server, carried, server->conn_size + session);
    *carried = (struct http_carried){ .ops = ops, .conn = &conn->c };
    conn->peer = bytes_ref(peer);
    list_append(&server->connections, &conn->c.link);
    server->connection_count++; /* without a socket, it is not among the open ones */
    connection_trust(&conn->c);
    connection_feed(&conn->c, request);
}

void http_carried_leave(struct http_carried *carried)
{
    struct connection *c = carried->conn;
    if (c->closed || c->eof)
        return;
    c->eof = c->left = true;
    c->ops->on_left(c);
}

void http_carried_close(struct http_carried *carried)
{
    connection_close(carried->conn);
}

struct http_carried *http_carried_of(const struct exchange *x)
{
    return container_of(x, struct request, x)->conn->carried;
}
