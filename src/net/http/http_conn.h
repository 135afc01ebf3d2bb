/* http_conn.h - one HTTP/1.1 connection, one request at a time; private to http.
 *
 *   idle ─► head ─► body ─► waiting for the reply ─► idle …
 *             │       │              └─ no keep-alive: lingering (connection_linger)
 *             └───────┴─ fault: rejected, lingering
 *
 * A request is taken from the pool with its first byte, and returned once it has been
 * received and replied to. Pipelined requests wait unparsed. The next one starts once the
 * reply was sent, so a peer that does not read gets no further work done. */
#pragma once

#include "net/http/carried.h"
#include "net/http/connection.h"
#include "net/http/http_request.h"

struct http_conn {
    struct connection c;
    struct request *request; /* NULL: idle */
    bool begun;              /* the first byte of its first request has arrived */
    bool asked;              /* the head of its first request is complete */
    bool header_due;         /* the PROXY protocol's header must come first */
    bool tls_due;            /* TLS follows that header */
    bool named;              /* that header names the client */
    bool forwarded; /* the address slot is the request's, which a trusted proxy forwards */
    struct address address;
    struct bytes *peer; /* the same as text; NULL: the PROXY header has not arrived */
    struct answering answering;
    struct http_carried *carried; /* how it is carried; NULL: it has a socket (carried.h) */
};

/* Takes ownership of the socket; size is the least size of the memory. Returns NULL if the
 * socket is unusable. */
struct http_conn *http_conn_create(struct server *server, int fd, size_t size);

/* Creates one without a socket, for a single request (carried.h). */
struct http_conn *http_conn_create_carried(struct server *server,
                                           struct http_carried *carried, size_t size);

/* Sets the peer's address. Rejects the connection if that address has too many already. */
void http_conn_begin(struct http_conn *conn, struct address peer);

/* Returns true if no request has been made on it yet; false for a WebSocket. */
bool http_conn_is_new(const struct connection *conn);

/* Applies a drain to the connection. Does nothing for a WebSocket. The least rate of a body
 * in progress is checked every drain_grace_ms, and an unauthenticated peer must read its
 * response within that time. */
void http_conn_drain(struct connection *conn);

/* Ends an exchange whose reply was written or dropped. keep: the connection stays open. */
void http_conn_replied(struct request *request, bool keep);

/* Returns true if the connection may stay open after a reply made now. */
bool http_conn_keeps(const struct request *request);

/* Returns the connection without its request; the caller gives it other ops. */
struct connection *http_conn_hand_over(struct request *request);
