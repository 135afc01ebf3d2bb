/* net_world.h - a server on its own loop, and peers that speak bytes to it.
 *
 * Peers are plain loopback sockets that never block; the test turns the loop. What a peer
 * has sent is in the server's socket when peer_send returns, so one turn later the server
 * has seen it: that is how a request is cut at an exact place.
 *
 * With NET_WORLD=tls in the environment the peers of peer_open speak TLS, and what they send and
 * get is what is inside of it; with NET_WORLD=ring servers send through a ring (net/ring.h): the same
 * tests hold for all. */
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
    struct ring *ring;          /* of the server; NULL: it has none */
    struct ssl_ctx_st *clients; /* of peers that speak TLS; NULL: none does */
    bool closed;
};

struct peer {
    int fd;
    struct tls *tls; /* NULL: bytes go as they are */
    struct buf got;
    bool ended; /* by the server: end of file, or reset */
    bool reset;
    bool cut; /* its end was none that TLS has said */
};

/* The owner in the options must begin with the world. Without listeners: any port of
 * 127.0.0.1. */
void net_world_open(struct net_world *world, struct server_options options);

/* For a test that closes the server itself. */
void net_world_on_closed(struct server *server);

/* Asserts that nothing is left: connections, handles, metrics. */
void net_world_close(struct net_world *world);

/* The world speaks TLS. */
bool net_world_is_secure(void);

/* A pair that its own authority has signed, for such names ("DNS:a,IP:127.0.0.1"), as server_options
 * take it. */
struct certificates *net_world_make_certificates(const char *names);

/* Lets the server see and do what it can without waiting. */
void net_world_turn(struct net_world *world);

typedef bool world_condition(void *owner);

/* Turns until the condition holds; false after 30 s. */
bool net_world_waits(struct net_world *world, world_condition *holds, void *owner);

/* The same, and the test fails. */
void net_world_until(struct net_world *world, world_condition *holds, void *owner);

/* Connected, and accepted; with TLS it has shaken hands. */
void peer_open(struct net_world *world, struct peer *peer);

/* Connected, and accepted; nothing has been sent. */
void peer_connect(struct net_world *world, struct peer *peer);

/* Shakes hands over what is connected, until it is done or the server has ended it. */
void peer_secure(struct net_world *world, struct peer *peer, struct ssl_ctx_st *clients);
void peer_close(struct peer *peer);

/* Sends everything; turns the world when the socket is full. */
void peer_send(struct net_world *world, struct peer *peer, struct slice bytes);

/* What can be sent at once; the number of bytes. */
size_t peer_try_send(struct peer *peer, struct slice bytes);

/* Takes in what has come. */
void peer_read(struct peer *peer);

bool peer_has(struct peer *peer, const char *text);

/* Turns until the text has come, or the server has ended the connection. */
void peer_await(struct net_world *world, struct peer *peer, const char *text);
void peer_await_end(struct net_world *world, struct peer *peer);

/* How often the text has come. */
size_t peer_count(const struct peer *peer, const char *text);
