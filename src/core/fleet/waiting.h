/* waiting.h - why a run does not execute yet: the first thing that holds it.
 *
 *   delayed, paused before another attempt, blocked by waitpoints ─► that
 *   no version has its task                                       ─► version
 *   in its queue: its project stores as much as it may            ─► storage_quota
 *                 nobody is there to execute it                   ─► no_worker
 *                 its queue is paused                             ─► queue_paused
 *                 all slots of the queue, of its key are taken    ─► queue_limit, …_key
 *                 all slots of the environment are                ─► environment_limit
 *                 none of that, in dev: nobody asks for it        ─► no_worker
 *                 elsewhere: who is there has no room for it      ─► room
 *
 * Found from what is in memory when somebody asks. */
#pragma once

#include "base/buf.h"
#include "base/room.h"
#include "core/fleet/versions.h"

enum waiting_reason {
    WAITING_FOR_NOTHING, /* it executes, is about to, or has ended */
    WAITING_NO_WORKER,
    WAITING_VERSION,
    WAITING_STORAGE_QUOTA,
    WAITING_QUEUE_PAUSED,
    WAITING_QUEUE_LIMIT,
    WAITING_CONCURRENCY_KEY,
    WAITING_ENVIRONMENT_LIMIT,
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
    int64_t until;  /* Unix ms; 0: nobody knows */
    bool has_limit; /* limit and running say something */
    uint32_t limit, running;
    bool is_in_line;    /* ahead does, too */
    uint32_t ahead;     /* runs of its queue and key that are first; at most AHEAD_MAX */
    bool is_served;     /* no_worker: somebody is there, who asks for nothing now */
    bool is_plain;      /* no_worker: only who has its code could execute it */
    int64_t gone_ms;    /* no_worker: since the CLI's connection closed; 0: not known */
    int64_t returns_ms; /* so long who has its task may come back after a start; 0: no */
    enum version_verdict verdict;
    const struct room
        *full; /* of its project's, which stores as much as it may; else NULL */
};

const char *waiting_name(enum waiting_reason reason);

/* The run is one in memory, as it is now. full: the room of its project for what is stored,
 * when that is full; NULL: it is not. */
void waiting_look(const struct tracked *run, const struct room *full,
                  struct waiting *waiting);

/* Appends a sentence: what holds the run, and what to do about it. */
void waiting_explain(const struct tracked *run, const struct waiting *waiting,
                     struct buf *out);

/* Since when the run that has been queued for longest is queued, whatever holds it; Unix ms, 0:
 * none is queued. */
int64_t waiting_oldest(const struct environment *env);

/* How many of the queued runs no worker that is there would take, were it free: nobody is
 * there, or nobody who has their code. Those that wait for a version are not queued yet. */
uint32_t waiting_unserved(const struct environment *env);

/* Runs are queued, and nobody is there to execute any. */
bool waiting_is_unserved(const struct environment *env);
