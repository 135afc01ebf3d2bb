/* cluster_store.h - a gateway's connection to the database of a simulated cluster: a driver
 * of store.h.
 *
 *   writes: one at a time, sent again with the same number until it gets a response
 *   reads:  sent again after a break
 *
 * A page of the store may include changes that a follower has not applied yet. Its reader
 * gets it once they are applied: otherwise a run that is in neither would be missing. A
 * gateway that loads reads in any epoch; any other in that of its memory. */
#pragma once

#include "tests/support/cluster/cluster_database.h"

struct cluster_gateway;

struct cluster_store {
    struct store store; /* first */
    /* The same connection for catching up: its reads need not wait until they are applied. */
    struct store direct;
    struct cluster_gateway *gateway;
    struct list writes; // cluster_pending::link; oldest first
    struct list reads;  // cluster_pending::link
    uint64_t number, group;
    struct store_position positions[REPL_ENVS]; /* of the newest reply */
    struct store_walk recount_walk;
    struct store_recount *recount; /* in flight */
};

void cluster_store_init(struct cluster_store *store, struct cluster_gateway *gateway);

/* Begins a commit of an operation. */
void cluster_store_commit(struct cluster_store *store, struct store_commit *req,
                          unsigned op);

/* Sends what has to be sent, and delivers what may be delivered now. */
void cluster_store_tick(struct cluster_store *store);
void cluster_store_replied(struct cluster_store *store, const struct cluster_reply *reply);

/* Ends every request without success: the memory that began them is given up. */
void cluster_store_fail_all(struct cluster_store *store);
