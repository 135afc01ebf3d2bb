/* server.h - listens, accepts, keeps the list of connections, and closes them all.
 *
 * The listeners of a server share its connections, limits and handler. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"
#include "net/http/http.h"

struct certificates;
struct ring;
struct server;
typedef void server_closed_fn(struct server *server);

/* All is borrowed until server_create returns. */
struct listen_options {
    const char *host; /* numeric address, IPv4 or IPv6 */
    int port;         /* 0: any; see server_port */
    const char *path; /* of a UNIX socket, instead of host and port */
    int handed;   /* the descriptor of a socket that listens already, which is taken over,
                         and whose file is not removed at the end; 0: none */
    mode_t mode;  /* of its file; 0: 0600 */
    bool proxied; /* its connections begin with a header of the PROXY protocol, else
                         they are closed */
    bool secure;  /* its connections speak TLS; server_options.certificates */
    bool admin;   /* what comes here has exchange.admin, and a few more connections than
                         connections_max, so that it is heard when the others take them all */
};

struct server_options {
    const struct listen_options *listeners;
    size_t listener_count;
    struct http_handler handler;
    void *owner; /* the handler's */

    size_t head_bytes_max;     /* 431; default 16 KiB */
    unsigned headers_max;      /* 431; default 100 */
    size_t target_max;         /* 414; default 8 KiB */
    size_t pipeline_bytes_max; /* kept unparsed behind a request; default 64 KiB.
                                   Of who has shown no valid credential 4 KiB */
    int64_t head_timeout_ms;   /* the first byte, then the head; default 10 s each */
    int64_t body_timeout_ms;   /* without 1 KiB/s of progress; default 30 s */
    int64_t drain_grace_ms;    /* the same in a drain; for answers to strangers, too; 2 s */
    int64_t idle_timeout_ms;   /* keep-alive; default 75 s */
    int64_t write_timeout_ms;  /* the peer takes 1 KiB/s of a reply in it, or anything of a
                                  stream; default 60 s */
    int64_t least_bytes_per_s; /* of bodies, and of answers; default 1 KiB */
    int64_t closing_timeout_ms;       /* until the peer has closed too; default 5 s */
    unsigned connections_max;         /* above it: 503 and close; above 7/8 of it the least
                                   useful are closed; default 19,000 */
    unsigned connections_per_address; /* default 1/16 of connections_max; those of
                                         loopback are not counted */
    struct certificates
        *certificates; /* of listeners that are secure; a reference is taken */
    struct ring
        *ring; /* through which frames of WebSockets leave, and no other server's; NULL:
                          each by a call of its own. The caller's, until the server is closed */
    const char *trusted_proxies; /* ranges_read; their X-Forwarded-For is believed. NULL:
                                    nobody's */
    /* WebSocket connections; ws.h */
    size_t ws_message_max;          /* default 64 KiB */
    unsigned ws_fragments_max;      /* per message, empty ones count; default 64 */
    size_t ws_unfinished_max;       /* bytes of all messages that are unfinished, or wait
                                       to be heard; default 64 MiB */
    size_t ws_stranger_message_max; /* before ws_trust; default 20 KiB */
    size_t ws_strangers_max;        /* the same of theirs; default 8 MiB */
    unsigned ws_messages_per_s;     /* default 50 */
    unsigned ws_messages_burst;     /* default 200 */
    int64_t ws_ping_ms;             /* default 25 s */
    int64_t ws_stall_ms;            /* no sign of life while one is awaited; default 60 s */
};

/* Zero values mean the defaults. ERR_INVALID with the reason: bad address, port in use. */
enum err server_create(struct loop *loop, const struct server_options *options,
                       struct server **server, struct failure *why);

/* The same two numbers as in the options. Who is connected already stays, above them too. */
void server_limit_connections(struct server *server, unsigned most, unsigned per_address);

/* Of the listener at that place in the options; 0: of a UNIX socket. */
int server_port(const struct server *server, size_t listener);

/* For connections that are accepted from now on; takes a reference. */
void server_show(struct server *server, struct certificates *certificates);

/* Accepts where sockets were handed over, too: until then who connects there waits. */
void server_accept(struct server *server);

/* All sockets but the admin's were handed over, and stay: the next process goes on with them. */
bool server_has_next(const struct server *server);

/* Each reply closes its connection from now on; WebSockets stay. New connections are still
 * accepted, so that whoever asks is told by the handler that it should go elsewhere. In each
 * drain_grace_ms bodies must come at the least rate, or are 408; who has shown no credential
 * takes its answer within as much, or is closed. */
void server_drain(struct server *server);

/* Accepts no more where sockets were handed over: who connects waits for the next process. */
void server_pause(struct server *server);

/* Somebody was accepted and has not asked for anything yet: a request may be on its way. */
bool server_awaits_requests(const struct server *server);

/* Every exchange was replied to, and the kernel has taken all bytes of the answers: closing
 * cuts nothing. */
bool server_is_idle(const struct server *server);

/* Closes everything now. The memory is gone once closed was called; it may come only when
 * every open exchange has been replied to. */
void server_close(struct server *server, server_closed_fn *closed);
void *server_owner(struct server *server);
