/* cluster_replica.h - the follower's side of replication in a simulated cluster.
 *
 *   NONE ──hello──► HELLO ──its answer──► CATCHING ──in one step──► FOLLOWING
 *    ▲                                                                  │
 *    └──── the connection broke, a jump, another leader or term ────────┘
 *
 * While it catches up, frames wait. It trusts its memory only while FOLLOWING, until the
 * time that the last answered question allows. The database may be ahead of the leader's
 * memory, by commits whose responses are in flight. A follower that has caught up with it
 * therefore waits until the leader has applied as much: no gateway shows more than its
 * leader, and a position above the leader's is always of another history. */
#pragma once

#include "tests/support/cluster/cluster_frames.h"
#include "tests/support/cluster/cluster_network.h"

enum {
    REPLICA_ASK_MS = 100,
    REPLICA_ASKS = 256, /* questions whose time is known */
};

enum cluster_replica_state {
    REPLICA_NONE,
    REPLICA_HELLO,
    REPLICA_CATCHING,
    REPLICA_FOLLOWING
};

struct cluster_replica {
    struct cluster_gateway *gateway;
    enum cluster_replica_state state;
    int leader;
    uint32_t connection;
    uint64_t term;       /* of the leader */
    struct list waiting; // repl_message::waiting_link
    struct repl_run *before;
    uint64_t asked;
    int64_t asked_at[REPLICA_ASKS];
    int64_t ask_at, hello_at, trust_until;
    uint64_t answered;             /* number of the last question that was answered */
    uint64_t positions[REPL_ENVS]; /* the answer */
    uint64_t caught_up;            /* it is not shown before the leader has applied this */
    int64_t documents_from;        /* only with the fault */
};

void cluster_replica_init(struct cluster_replica *replica, struct cluster_gateway *gateway);
void cluster_replica_tick(struct cluster_replica *replica);
void cluster_replica_caught_up(struct cluster_replica *replica);

/* Ends the connection, and with it trust. */
void cluster_replica_end(struct cluster_replica *replica);
bool cluster_replica_trusts(const struct cluster_replica *replica);

/* Asks the leader for its position, and returns the number of the question. */
uint64_t cluster_replica_ask(struct cluster_replica *replica);

/* ---- frames as messages ---- */

struct repl_message {
    struct cluster_message message;
    struct repl_frame frame;
    struct list waiting_link;
};

/* Sends a frame; takes ownership of its content. */
void cluster_frame_send(struct cluster *cluster, int from, int to,
                        struct repl_frame *frame);

/* A frame of the leader arrived. May take the content. */
void cluster_replica_receive(struct cluster_replica *replica, struct repl_message *message);
