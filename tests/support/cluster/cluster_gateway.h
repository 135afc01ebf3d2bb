/* cluster_gateway.h - one gateway of a simulated cluster.
 *
 *   real:  the environment in memory (core/live): runs, orders, ring, windows, feeds, doubt;
 *          replication (core/replication)
 *   model: its connection to the database, its lead, its accounts, requests
 *
 * A process begins without memory: it joins, loads, and then follows or leads. must_restart
 * and must_forget are requests to its next turn, because they may come from inside its
 * parts. */
#pragma once

#include "core/live/environment.h"
#include "tests/support/cluster/cluster_lead.h"
#include "tests/support/cluster/cluster_replication.h"
#include "tests/support/cluster/cluster_store.h"

/* The keys, as documents of environment 0: the body is the generation that is valid. */
struct cluster_accounts {
    uint64_t applied;
    uint64_t generation[CLUSTER_KEYS];
    uint32_t version[CLUSTER_KEYS];
};

/* Takes a document, unless memory has a newer one. */
void cluster_accounts_put(struct cluster_accounts *accounts,
                          const struct document *document);

enum cluster_memory { MEMORY_NONE, MEMORY_LOADING, MEMORY_READY };

struct cluster_gateway {
    struct cluster *cluster;
    int number;
    char name[8];
    struct loop *loop;
    bool running, suspended;
    int64_t turned_at;
    int64_t off_ms; /* its wall clock is ahead by this much */
    bool must_restart, must_forget;
    enum cluster_memory memory;
    char epoch[17]; /* of its memory */
    struct environment *env;
    size_t budget; /* bytes of settled runs that stay in memory */
    struct cluster_accounts accounts;
    struct certainty certainty;
    bool was_certain;
    struct cluster_store store;
    struct cluster_lead lead;
    struct cluster_replication replication;
    struct list forwards; // cluster_forward::link
    struct list writes;   // cluster_write::link
    struct list sessions; // cluster_session::link
    unsigned attempts;    /* names of owners of claims */
};

void cluster_gateway_init(struct cluster_gateway *gateway, struct cluster *cluster,
                          int number);

/* Starts its process; kill ends it, with everything in its memory. */
void cluster_gateway_start(struct cluster_gateway *gateway);
void cluster_gateway_kill(struct cluster_gateway *gateway);

/* Stops its process for a time, or continues it. */
void cluster_gateway_suspend(struct cluster_gateway *gateway, bool suspended);

/* Brings its clock up to date, and does what is due by it. */
void cluster_gateway_pass_time(struct cluster_gateway *gateway);

/* One turn: what is due now. */
void cluster_gateway_turn(struct cluster_gateway *gateway);

/* Returns true if it may show its memory: it leads or follows, without doubt. */
bool cluster_gateway_is_certain(const struct cluster_gateway *gateway);
bool cluster_gateway_leads(const struct cluster_gateway *gateway);

/* Returns a position of its runs as it states it: with its history and term. */
struct cluster_moment cluster_gateway_moment(const struct cluster_gateway *gateway,
                                             uint64_t seq);

/* Returns the number of its connection to that node. */
uint32_t cluster_gateway_connection(const struct cluster_gateway *gateway, int node);

/* Asks for the leader's position; is_answered returns true once it is known, and applied. A
 * leader knows it. */
uint64_t cluster_gateway_ask(struct cluster_gateway *gateway);
bool cluster_gateway_is_answered(const struct cluster_gateway *gateway, uint64_t question);

/* Called by its parts. */
void cluster_gateway_replied(struct cluster_gateway *gateway,
                             const struct cluster_reply *reply);
void cluster_gateway_loaded(struct cluster_gateway *gateway, enum err status);
void cluster_gateway_purge(struct cluster_gateway *gateway,
                           const struct store_position *position);
