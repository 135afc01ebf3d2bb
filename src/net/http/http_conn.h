/* http_conn.h - one HTTP/1.1 connection, one request at a time; private to http.
 *
 *   idle ─► head ─► body ─► waiting for the reply ─► idle …
 *             │       │              └─ no keep-alive: lingering
 *             └───────┴─ fault: refused, lingering
 *
 * A request is lent from the pool with its first byte and given back when it has been
 * received and replied to. What is pipelined behind it waits unparsed. The next one starts
 * when the reply has left us, so a peer that does not read is not worked for. */
#pragma once

#include "net/http/connection.h"
#include "net/http/http_request.h"

struct http_conn {
    struct connection c;
    struct request *request; /* NULL: idle */
    bool begun;              /* its first byte has come */
    bool asked;              /* a whole head has come */
    bool header_due;         /* of the PROXY protocol, before anything else */
    bool tls_due;            /* behind that header */
    bool named;              /* its client, by that header */
    bool forwarded; /* the place is the request's: a trusted proxy sends it for others */
    struct address address;
    struct bytes *peer; /* the same as text; NULL: the PROXY header has not come */
    struct answering answering;
};

/* Takes over the socket; size is what the memory must hold at least. NULL: the socket was
 * of no use. */
struct http_conn *http_conn_create(struct server *server, int fd, size_t size);

/* Who is at the other end; too many of that address are told to come back. */
void http_conn_begin(struct http_conn *conn, struct address peer);

/* It has brought no request yet; not true of a WebSocket. */
bool http_conn_is_new(const struct connection *conn);

/* A drain has begun: the least rate of a body that is on its way is asked for in seconds,
 * and a stranger has as long to take its answer. Nothing for a WebSocket. */
void http_conn_hurry(struct connection *conn);

/* The reply is written, or dropped: ends the exchange. keep: the connection goes on. */
void http_conn_replied(struct request *request, bool keep);

/* Whether the connection goes on behind a reply made now. */
bool http_conn_keeps(const struct request *request);

/* The connection without its request; the caller gives it other ops. */
struct connection *http_conn_hand_over(struct request *request);
