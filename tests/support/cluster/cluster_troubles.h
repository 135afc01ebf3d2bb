/* cluster_troubles.h - drawn disturbances of a simulated cluster, two at a time.
 *
 * Each ends by itself. A seed has a favorite kind, so that a rare coincidence of two of a
 * kind is likely in some seeds. */
#pragma once

#include "tests/support/cluster/cluster_network.h"

enum { TROUBLES = 2 };

enum trouble_kind {
    TROUBLE_NONE,
    CUT,       /* the connection of two nodes */
    RESET,     /* it breaks, and may be made again at once */
    STALL,     /* it delivers nothing for a time, from b to a or both ways */
    SUSPEND,   /* a gateway */
    FREEZE,    /* a machine with two gateways */
    KILL,      /* a gateway, which starts again later */
    PARTITION, /* two nodes on one side, two on the other */
    TROUBLE_KINDS
};

struct trouble {
    enum trouble_kind kind;
    int a, b; /* nodes; b: of a pair */
    bool both;
    int64_t until;
};

struct cluster_troubles {
    struct cluster *cluster;
    struct trouble troubles[TROUBLES];
    enum trouble_kind favorite; /* more than half of the troubles */
};

void cluster_troubles_init(struct cluster_troubles *troubles, struct cluster *cluster);

/* Ends troubles whose time has come, and begins others. */
void cluster_troubles_step(struct cluster_troubles *troubles);

/* Ends all troubles, and starts every gateway. */
void cluster_troubles_heal(struct cluster_troubles *troubles);
