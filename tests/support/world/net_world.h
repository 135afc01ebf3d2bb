/* net_world.h - a server on its own loop, and peers that send bytes to it.
 *
 * Peers are plain loopback sockets that never block; the test runs the turns of the
 * loop. Bytes that a peer has sent are in the server's socket when peer_send returns, so
 * one turn later the server has read them. This is how a request is cut at an exact place.
 *
 * With NET_WORLD=tls in the environment the peers of peer_open use TLS, and what they
 * send and receive is the content. With NET_WORLD=ring servers send through a ring
 * (net/ring.h). The same tests hold for all. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/loop.h"
#include "net/http/server.h"

struct net_world {
    uv_loop_t uv;
    struct loop *loop;
    struct server *server;
    struct ring *ring;          /* of the server; NULL: none */
    struct ssl_ctx_st *clients; /* of peers that use TLS; NULL: none do */
    bool closed;
};

struct peer {
    int fd;
    struct tls *tls; /* NULL: bytes are sent as they are */
    struct buf got;
    bool ended; /* the server closed it: end of file, or reset */
    bool reset;
    bool cut; /* it was closed without a close_notify of TLS */
};

/* options.owner must begin with the world. Without listeners: any port of 127.0.0.1. */
void net_world_open(struct net_world *world, struct server_options options);

/* For a test that closes the server itself. */
void net_world_on_closed(struct server *server);

/* Asserts that nothing is left: connections, handles, metrics. */
void net_world_close(struct net_world *world);

/* Returns true if the world uses TLS. */
bool net_world_is_secure(void);

/* Makes a certificate for these names ("DNS:a,IP:127.0.0.1"), signed by a separate
 * authority, in the form of server_options. */
struct certificates *net_world_make_certificates(const char *names);

/* Runs the turns in which the server can do something without waiting. */
void net_world_turn(struct net_world *world);

typedef bool world_condition(void *owner);

/* Runs turns until the condition holds. Returns false after 30 s. */
bool net_world_waits(struct net_world *world, world_condition *holds, void *owner);

/* The same, but the test fails after 30 s. */
void net_world_until(struct net_world *world, world_condition *holds, void *owner);

/* Connects, and waits until the server has accepted; with TLS also for the handshake. */
void peer_open(struct net_world *world, struct peer *peer);

/* Connects, and waits until the server has accepted; sends nothing. */
void peer_connect(struct net_world *world, struct peer *peer);

/* Performs a TLS handshake on a connection, until it is done or the server has closed
 * it. */
void peer_secure(struct net_world *world, struct peer *peer, struct ssl_ctx_st *clients);
void peer_close(struct peer *peer);

/* Sends everything; runs turns while the socket is full. */
void peer_send(struct net_world *world, struct peer *peer, struct slice bytes);

/* Sends what the socket takes at once; returns the number of bytes. */
size_t peer_try_send(struct peer *peer, struct slice bytes);

/* Reads what has arrived. */
void peer_read(struct peer *peer);

bool peer_has(struct peer *peer, const char *text);

/* Runs turns until the text has arrived, or the server has closed the connection. */
void peer_await(struct net_world *world, struct peer *peer, const char *text);
void peer_await_end(struct net_world *world, struct peer *peer);

/* Returns how often the text has arrived. */
size_t peer_count(const struct peer *peer, const char *text);
