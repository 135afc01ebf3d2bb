/* workload.h - the API that controllers speak: HTTP on loopback, at a port of its own. Beside
 * it, for those who run the role, figures are read (runner_figures.h).
 *
 *   controller ── its runner's id and token ──► its own run? ─► passed on to the gateway
 *                                                 └─ no: 404, whatever else is asked
 *
 * Every user of the machine can reach the port. A token opens the calls of one run, and all
 * that it does not open answers as what does not exist. */
#pragma once

#include "net/http/server.h"
#include "supervisor/runners/runner.h"

struct workload;

struct workload_options {
    struct runner_shared *shared;
    unsigned kept_max;             /* controllers that are kept for another run; 0: none */
    int64_t keep_ms;               /* for so long */
    int64_t poll_ms;               /* of one question of theirs */
    struct listen_options figures; /* where figures are read; not for controllers */
};

/* shared outlives it. */
enum err workload_create(struct loop *loop, const struct workload_options *options,
                         struct workload **workload, struct failure *why);

int workload_port(const struct workload *workload);

/* Its controller is told to look at this run, if it listens. */
void workload_notify(struct workload *workload, struct slice run);

/* Gives the run to a controller that is kept for such a one, and takes over message and place.
 * False: there is none. */
bool workload_hand_over(struct workload *workload, struct run_message *message,
                        const struct machine_place *place);

/* Controllers that are kept end. */
void workload_end_kept(struct workload *workload);

/* The runner is about to go. */
void workload_forget(struct workload *workload, struct runner *runner);

/* No call is passed on any more. closed is called when it is gone. */
void workload_close(struct workload *workload, void (*closed)(void *owner), void *owner);
