/* cluster_subscriber.h - a client of runs.v1 that moves between gateways.
 *
 *   OUT ─► ASKING: the gateway asks its leader, at most 5 s ─► OPEN: a feed, and a live count
 *
 * It mirrors the runs of its subscription by the rules of the protocol (fakes/mirror.h), and
 * resumes from its position at whichever gateway it comes to. */
#pragma once

#include "core/live/feed.h"
#include "tests/support/cluster/cluster_check.h"
#include "tests/support/cluster/cluster_session.h"
#include "tests/support/fakes/mirror.h"

enum cluster_subscriber_state { SUBSCRIBER_OUT, SUBSCRIBER_ASKING, SUBSCRIBER_OPEN };

struct cluster_subscriber {
    struct cluster *cluster;
    struct cluster_session session;
    char name[8];
    enum cluster_subscriber_state state;
    struct mirror mirror;
    unsigned history; /* of the mirror */
    const char *about;
    bool lost;
    unsigned again; /* how often a snapshot followed on the same connection */
    uint64_t question;
    struct cluster_moment asked;
    int64_t begun, ping_at;
    unsigned key;
    uint64_t generation;
    struct feed feed; /* while OPEN */
    struct bytes **wire;
    size_t count, capacity;
};

void cluster_subscriber_init(struct cluster_subscriber *subscriber, struct cluster *cluster,
                             unsigned number);
void cluster_subscriber_finish(struct cluster_subscriber *subscriber);

/* Connects to the gateway, if it takes new sockets. */
void cluster_subscriber_connect(struct cluster_subscriber *subscriber,
                                struct cluster_gateway *gateway);
void cluster_subscriber_cut(struct cluster_subscriber *subscriber);

/* Reads one frame. Returns false if there is none. */
bool cluster_subscriber_read(struct cluster_subscriber *subscriber);

/* Returns true if it is complete, and has read everything. check_end asserts that it has the
 * last state. */
bool cluster_subscriber_rests(struct cluster_subscriber *subscriber);
void cluster_subscriber_check_end(struct cluster_subscriber *subscriber);
