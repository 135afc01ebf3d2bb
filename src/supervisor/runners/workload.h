/* workload.h - the workload API: HTTP for controllers, on a separate loopback port.
 *
 *   controller ── runner id and token ──► its own run? ─► forwarded to the gateway
 *                                                 └─ no: 404, whatever else it requests
 *
 * Every user of the machine can reach the port. A token admits the calls for one run;
 * anything else gets the same response as if it did not exist. Operators read metrics on a
 * second listener (runner_figures.h). */
#pragma once

#include "net/http/server.h"
#include "supervisor/runners/runner.h"

struct workload;

struct workload_options {
    struct runner_shared *shared;
    unsigned kept_max;             /* controllers kept for another run; 0: none */
    int64_t keep_ms;               /* how long a controller is kept */
    int64_t poll_ms;               /* how long one poll of a kept controller may take */
    struct listen_options figures; /* listener for metrics; not for controllers */
};

/* options->shared must outlive it. */
enum err workload_create(struct loop *loop, const struct workload_options *options,
                         struct workload **workload, struct failure *why);

int workload_port(const struct workload *workload);

/* Notifies the controller that its run has changed, if it has a socket open. */
void workload_notify(struct workload *workload, struct slice run);

/* Hands the run to a matching kept controller, and takes ownership of message and place.
 *
 * Returns false and takes nothing if there is none. */
bool workload_hand_over(struct workload *workload, struct run_message *message,
                        const struct machine_place *place);

/* Ends all kept controllers. */
void workload_end_kept(struct workload *workload);

/* Call it before the runner is freed. */
void workload_forget(struct workload *workload, struct runner *runner);

/* Stops forwarding calls. Calls closed after it was freed. */
void workload_close(struct workload *workload, void (*closed)(void *owner), void *owner);
