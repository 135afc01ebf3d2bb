/* members.h - the struct of the engine, for its own files.
 *
 * It is of two folders: core/state keeps it, and core/engine decides by it. */
#pragma once

#include "base/buf.h"
#include "base/slots.h"
#include "base/table.h"
#include "core/fleet/fleet.h"
#include "core/model/run_end.h"
#include "core/state/state.h"

enum { STORE_RETRY_MS = 1000 };

/* The engine's state of one environment. */
struct engine_share {
    struct environment *env;
    struct deferred matching;    /* matches runs and workers */
    struct timer refill;         /* when a bucket of a rate has a token again, or is full */
    struct flusher stale_limits; /* calls queues_refresh_stale, and then matches again */
    uint64_t served;   /* value of engine::served when a worker last got one of its runs */
    uint32_t arriving; /* runs of triggers in flight */
    struct table singletons;     /* of struct singleton_queue, of singletons.c, by name */
    struct list singleton_rests; // singleton_rest::link
    bool is_retired;             /* its branch was archived: nothing more starts in it */
    bool resumes_later;          /* runs will resume once the store works again */
};

struct engine {
    struct loop *loop;
    struct store *store;
    struct engine_options options;
    struct certainty certainty; /* whether memory matches the store */
    struct slots environments;  /* of struct environment, by number */
    struct slots shares;        /* of struct engine_share, by number */
    struct slots stored; /* of struct quota, the storage quota of its project, by number */
    struct figures_table figures;  /* counters, by environment */
    struct table flights;          /* of struct flight, by environment and run id */
    struct table waiters, awaited; /* waits.c: waiting runs, and what they wait for */
    struct table debounce_keys;    /* of struct debounce_key, of debounce_keys.c */
    struct table end_points;       /* ends.c: of struct end_point, by environment and id */
    struct list ends_due;          // end_point::link; ended, their watches are to be called
    struct flusher end_notifier;   /* calls them */
    struct list triggers;          // trigger_op::link; not answered yet
    struct list writes;            // document_write::link; not answered yet
    struct list resets;            // reset_key::link; not answered yet
    unsigned reads;                /* reads in flight that the engine began by itself */
    struct list doubts;            // doubt::link; leases that may not have reached a worker
    struct list sweeps;            // sweep::link; not finished yet
    struct list retries;           // retry::link; operations to retry
    struct timer retry_timer;      /* retries them */
    struct fleets fleets;          /* workers, versions and sessions of all environments */
    struct flusher evictor;        /* keeps finished runs within the budget */
    char last_id[ID_MAX];          /* engine_make_id */
    int64_t newest_ms;             /* when the newest loaded run was created; Unix ms */
    uint64_t served;               /* number of leases so far; dequeue.c */
    struct table project_turns;    /* of struct project_turn, of dequeue.c */
    uint32_t due_kind, wait_kind;  /* of timers: runs, dequeues */
    uint32_t doubt_kind;           /* and doubts */
    uint32_t refill_kind;          /* of engine_share::refill */
    uint32_t retry_kind;           /* of retry_timer */
    engine_sessions_fn *on_sessions; /* NULL: no listener */
    void *sessions_owner;
    engine_notice_fn *on_notice; /* NULL: no listener */
    void *notice_owner;
    engine_change_fn *on_change; /* NULL: no listener */
    void *change_owner;
    engine_drop_fn *on_drop; /* NULL: no listener */
    void *drop_owner;
    bool draining, stopped;
    bool follows;    /* it decides nothing (engine_follow) */
    bool is_loading; /* some runs that hold slots may not be in memory yet */
};

static inline struct engine_share *engine_share_of(const struct environment *env)
{
    return slots_get(&env->engine->shares, env->number);
}

/* Returns the storage quota of the environment's project; NULL if it has none. */
static inline struct quota *engine_storage_quota(const struct environment *env)
{
    return slots_get(&env->engine->stored, env->number);
}

/* ---- state.c ---- */

/* Returns true if the last commit failed, or there is no space for another. */
bool engine_store_fails(const struct engine *engine);

/* Returns true if this gateway follows a leader that has dropped the environment. */
bool engine_was_left(const struct environment *env);

/* Wakes the evictor if the finished runs of the environment exceed its budget. */
void engine_evict(struct engine *engine, const struct environment *env);

/* Notifies the listener that the run's worker must look at it (engine_on_notice). */
void engine_notice(const struct engine *engine, const struct tracked *run);

/* Returns the creation time of a run created now, Unix ms. It is not before that of any
 * loaded run, unless those were created while the clock was more than CREATED_AHEAD_MS
 * ahead. */
int64_t engine_creation_ms(const struct engine *engine);

/* Returns the monotonic deadline of a wall-clock time. */
int64_t engine_deadline(const struct engine *engine, int64_t unix_ms);
