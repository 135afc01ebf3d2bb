/* server.h - an HTTP server: listens, accepts, and closes its connections.
 *
 * The listeners of a server share its connections, limits and handler. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"
#include "net/http/http.h"

struct certificates;
struct http_session;
struct ring;
struct server;
typedef void server_closed_fn(struct server *server);

/* Everything is borrowed until server_create returns. */
struct listen_options {
    const char *host; /* numeric address, IPv4 or IPv6 */
    int port;         /* 0: any; see server_port */
    const char *path; /* of a UNIX socket, instead of host and port */
    int handed;       /* descriptor of a listening socket to use; 0: none. Its file is never
                       * removed */
    mode_t mode;      /* of the UNIX socket's file; 0: 0600 */
    bool proxied;     /* connections must begin with a header of the PROXY protocol */
    bool secure;      /* connections use TLS; server_options.certificates */
    const char *setting; /* that names the address, for an error; NULL: (admin-)listen */
    bool has_one_port;   /* all gateways use the same port; for an error */
    bool admin;          /* sets exchange.admin. A few connections above connections_max are
                       * accepted, so that admins get in when others use them all */
};

struct server_options {
    const struct listen_options *listeners;
    size_t listener_count;
    struct http_handler handler;
    void *owner; /* the handler's */

    size_t head_bytes_max;      /* 431 above; default 16 KiB */
    unsigned headers_max;       /* 431 above; default 100 */
    size_t target_max;          /* 414 above; default 8 KiB */
    size_t pipeline_bytes_max;  /* pipelined and unparsed bytes; default 64 KiB. 4 KiB
                                 * without a valid credential */
    int64_t head_timeout_ms;    /* first byte, then head; default 10 s each */
    int64_t body_timeout_ms;    /* without 1 KiB/s of progress; default 30 s */
    int64_t drain_grace_ms;     /* the same in a drain; unauthenticated peers must then read
                                 * their replies within it; default 2 s */
    int64_t idle_timeout_ms;    /* keep-alive; default 75 s */
    int64_t write_timeout_ms;   /* to take 1 KiB/s of a reply, or anything of a stream;
                                 * default 60 s */
    int64_t least_bytes_per_s;  /* of bodies and of responses; default 1 KiB */
    int64_t closing_timeout_ms; /* until the peer has also closed; default 5 s */
    unsigned connections_max;   /* above it: 503; above 7/8 of it, the least useful are
                                 * closed; default 19,000 */
    unsigned connections_per_address;  /* default 1/16 of connections_max; loopback: no
                                        * limit */
    struct certificates *certificates; /* of secure listeners; a reference is taken */
    struct ring
        *ring; /* sends frames of WebSockets; NULL: one by one. Used by one server only, and
                * owned by the caller until the server is closed */
    /* Connections may have a session, which has ended (http_session.h); NULL: they may not. */
    void (*on_session_end)(void *owner, struct http_session *session);
    const char *trusted_proxies; /* for ranges_read; trusts X-Forwarded-For; NULL: none */
    /* WebSocket connections; ws.h. */
    size_t ws_message_max;                 /* default 64 KiB */
    unsigned ws_fragments_max;             /* per message, empty ones count; default 64 */
    size_t ws_unfinished_max;              /* all incomplete or unhandled messages; default
                                     * 64 MiB */
    size_t ws_unauthenticated_message_max; /* before ws_trust; default 20 KiB */
    size_t ws_unauthenticated_max;         /* those of all such peers; default 8 MiB */
    unsigned ws_messages_per_s;            /* default 50 */
    unsigned ws_messages_burst;            /* default 200 */
    int64_t ws_ping_ms;                    /* default 25 s */
    int64_t ws_stall_ms; /* without an awaited sign of life; default 60 s */
};

/* Zero values mean the defaults. ERR_INVALID, with the reason: bad address, port in use. */
enum err server_create(struct loop *loop, const struct server_options *options,
                       struct server **server, struct failure *why);

/* Changes two limits of the options. Open connections stay, even above the limits. */
void server_limit_connections(struct server *server, unsigned most, unsigned per_address);

/* Returns the port of the listener with that index in the options; 0 for a UNIX socket. */
int server_port(const struct server *server, size_t listener);

/* Sets the certificates of connections accepted from now on; takes a reference. */
void server_show(struct server *server, struct certificates *certificates);

/* Starts accepting on sockets that were handed over, where clients may be waiting. */
void server_accept(struct server *server);

/* Returns true if all sockets but the admin's were handed over, and stay. The next process
 * accepts on them. */
bool server_has_next(const struct server *server);

/* Begins a drain: from now on, each reply closes its connection; WebSockets stay. New
 * connections are still accepted, so that the handler can send clients elsewhere. In each
 * period of drain_grace_ms, bodies must arrive at the least rate, or get a 408. A peer
 * without a valid credential must read its response within that time, or is closed. */
void server_drain(struct server *server);

/* Stops accepting on sockets that were handed over: clients wait for the next process. */
void server_pause(struct server *server);

/* Exchanges that begin from now on are late. */
void server_note_late(struct server *server);

/* Returns true if an exchange that is not late is open. */
bool server_has_early(const struct server *server);

/* Closes all listening sockets but the admin's, so that clients that connect are refused. Those
 * that have connected before are served. */
void server_stop_accepting(struct server *server);

/* Returns true if some connection has made no request yet: one may be in flight. */
bool server_awaits_requests(const struct server *server);

/* Returns true if closing would truncate nothing: every exchange was replied to, and the
 * kernel has all bytes of the responses. */
bool server_is_idle(const struct server *server);

/* Closes everything now. The memory is freed once closed has been called, which may happen
 * only after every open exchange was replied to. */
void server_close(struct server *server, server_closed_fn *closed);
void *server_owner(struct server *server);
