/* cluster_ops.h - the writes of clients: sent to any gateway, forwarded, executed, answered.
 *
 *   client ──► any gateway ──forwards──► leader ──commit──► database
 *          ◄──────────────── answer ◄───────────┘
 *
 * An operation with a request key may be sent again: it is executed once. Without one, a
 * gateway that has sent it must not send it again, unless the leader says that it has done
 * nothing. */
#pragma once

#include "tests/support/cluster/cluster_gateway.h"

enum cluster_op_kind {
    OP_CREATE,  /* a run */
    OP_STEP,    /* its next status */
    OP_NOTE,    /* its metadata, also once it has ended */
    OP_SETTING, /* a document that followers do not need */
    OP_ROTATE,  /* of a key: earlier generations are revoked */
    OP_PURGE,   /* retention; begun by the simulation at the leader */
    OP_KINDS
};

enum cluster_op_state { OP_OPEN, OP_ACKED, OP_REFUSED, OP_UNKNOWN };

/* Kept until the end of the seed. */
struct cluster_op {
    unsigned number;
    enum cluster_op_kind kind;
    char run[RUN_ID_MAX];
    unsigned key;        /* the credential, or for OP_ROTATE also its object */
    uint64_t generation; /* of the key that the client presents */
    uint64_t made;       /* of OP_ROTATE: the generation that it has made */
    bool keyed;          /* has a request key */
    int64_t begun;
    enum cluster_op_state state;
    unsigned executed; /* how often, in the newest history */
    bool lost;         /* by a failover */
    struct list link;  // cluster::ops
};

/* Sends the operation to the gateway. */
void cluster_op_send(struct cluster_op *op, struct cluster_gateway *gateway);

/* Forwards that wait; those of a process that ends are unknown to their clients. */
void cluster_forwards_tick(struct cluster_gateway *gateway);
void cluster_forwards_drop(struct cluster_gateway *gateway);

/* Begins retention at a leader: of settled runs that last changed age_ms ago. */
void cluster_op_purge(struct cluster_gateway *gateway, int64_t age_ms);
