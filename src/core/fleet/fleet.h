/* fleet.h - the workers, versions and sessions of one environment.
 *
 *   workers   registered versions, and their tasks             (worker_versions.h)
 *   sessions  in dev: which of the versions are connected      (dev_sessions.h)
 *   line      dequeues that wait for a run now                 (line.h)
 *   leases    which request got which run                      (leases.h)
 *   log       runs that no worker executes, for the log        (waiting_log.h)
 *
 * A fleet answers which worker could execute a run, and why none does (versions.h,
 * waiting.h). The engine decides which worker gets it; it is notified when the answer may
 * have changed. */
#pragma once

#include "core/fleet/waiting_log.h"
#include "core/live/environment.h"

/* Shared by the fleets of all environments; its owner fills it in and calls fleets_init. */
struct fleets {
    struct loop *loop;
    /* The tasks that can be executed have changed. */
    void (*on_change)(void *owner, struct environment *env);
    /* Returns the storage quota of the environment's project if it is reached; NULL: it is
     * not. */
    const struct quota *(*full_quota)(const struct environment *env);
    void *owner;
    uint32_t session_kind;     /* of the timers of sessions */
    uint32_t waiting_log_kind; /* of waiting_log::timer */
    bool is_draining;          /* workers leave because the gateway ends */
};

struct fleet {
    struct fleets *shared;
    struct workers *workers;
    struct dev_sessions *sessions;
    struct leases *leases;
    struct waiting_log waiting_log;
    struct list line;     // dequeue_seat::link; workers that wait; not in dev
    struct table named;   // dequeue_seat by request_id, at most one each
    uint32_t seated;      /* how many wait; in dev, how many wait in lines of sessions */
    int64_t served_until; /* monotonic ms: until then a worker counts as connected */
    uint32_t open_seats; /* of those that wait, how many take runs of plain registrations */
    int64_t open_until;  /* as served_until, for those */
};

void fleets_init(struct fleets *fleets);

/* For an environment that was just created; sets environment::fleet. */
void fleet_create(struct fleets *fleets, struct environment *env);
/* Requires that no dequeue waits. */
void fleet_destroy(struct fleet *fleet);

/* Notifies the owner: the available tasks have changed, or a session may be missing now. */
static inline void fleet_changed(struct environment *env)
{
    struct fleets *shared = env->fleet->shared;
    shared->on_change(shared->owner, env);
}
