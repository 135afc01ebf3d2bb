/* server_state.h - what the connections of one server share; private to http.
 *
 * One buffer is read into for all of them: what is read is used before the next read, or
 * copied. Parsers are lent to connections only while a request or a message is in flight.
 */
#pragma once

#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "net/certificates.h"
#include "net/crowd.h"
#include "net/http/listener.h"
#include "net/http/server.h"
#include "net/readiness.h"

enum {
    SERVER_INPUT = 16 * 1024,  /* of one peer in a turn: a byte may cost a route 10 ns */
    STRANGER_INPUT = 4 * 1024, /* of who has shown no credential; all that waits, too */
    SERVER_POOL_MAX = 64,      /* parsers of a kind that wait for work */
    SERVER_DATE = sizeof("Thu, 01 Jan 1970 00:00:00 GMT"),
};

struct server {
    struct loop *loop;
    struct server_options options; /* zeros replaced by the defaults */
    server_closed_fn *closed;
    struct deferred finish;

    struct readiness readiness;  /* of all connections */
    struct flusher ring_flusher; /* late: sends what connections have put into the ring */
    struct listener *listeners;
    size_t listener_count;
    unsigned handles; /* open: of the listeners and of readiness */
    bool draining;
    struct deferred hurrying; /* tells connections that a drain has begun */
    size_t unhurried;         /* how many of them, from the head on, it has not told */
    int spare_fd; /* given up for a moment to refuse a connection when none is left */
    uint32_t rest_kind;
    int64_t complained_ms;

    struct list connections; // connection::link
    size_t connection_count;
    size_t open_count;  /* of them: not closed yet, each has a descriptor */
    size_t admin_count; /* of those: of admins */
    /* Who is closed when connections run short, the first one first. */
    struct list strangers; // connection::spare; never showed a valid credential
    struct list idle;      // connection::spare; did, and wait for a request
    size_t open_exchanges;
    uint32_t deadline_kind;
    uint32_t turn; /* spreads pings and retry-after over time */

    struct certificates *certificates; /* a reference; NULL: no listener is secure */
    struct deferred securing;          /* takes the first in these two lines; secure.h */
    struct list shaking; // secure::waiting; their peers have sent a part of a handshake
    struct list unread;  // secure::waiting; hold bytes that the kernel does not announce
    struct list begun;   // secure::begun; handshakes, the oldest first
    size_t begun_count;

    struct ranges trusted; /* proxies */
    struct crowd crowd;
    bool told_forwarded; /* that a proxy is not among them */

    struct list requests, inputs; /* request::link, ws_input::link: the pools */
    unsigned request_count, input_count;
    size_t unfinished;           /* bytes of WebSocket messages that are unfinished, or
                                    wait to be heard, of known peers */
    size_t strangers_unfinished; /* and of strangers */
    struct list holding;         // ws::holding; strangers, who began first at its head
    struct bytes *ping_frame;    /* of WebSocket */
    struct evp_md_st *sha1;
    struct buf scratch; /* heads of replies, error bodies */
    char date[SERVER_DATE];
    int64_t date_s; /* the second of date */
    char input[SERVER_INPUT];
};

/* Of this second, as RFC 9110 §5.6.7 wants it. */
const char *server_date(struct server *server);

/* A warning, at most one a second. */
void server_complain(struct server *server, const char *what, const char *reason);

/* Opens the descriptor that server::spare_fd is; -1: none is left. */
int server_open_spare(void);

enum { SERVER_FULL_ANSWER = 256 };

/* The answer for whom there is no room: 503, and when to come back. Its length. */
size_t server_write_full(struct server *server, char answer[SERVER_FULL_ANSWER]);

/* The last one out turns off the light: called wherever something may have ended. */
void server_maybe_closed(struct server *server);

/* The memory of the connection is gone after the call. */
struct connection;
void server_forget(struct connection *conn);
