/* waiting.h - why a run does not execute yet: the first of these that holds it.
 *
 *   delayed, paused before another attempt, blocked by waitpoints ─► that
 *   no version has its task                                       ─► version
 *   in its queue: its project has reached its storage quota       ─► storage_quota
 *                 no worker for it is connected                   ─► no_worker
 *                 its queue is paused                             ─► queue_paused
 *                 all slots of the queue, of its key are taken    ─► queue_limit, …_key
 *                 all slots of its keys together are              ─► queue_total
 *                 one of its limits is paused, has no free slot   ─► limit_paused, limit
 *                 one of its gates is                             ─► gate_paused, gate
 *                 a free slot that is kept for another run counts as taken
 *                 all slots of the environment are                ─► environment_limit
 *                 a rate of its queue or limits has no token left ─► rate
 *                 none of these, in dev: no worker dequeues it    ─► no_worker
 *                 elsewhere: workers lack CPU or memory for it    ─► room
 *   its waits have ended, but no slot is free for it to continue  ─► one of these limits
 *
 * Computed from memory on each call. */
#pragma once

#include "base/buf.h"
#include "base/quota.h"
#include "core/fleet/versions.h"
#include "core/queues/queue_rates.h"

enum waiting_reason {
    WAITING_FOR_NOTHING, /* it executes, is about to, or has ended */
    WAITING_NO_WORKER,
    WAITING_VERSION,
    WAITING_STORAGE_QUOTA,
    WAITING_QUEUE_PAUSED,
    WAITING_QUEUE_LIMIT,
    WAITING_CONCURRENCY_KEY,
    WAITING_QUEUE_TOTAL,
    WAITING_LIMIT_PAUSED,
    WAITING_LIMIT,
    WAITING_GATE_PAUSED,
    WAITING_GATE,
    WAITING_ENVIRONMENT_LIMIT,
    WAITING_RATE,
    WAITING_ROOM,
    WAITING_DELAY,
    WAITING_RETRY,
    WAITING_WAITPOINT,
    WAITING_REASONS
};

enum { WAITING_AHEAD_MAX = 1000 };

struct waiting {
    enum waiting_reason reason;
    int64_t since;  /* Unix ms */
    int64_t until;  /* Unix ms; 0: unknown */
    bool has_limit; /* limit and running are set */
    uint32_t limit, running;
    uint32_t reserved; /* free slots that are kept for another run */
    /* The limit of limit_paused and limit, or the queue of gate_paused and gate; and the
     * key of its pool, empty for none. Borrowed from the queues. */
    struct slice limit_name, limit_key;
    struct rate_figures rate; /* of rate: the bucket that has a token last; limit_name is
                               * set if it is that of a limit */
    bool is_limit_total;      /* limit, gate: of all keys together, not of the pool's */
    bool is_singleton;        /* the queue executes one run of each key */
    bool is_in_line;          /* ahead is set */
    uint32_t ahead;  /* runs of its queue and key before it; at most WAITING_AHEAD_MAX */
    bool is_served;  /* no_worker: a worker is connected but does not dequeue now */
    bool is_plain;   /* no_worker: only a worker with its code could execute it */
    int64_t gone_ms; /* no_worker: since when the CLI's connection is closed; 0: unknown */
    int64_t returns_ms; /* how long a session may return after a start; 0: no */
    enum version_verdict verdict;
    const struct quota *full; /* its project's storage quota, if reached; otherwise NULL */
};

const char *waiting_name(enum waiting_reason reason);

/* The run must be in memory. full: its project's storage quota if that is reached,
 * otherwise NULL. */
void waiting_look(const struct tracked *run, const struct quota *full,
                  struct waiting *waiting);

/* Appends a sentence: why the run waits, and what to do about it. */
void waiting_explain(const struct tracked *run, const struct waiting *waiting,
                     struct buf *out);

/* Returns since when the oldest queued run has been queued, whatever holds it; Unix ms; 0:
 * none is queued. */
int64_t waiting_oldest(const struct environment *env);

/* Returns the number of queued runs that no connected worker would take even if idle,
 * because none is connected, or none has their code. Runs waiting for a version are not
 * queued yet. */
uint32_t waiting_unserved(const struct environment *env);

/* Returns true if runs are queued and no worker is connected. */
bool waiting_is_unserved(const struct environment *env);
