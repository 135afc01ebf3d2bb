/* fleet.h - the workers, versions and sessions of one environment.
 *
 *   workers   registered versions, and their tasks             (worker_versions.h)
 *   sessions  in dev: which of the versions are connected      (dev_sessions.h)
 *   line      dequeues now waiting for a run                   (line.h)
 *   leases    which request got which run                      (leases.h)
 *   log       runs that no worker executes, for the log        (waiting_log.h)
 *
 * A fleet knows which worker could execute a run, and why none does (versions.h,
 * waiting.h). The engine decides which worker gets it, and is notified when that may have
 * changed. */
#pragma once

#include "core/fleet/waiting_log.h"
#include "core/live/environment.h"

/* Shared by the fleets of all environments; its owner fills it in and calls fleets_init. */
struct fleets {
    struct loop *loop;
    /* The tasks that can be executed have changed. */
    void (*on_change)(void *owner, struct environment *env);
    /* Returns the storage quota of the environment's project if it is reached, otherwise
     * NULL. */
    const struct quota *(*full_quota)(const struct environment *env);
    void *owner;
    uint32_t session_kind;     /* of the timers of sessions */
    uint32_t waiting_log_kind; /* of waiting_log::timer */
    bool is_draining;          /* workers leave because the gateway is stopping */
};

struct fleet {
    struct fleets *shared;
    struct workers *workers;
    struct dev_sessions *sessions;
    struct leases *leases;
    struct waiting_log waiting_log;
    struct list line;     // dequeue_seat::link; workers that wait; not in dev
    struct table named;   // dequeue_seat by request_id, at most one each
    uint32_t seated;      /* dequeues that wait; in dev, in lines of sessions */
    int64_t served_until; /* monotonic ms: until then a worker counts as connected */
    uint32_t open_seats;  /* how many of them take runs of plain registrations */
    int64_t open_until;   /* as served_until, for those */
};

void fleets_init(struct fleets *fleets);

/* For a newly created environment; sets environment::fleet. */
void fleet_create(struct fleets *fleets, struct environment *env);
/* Requires that no dequeue waits. */
void fleet_destroy(struct fleet *fleet);

/* Notifies the owner that the available tasks have changed, or a session may be missing
 * now. */
static inline void fleet_changed(struct environment *env)
{
    struct fleets *shared = env->fleet->shared;
    shared->on_change(shared->owner, env);
}
