/* cluster_check.h - the record of a simulated cluster, and what must hold of it.
 *
 *   database ── every commit ──► histories, executions ◄── compared ── clients, gateways
 *   clients  ── every response ──► acknowledged ◄───────── compared ── each "in sync"
 *
 * A history is what happened under one epoch. A failover that lost commits begins another
 * one, whose record begins with the commits that were kept.
 *
 *   in sync        never older than an acknowledged change before the question; never under a
 *                  term lower than one that has acknowledged; never older than TRUST_MS
 *   executed once  an operation, however often it was sent; one that was acknowledged is in
 *                  the history, unless the failover lost it
 *   revoked        a key is refused by each question after its revocation was acknowledged,
 *                  and everywhere else after TRUST_MS */
#pragma once

#include "tests/support/cluster/cluster_envs.h"
#include "tests/support/fakes/ledger.h"

enum {
    CLUSTER_KEYS = 3,
    HISTORIES_MAX = 64,
    TRUST_MS = 4000, /* longest trust of a gateway in its memory */
};

struct cluster_op;

/* A position of some history, comparable with others. */
struct cluster_moment {
    unsigned history;
    uint64_t seq, term;
};

struct cluster_ack {
    int64_t at;
    struct cluster_moment moment;
};

struct cluster_check {
    struct ledger *histories[HISTORIES_MAX];
    unsigned history; /* the newest */
    uint64_t last_term;
    struct cluster_ack *acks;
    size_t ack_count, ack_capacity;
    uint64_t generation[CLUSTER_KEYS]; /* the newest that is valid */
    /* Generations below are revoked, which was acknowledged at this time. */
    uint64_t revoked_below[CLUSTER_KEYS];
    int64_t revoked_at[CLUSTER_KEYS];
    bool purged;           /* retention has removed runs in this seed */
    unsigned shown, syncs; /* how many were judged */
};

void cluster_check_init(struct cluster_check *check);
void cluster_check_finish(struct cluster_check *check);

/* Begins the next history; the database then records the commits that were kept. */
void cluster_check_begin_history(struct cluster_check *check);
unsigned cluster_history_of(const char *epoch);
void cluster_history_name(unsigned history, char epoch[17]);

/* A client got the response to its write. */
void cluster_check_acked(struct cluster_check *check, int64_t now,
                         struct cluster_moment moment);

/* Returns the newest acknowledged moment at that time. */
struct cluster_moment cluster_check_asked(const struct cluster_check *check, int64_t at);

/* A gateway shows a client everything up to `claim`; asked: acknowledged before the client's
 * question. cluster_check_sync: it also states that there is nothing else now. */
void cluster_check_shown(struct cluster_check *check, const char *by, int64_t now,
                         struct cluster_moment claim, struct cluster_moment asked);
void cluster_check_sync(struct cluster_check *check, const char *by, int64_t now,
                        struct cluster_moment claim, struct cluster_moment asked);

/* A gateway accepted a key that the client presented at begun. Asked: it asked the leader
 * since then. */
void cluster_check_accepted(const struct cluster_check *check, int64_t now, unsigned key,
                            uint64_t generation, int64_t begun, bool asked);
