/* server_state.h - the state that the connections of a server share; private to http.
 *
 * All connections read into one buffer: input is used before the next read, or copied. A
 * connection has a parser only while a request or a message is in progress. A peer is
 * unauthenticated until it has sent a valid credential. */
#pragma once

#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "net/address_limit.h"
#include "net/certificates.h"
#include "net/http/listener.h"
#include "net/http/server.h"
#include "net/readiness.h"

enum {
    SERVER_INPUT = 16 * 1024, /* from one peer per turn: a byte may cost a route 10 ns */
    UNAUTHENTICATED_INPUT =
        4 * 1024,         /* without a valid credential; also of all pending input */
    SERVER_POOL_MAX = 64, /* unused parsers of each kind */
    SERVER_DATE = sizeof("Thu, 01 Jan 1970 00:00:00 GMT"),
};

struct server {
    struct loop *loop;
    struct server_options options; /* with the defaults instead of zeros */
    server_closed_fn *closed;
    struct deferred finish;

    struct readiness readiness;  /* of all connections */
    struct flusher ring_flusher; /* runs_last: sends what is in the ring */
    struct listener *listeners;
    size_t listener_count;
    unsigned handles; /* open handles of the listeners and of readiness */
    bool draining;
    struct deferred drain_notice; /* informs connections that a drain has begun */
    size_t undrained; /* how many of the first connections it has not informed */
    int spare_fd; /* given up for a moment to reject a connection when no other is free */
    uint32_t rest_kind;
    int64_t warned_ms;

    size_t conn_size;        /* of the memory of a connection, whatever it becomes */
    struct list connections; // connection::link
    size_t connection_count;
    size_t open_count;  /* those not closed yet; each has a descriptor */
    size_t admin_count; /* of those: admin connections */
    /* Connections to close when they run short: in this order of lists, the first one
     * first. */
    struct list unauthenticated; // connection::spare; never showed a valid credential
    struct list idle;            // connection::spare; did, and wait for a request
    size_t open_exchanges;
    size_t early_exchanges; /* of those: not request::is_late */
    bool notes_late;
    uint32_t deadline_kind;
    uint32_t turn; /* spreads pings and retry-after over time */

    struct certificates *certificates; /* a reference; NULL: no listener is secure */
    struct deferred securing;          /* handles the first of the queues below; secure.h */
    struct list handshaking; // secure::waiting; their peers have sent a part of a handshake
    struct list unread;      // secure::waiting; hold bytes that the kernel does not report
    struct list begun;       // secure::begun; handshakes, the oldest first
    size_t begun_count;

    struct ranges trusted; /* trusted proxies */
    struct address_limit addresses;
    bool forwarded_logged; /* an untrusted proxy was logged */

    struct list requests, inputs; /* request::link, ws_input::link: the pools */
    unsigned request_count, input_count;
    size_t unfinished;                 /* bytes of incomplete or unhandled messages */
    size_t unauthenticated_unfinished; /* the same of unauthenticated peers */
    struct list holding;      // ws::holding; unauthenticated, the first to begin is first
    struct bytes *ping_frame; /* of WebSockets */
    struct evp_md_st *sha1;
    struct buf scratch; /* for heads of replies, error bodies */
    char date[SERVER_DATE];
    int64_t date_s; /* the second for which date is valid */
    char input[SERVER_INPUT];
};

/* Returns the current time as RFC 9110 §5.6.7 requires. */
const char *server_date(struct server *server);

/* Logs a warning, at most one a second. */
void server_warn(struct server *server, const char *what, const char *reason);

/* Opens a descriptor for server::spare_fd; returns -1 if none is left. */
int server_open_spare(void);

enum { SERVER_FULL_ANSWER = 256 };

/* Writes the response for a connection above the limit: 503, with retry-after. Returns its
 * length. */
size_t server_write_full(struct server *server, char answer[SERVER_FULL_ANSWER]);

/* Finishes closing once nothing is left; call it wherever the last thing may have ended. */
void server_maybe_closed(struct server *server);

/* Removes the connection from its server and frees it. */
struct connection;
void server_forget(struct connection *conn);
