/* cluster_poller.h - a client of the long poll, whose every poll goes to another gateway.
 *
 *   position ─► ASKING: only without a position, or above what is applied ─► HELD ─► rows
 *
 * It believes each row, as the SDKs do: a run must never get an older version within one
 * history. */
#pragma once

#include "base/table.h"
#include "core/live/feed.h"
#include "tests/support/cluster/cluster_check.h"
#include "tests/support/cluster/cluster_session.h"

enum cluster_poller_state { POLLER_IDLE, POLLER_ASKING, POLLER_HELD };

struct cluster_poller {
    struct cluster *cluster;
    struct cluster_session session;
    enum cluster_poller_state state;
    bool has_position;
    unsigned history; /* of the position, and of the rows */
    uint64_t seen, base;
    struct table rows; /* of struct poller_row */
    unsigned turn;     /* the gateway of the next poll */
    int64_t begun, next_at, held_until;
    uint64_t question;
    bool asks; /* the leader, before it starts */
    struct cluster_moment asked;
    unsigned key;
    uint64_t generation;
    struct feed feed; /* while HELD */
    struct bytes **frames;
    size_t count, capacity;
    bool done;      /* the last frame completes the response */
    bool refetches; /* memory was loaded again: the client starts over */
    unsigned answers;
};

void cluster_poller_init(struct cluster_poller *poller, struct cluster *cluster,
                         unsigned number);
void cluster_poller_finish(struct cluster_poller *poller);

/* Begins a poll if it is time for one. */
void cluster_poller_step(struct cluster_poller *poller);

/* Forgets the position, as a new client. */
void cluster_poller_forget(struct cluster_poller *poller);

bool cluster_poller_rests(const struct cluster_poller *poller);
void cluster_poller_check_end(const struct cluster_poller *poller);
