/* net_fuzz.h - bytes into a connection and its response out, without a network.
 *
 * The connection is one end of a socket pair, so the response can be read from the other
 * one; the input is passed to the connection directly, cut as the fuzz target wants. */
#pragma once

#include "tests/support/world/net_world.h"

struct net_fuzz {
    struct net_world world;
    struct connection *conn;
    int other; /* end of the pair */
    struct buf answer;
    bool ended;
};

void net_fuzz_open(struct net_fuzz *fuzz, struct server_options options);

/* Opens a new connection; its response starts empty. */
void net_fuzz_begin(struct net_fuzz *fuzz);

/* Passes the bytes in pieces of the given size; 0: as one. */
void net_fuzz_feed(struct net_fuzz *fuzz, struct slice bytes, size_t piece);

/* The same through the socket, where bytes wait that a connection does not want to read
 * yet. */
void net_fuzz_send(struct net_fuzz *fuzz, struct slice bytes, size_t piece);

/* Appends what the server has sent to the response. */
void net_fuzz_take(struct net_fuzz *fuzz);

/* Closes the connection; the response is complete then, without the dates of HTTP. */
void net_fuzz_end(struct net_fuzz *fuzz);
