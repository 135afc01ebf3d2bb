/* peer_server.h - the leader's end of connections between gateways: accepts those that have its
 * encryption key.
 *
 *   WebSocket ─► opening ─► answer with a proof ─► our proof ─► on_peer ─► messages ─► on_gone
 *       └── no right proof within 5 s, or anything else before it: closed ──┘
 *
 * It has a server of its own at peer-listen. The API is reachable there only for calls that
 * a follower forwards (callers.h), and strangers there use up no connection of the API. Peers that have proved nothing are
 * strangers. A stranger gets only random bytes and this gateway's id.
 *
 * Each message carries a MAC (peer_wire.h). A message for all peers is sealed once, and its
 * bytes are shared. A peer that reads too slowly has a bounded number of unsent bytes; then
 * it is cut off, and this gateway never waits for it. */
#pragma once

#include "base/list.h"
#include "base/loop.h"
#include "base/vault/peer_group.h"
#include "base/vault/vault.h"
#include "net/http/server.h"
#include "server/peers/link_rate.h"

struct peer_conn;
struct peer_server;

enum {
    PEER_STRANGERS_MAX = 64, /* for one more, the oldest one is closed */
    PEER_UNSENT_MAX = 64 << 20,
};

/* A message, encoded and sealed once for all peers (base/vault/peer_group.h). */
struct peer_message {
    struct slice content; /* borrowed until peer_message_finish */
    struct bytes *frame;  /* a copy, which peers share that cannot get it yet; NULL: none */
    struct peer_seal seal;
};

void peer_message_make(struct peer_server *server, struct peer_message *message,
                       struct slice content);
void peer_message_finish(struct peer_message *message);

struct peer_server_options {
    const struct listen_options *address; /* borrowed until peer_server_create returns */
    struct certificates *certificates;    /* a reference is taken; NULL: no TLS */
    const struct vault *vault;            /* borrowed */
    size_t unsent_max;                    /* bytes; 0: PEER_UNSENT_MAX */
    unsigned callers_max;                 /* 0: CALLERS_MAX (callers.h) */
    /* Returns our store_gateway::id; 0: we do not lead, so connections get 503. */
    uint64_t (*leader_id)(void *owner);
    /* Both sides have proved that they have the key. */
    void (*on_peer)(void *owner, struct peer_conn *peer);
    void (*on_message)(void *owner, struct peer_conn *peer, struct slice message);
    /* The last callback for a peer; it is freed when this returns. Never called from inside
     * a function below. */
    void (*on_gone)(void *owner, struct peer_conn *peer, const char *why);
    /* peer_server_close has ended. */
    void (*closed)(void *owner);
    void *owner;
    /* Gets the calls that followers forward. on_head NULL: none are accepted. */
    struct http_handler calls;
    void *calls_owner;
};

/* ERR_INVALID, with the reason: bad address, port in use. */
enum err peer_server_create(struct loop *loop, const struct peer_server_options *options,
                            struct peer_server **server, struct failure *why);

/* Returns the port on which it listens. */
int peer_server_port(const struct peer_server *server);

/* Ends all connections, as peer_conn_end does, also those of strangers. */
void peer_server_end_all(struct peer_server *server, const char *why);

/* Closes all connections, calls on_gone for each peer, and then closed. The memory is freed
 * once closed has returned. */
void peer_server_close(struct peer_server *server);

/* Sets the certificates of connections accepted from now on; takes a reference. */
void peer_server_show(struct peer_server *server, struct certificates *certificates);

/* A pointer of the owner of the server, for its callbacks. */
void peer_conn_set_owner(struct peer_conn *peer, void *owner);
void *peer_conn_owner(const struct peer_conn *peer);

/* Returns the peer's store_gateway::id, and its address for logs. */
uint64_t peer_conn_id(const struct peer_conn *peer);
const char *peer_conn_address(const struct peer_conn *peer);

/* Sends the message, or keeps a copy until it can be sent. Cuts the peer off if it has
 * too many unsent bytes; it has none before a single message of any length. */
void peer_conn_send(struct peer_conn *peer, struct peer_message *message);

/* Returns how many bytes for the peer it may not have read yet, and the rate at which it reads. */
size_t peer_conn_unread(const struct peer_conn *peer);
const struct link_rate *peer_conn_rate(const struct peer_conn *peer);

/* Closes the connection after the bytes that the kernel accepts at once; on_gone follows,
 * with this reason unless the connection had ended. Nothing is sent or received any more. */
void peer_conn_end(struct peer_conn *peer, const char *why);
