/* carried.h - requests that have no connection of their own: another one carries many.
 *
 *   http_carry ─► on_head, on_body, on_request of the server ─► http_reply ─► on_reply
 *        │                          ▲ on_gone                                  └─► on_closed
 *        └─ http_carried_leave ─────┘ the client has left
 *
 * They pass through the parser and the limits of the server like any request, and the
 * handler need not know. Their response must be whole: one that http_stream_begin begins
 * is lost, and the handler sees a client that has left. */
#pragma once

#include "net/http/http.h"

struct connection;
struct http_carried;
struct server;

struct http_carried_ops {
    /* Everything is borrowed for the call; headers as in http_reply. Not for HEAD. */
    void (*on_reply)(struct http_carried *carried, int status, struct slice headers,
                     struct slice body);
    /* The last callback, after which the memory is the owner's again. Never called from
     * inside http_carry or http_carried_leave. */
    void (*on_closed)(struct http_carried *carried);
};

/* Embedded by the owner. */
struct http_carried {
    const struct http_carried_ops *ops;
    struct connection *conn;
    bool is_answered; /* on_reply was called */
};

/* Takes a whole request, which is borrowed for the call. peer: the address of its sender, to
 * which it is attributed at first; a reference is taken. */
void http_carry(struct server *server, struct http_carried *carried,
                const struct http_carried_ops *ops, struct bytes *peer,
                struct slice request);

/* The client has left, or has merely stopped sending: the response still goes to it. */
void http_carried_leave(struct http_carried *carried);

/* The response can no longer be delivered. */
void http_carried_close(struct http_carried *carried);

/* Returns how the exchange was carried; NULL: it has a connection of its own. */
struct http_carried *http_carried_of(const struct exchange *x);
