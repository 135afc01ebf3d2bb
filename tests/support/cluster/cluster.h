/* cluster.h - three gateways on one database, and their clients, in virtual time.
 *
 *   clients ──► gateways ──► network: cut, stalled, late ──► database
 *                   ▲               │
 *                   └── replication ┘          check: what must hold of all of it
 *
 * The sources of this folder are the model of the part that does not exist yet. */
#pragma once

#include "tests/support/cluster/cluster_check.h"
#include "tests/support/cluster/cluster_database.h"
#include "tests/support/cluster/cluster_gateway.h"
#include "tests/support/cluster/cluster_ops.h"
#include "tests/support/cluster/cluster_poller.h"
#include "tests/support/cluster/cluster_session.h"
#include "tests/support/cluster/cluster_subscriber.h"
#include "tests/support/cluster/cluster_trace.h"

enum { CLUSTER_SUBSCRIBERS = 6, CLUSTER_POLLERS = 5 };

struct cluster {
    struct draws draws;
    unsigned budget; /* of each turn of a gateway (loop_set_budget) */
    struct cluster_network network;
    struct cluster_database database;
    struct cluster_check check;
    struct cluster_gateway gateways[CLUSTER_GATEWAYS];
    struct cluster_subscriber subscribers[CLUSTER_SUBSCRIBERS];
    struct cluster_poller pollers[CLUSTER_POLLERS];
    bool session_rule; /* the end of a session is a sign of death */
    struct list ops;   // cluster_op::link
    unsigned op_count, acked, runs;
};

/* Its gateways start with it. */
void cluster_init(struct cluster *cluster, uint64_t seed);
void cluster_finish(struct cluster *cluster);

/* Time passes; everything that is due happens. */
void cluster_pass(struct cluster *cluster, int64_t ms);

/* A client sends a drawn operation to a drawn gateway. */
void cluster_write(struct cluster *cluster);

/* Draws a credential: mostly a valid one, sometimes one that was revoked. */
void cluster_draw_key(struct cluster *cluster, unsigned *key, uint64_t *generation);

/* Returns the gateway that leads without doubt; NULL: none does. */
struct cluster_gateway *cluster_leader(struct cluster *cluster);

/* Returns true if a leader and its followers have everything, and nothing is in flight. */
bool cluster_rests(struct cluster *cluster);

/* Prints the state of its parts, for a seed that does not come to rest. */
void cluster_print(struct cluster *cluster);

/* At rest: asserts that the memory of each gateway equals the database, that each
 * acknowledged operation was executed, and that clients have the last state. */
void cluster_check_end(struct cluster *cluster);

/* ---- called by the database ---- */

void cluster_op_executed(struct cluster *cluster, unsigned op, const struct change *change);
void cluster_op_lost(struct cluster *cluster, unsigned op);
void cluster_keys_restored(struct cluster *cluster);
