/* cluster_lead.h - which gateway of a simulated cluster leads, as one gateway sees it.
 *
 *   JOINING ─► STANDBY ──no leader, or it is dead──► TAKING ─► LOADING ──memory complete──► LEADING
 *                 ▲                                    │
 *                 └──────── another was first ─────────┘
 *
 * The beats and the sessions are judged by store/lead/observation.h, as in the gateway. With
 * the session rule, a leader registers its session. */
#pragma once

#include "store/lead/observation.h"
#include "tests/support/cluster/cluster_database.h"

enum {
    CLUSTER_BEAT_MS = 300,
    CLUSTER_DEAD_MS = 5000,
};

enum cluster_lead_state {
    LEAD_JOINING,
    LEAD_STANDBY,
    LEAD_TAKING,
    LEAD_LOADING,
    LEAD_LEADING
};

struct cluster_lead {
    struct cluster_gateway *gateway;
    enum cluster_lead_state state;
    uint64_t me, term, leader; /* leader: its id, from the last response */
    uint64_t known_term;       /* the database's, from the last response */
    struct observation observation;
    bool calling; /* a call of this struct is in flight */
    enum cluster_call_kind kind;
    uint64_t number;
    uint32_t connection;       /* of the last call */
    uint32_t known_connection; /* an earlier one is known to be lost */
    int64_t sent_at, next_at;
    bool other_timeline; /* a new epoch is due */
    struct cluster_row rows[CLUSTER_GATEWAYS];
};

void cluster_lead_init(struct cluster_lead *lead, struct cluster_gateway *gateway);
void cluster_lead_finish(struct cluster_lead *lead);
void cluster_lead_tick(struct cluster_lead *lead);
void cluster_lead_replied(struct cluster_lead *lead, const struct cluster_reply *reply);

/* Memory is complete: a gateway that has taken the lead begins to serve. */
void cluster_lead_loaded(struct cluster_lead *lead);

/* Returns for how long this gateway trusts that it leads; 0: it does not. */
int64_t cluster_lead_trust(const struct cluster_lead *lead);

/* The same for its followers. */
int64_t cluster_lead_grant(struct cluster_lead *lead);

/* Returns the number of the gateway that leads; -1: unknown. */
int cluster_lead_leader(const struct cluster_lead *lead);
