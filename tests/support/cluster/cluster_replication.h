/* cluster_replication.h - replication between the gateways of a simulated cluster.
 *
 *   real:  source, replica, catching up (core/replication), and frames as bytes
 *   model: connections; the frames travel in messages (cluster_network.h)
 *
 * Each hello begins a session, which stands for a connection of its own: frames of an earlier
 * session are dropped. The deliberate faults alter frames, answers and the replica from
 * outside (cluster_replication_faults.c). */
#pragma once

#include "core/replication/replica.h"
#include "core/replication/source.h"
#include "tests/support/cluster/cluster_network.h"

struct cluster_gateway;

struct cluster_peer {
    struct source_follower follower;
    uint32_t connection, session;
};

struct cluster_replication {
    struct cluster_gateway *gateway;
    bool has_source; /* it leads, and memory is complete */
    struct source source;
    struct cluster_peer peers[CLUSTER_GATEWAYS]; /* its followers, by number */

    bool has_replica; /* there is an environment in memory */
    struct replica replica;
    int leader; /* to which it is connected */
    uint32_t connection, session;
    int64_t connect_at;
    struct store_scan keys;
    struct list late;  // repl_message::late_link; only with the fault
    struct run before; /* only with the fault: not sent */
};

void cluster_replication_init(struct cluster_replication *replication,
                              struct cluster_gateway *gateway);

/* Brings memory to the state of the database, and then calls cluster_gateway_loaded. */
void cluster_replication_load(struct cluster_replication *replication);

/* This gateway leads: followers may join. */
void cluster_replication_lead(struct cluster_replication *replication);

/* Ends the connection to the leader, and with it trust. */
void cluster_replication_end(struct cluster_replication *replication);

/* Another history begins: memory is to be loaded again. Requires that every request to the
 * store has ended. */
void cluster_replication_begin_history(struct cluster_replication *replication);

/* Memory is given up. Requires that every request to the store has ended. */
void cluster_replication_forget(struct cluster_replication *replication);
void cluster_replication_tick(struct cluster_replication *replication);

bool cluster_replication_trusts(const struct cluster_replication *replication);

/* Call it for each change, before it is applied. */
void cluster_replication_apply(struct cluster_replication *replication,
                               const struct run *before, const struct change *change);
void cluster_replication_floor(struct cluster_replication *replication,
                               const struct store_position *position);

/* ---- frames as messages ---- */

struct repl_message {
    struct cluster_message message;
    struct repl_frame frame;
    uint32_t session;
    struct list late_link; // cluster_replication::late
};

/* ---- cluster_replication_faults.c: each does nothing without its fault ---- */

/* Alters a frame that is about to be sent. Returns false if it is not sent. */
bool cluster_fault_send(struct cluster_replication *replication, struct repl_frame *frame);

/* Alters a frame that is about to be received, or the replica. */
void cluster_fault_receive(struct cluster_replication *replication,
                           struct repl_frame *frame);

/* Returns true if the document is taken later. */
bool cluster_fault_delays(struct cluster_replication *replication,
                          const struct document *document);
void cluster_fault_tick(struct cluster_replication *replication);
void cluster_fault_forget(struct cluster_replication *replication);

/* Calls done of a page. Catching up then keeps what it has to give up. */
void cluster_fault_deliver(struct environment *env, struct store_read *read,
                           enum store_status status);
