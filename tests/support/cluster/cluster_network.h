/* cluster_network.h - messages between the nodes of a simulated cluster, in virtual time.
 *
 *   send ──► line from → to, in order, each with a delay ──► arrive
 *
 * Each pair of nodes has one connection at a time. A break loses the messages in flight, and
 * the nodes find that the connection's number has changed. A cut pair cannot connect. A
 * stalled line keeps its messages until the stall ends, as TCP does when packets are lost.
 * Messages to a suspended node wait, too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "tests/support/world/sim.h"

enum {
    CLUSTER_GATEWAYS = 3,
    CLUSTER_DATABASE = CLUSTER_GATEWAYS, /* the number of the database's node */
    CLUSTER_NODES
};

struct cluster;

/* The first member of each kind of message. */
struct cluster_message {
    int from, to;
    uint32_t connection; /* on which it was sent */
    int64_t at;          /* when it arrives */
    bool may_survive;    /* it may have arrived before a break, unknown to the sender */
    void (*arrive)(struct cluster *cluster, struct cluster_message *message);
    void (*destroy)(struct cluster_message *message); /* frees it; NULL: free */
    struct list link;                                 // cluster_line::messages
};

struct cluster_line {
    struct list messages; // cluster_message::link; oldest first
    int64_t last_at;
    bool stalled;
};

struct cluster_pair {
    bool cut;
    uint32_t connection; /* its number; counts breaks */
};

struct cluster_network {
    struct cluster *cluster;
    struct draws *draws;
    int64_t now;       /* ms */
    uint32_t delay_ms; /* a message takes less than this */
    struct cluster_line lines[CLUSTER_NODES][CLUSTER_NODES];
    struct cluster_pair pairs[CLUSTER_NODES][CLUSTER_NODES]; /* lower number first */
    bool suspended[CLUSTER_NODES];
};

void cluster_network_init(struct cluster_network *network, struct cluster *cluster,
                          struct draws *draws);
void cluster_network_finish(struct cluster_network *network);

struct cluster_pair *cluster_pair(struct cluster_network *network, int a, int b);

/* Takes ownership of the message. A cut pair loses it. */
void cluster_send(struct cluster_network *network, int from, int to,
                  struct cluster_message *message);

/* Answers on the connection of a request. If that has broken, the answer is lost. */
void cluster_answer(struct cluster_network *network, const struct cluster_message *request,
                    struct cluster_message *message);

void cluster_break(struct cluster_network *network, int a, int b);
void cluster_cut(struct cluster_network *network, int a, int b, bool cut);

/* Delivers everything that is due. */
void cluster_deliver(struct cluster_network *network);
