/* fleet.h - who executes the runs of one environment.
 *
 *   workers   which versions are registered, and their tasks   (worker_versions.h)
 *   sessions  in dev: which of the versions are there          (dev_sessions.h)
 *   line      who waits for a run now                          (line.h)
 *   leases    which request was answered with which run        (leases.h)
 *   lookout   which run nobody executes, for the log           (lookout.h)
 *
 * It says who could execute a run, and why nobody does (versions.h, waiting.h); who gets it is
 * the engine's to decide, which is told when the answer may be another one. */
#pragma once

#include "core/fleet/lookout.h"
#include "core/live/environment.h"

/* What the fleets of all environments share; its owner fills it in and calls fleets_init. */
struct fleets {
    struct loop *loop;
    void (*on_change)(void *owner, struct environment *env); /* other tasks are there */
    /* The room of the environment's project for what is stored, when it is full; else NULL. */
    const struct room *(*full_room)(const struct environment *env);
    void *owner;
    uint32_t session_kind; /* of the timers of sessions */
    uint32_t lookout_kind; /* of lookout::timer */
    bool is_draining;      /* who leaves now leaves because we do */
};

struct fleet {
    struct fleets *shared;
    struct workers *workers;
    struct dev_sessions *sessions;
    struct leases *leases;
    struct lookout lookout;
    struct list line;     // dequeue_seat::link; workers that wait; not in dev
    struct table named;   // dequeue_seat by request_id; one each
    uint32_t seated;      /* how many; in dev how many wait in lines of sessions */
    int64_t served_until; /* monotonic ms: a worker asked, and is taken to be there */
    uint32_t open_seats;  /* of those seated, who take runs of plain registrations too */
    int64_t open_until;   /* as served_until, of those */
};

void fleets_init(struct fleets *fleets);

/* Of an environment that was just made; sets environment::fleet. */
void fleet_create(struct fleets *fleets, struct environment *env);
/* Nobody waits any more. */
void fleet_destroy(struct fleet *fleet);

/* Other tasks than before are there, or may be missed now: the owner is told. */
static inline void fleet_changed(struct environment *env)
{
    struct fleets *shared = env->fleet->shared;
    shared->on_change(shared->owner, env);
}
