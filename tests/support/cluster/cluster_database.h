/* cluster_database.h - the database of a simulated cluster.
 *
 *   calls ──► is the writer known, is it the leader, is the group new ──► fake_data ──► log
 *
 * It has the rules of the PostgreSQL driver's functions: commits are fenced by the term of
 * the lead, and a group that was executed already gets its first response again. Its content
 * is fake_data. A log of all commits allows a failover that loses the last ones.
 *
 * After a failover nothing is read or written until the leader has begun a new epoch. A
 * failover never loses a change of the lead. */
#pragma once

#include "tests/support/cluster/cluster_check.h"
#include "tests/support/cluster/cluster_network.h"
#include "tests/support/fakes/fake_data.h"

enum cluster_call_kind {
    CALL_JOIN,  /* a process starts; replaces an earlier one of the same gateway */
    CALL_BEAT,  /* this gateway is alive; who else is, and who leads */
    CALL_LEAD,  /* takes the lead, unless a gateway has it that is not the given dead one */
    CALL_EPOCH, /* the leader begins a new history */
    CALL_COMMIT, /* these two are numbered, and executed once */
    CALL_PURGE,
    CALL_READ,
};

/* The process of a gateway, as others see it. */
struct cluster_row {
    uint64_t id; /* 0: none */
    uint64_t beat;
    bool registered; /* its last beat has registered its session */
    bool session;    /* its connection is open */
    uint32_t connection;
    uint64_t group; /* the last one of its writer */
    enum store_status answer;
};

struct cluster_call {
    struct cluster_message message;
    enum cluster_call_kind kind;
    uint64_t me, number, term, group;
    char epoch[17]; /* of the caller's memory; "": any */
    bool registers; /* the session, with a beat */
    unsigned op;    /* of a commit; 0: none */
    union {
        struct store_commit *commit;
        struct store_purge *purge;
        struct store_read *read;
    } req;
    struct cluster_row dead; /* of CALL_LEAD */
};

struct cluster_reply {
    struct cluster_message message;
    enum cluster_call_kind kind;
    uint64_t number;
    enum store_status status;
    bool gone;  /* the caller has no row */
    bool stale; /* not executed: another epoch, or none yet since a failover */
    uint64_t me, leader, term;
    bool other_timeline; /* a new epoch is due */
    char epoch[17];
    struct cluster_row rows[CLUSTER_GATEWAYS];
    struct store_position positions[REPL_ENVS];
};

struct cluster_entry;

struct cluster_database {
    struct cluster *cluster;
    struct fake_data *data;
    struct cluster_entry *log;
    size_t log_count, log_capacity;
    size_t kept; /* entries that no failover loses */
    struct cluster_row rows[CLUSTER_GATEWAYS];
    uint64_t last_id, leader, term;
    int timeline, epoch_timeline;
    char epoch[17];
    unsigned takeovers, failovers;
};

void cluster_database_init(struct cluster_database *database, struct cluster *cluster);
void cluster_database_finish(struct cluster_database *database);

/* Sends the call from this gateway. Takes ownership of it. */
void cluster_database_call(struct cluster *cluster, int gateway, struct cluster_call *call);

/* Promotes another server, which lacks at most this many of the last commits. All
 * connections break. */
void cluster_database_fail_over(struct cluster_database *database, size_t lost);

/* Notices connections that have ended. */
void cluster_database_tick(struct cluster_database *database);
