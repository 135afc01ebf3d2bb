/* peer_pair.h - a follower that forwards calls, and its leader, which takes them: on one loop, and
 * over real sockets. */
#pragma once

#include "server/peers/forwarder.h"
#include "server/peers/peer_server.h"
#include "tests/support/world/client_world.h"

#define PEER_PAIR_KEY "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"

enum { PEER_PAIR_LEADER = 7, PEER_PAIR_FOLLOWER = 8 };

struct peer_pair {
    struct client_world world; /* the loop, and strangers */
    struct vault *vault;       /* of the leader, with PEER_PAIR_KEY */
    struct peer_server *server;
    uint64_t id; /* of the gateway at the address; 0: it does not lead */
    struct vault *follower_vault;
    struct forwarder *forwarder; /* NULL: no follower */
    struct store_gateway leader; /* as the database names it; its id 0: none leads */
    bool server_closed, forwarder_closed;
};

/* Zeroes the pair, and opens its loop and the leader's vault. */
void peer_pair_open(struct peer_pair *pair);

/* calls: peer_server_options::calls, whose owner is the pair. */
void peer_pair_start_leader(struct peer_pair *pair, const struct http_handler *calls,
                            unsigned callers_max);
void peer_pair_start_follower(struct peer_pair *pair, const char *key);

/* Closes the server, and waits until it is closed. */
void peer_pair_stop_leader(struct peer_pair *pair);

void peer_pair_close(struct peer_pair *pair);
