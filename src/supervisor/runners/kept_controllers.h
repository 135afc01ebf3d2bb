/* kept_controllers.h - keeps idle controllers for another run of their version.
 *
 *   its run is done ─► GET /warm-start, held ─► a run of the same version, environment and
 *                           │                   machine: returned to the poll ─► it starts
 *                           │                        └─ not within START_MS: begun again
 *                           └─ kept too long, or another version arrived: it exits
 *
 * A run may be handed to a poll that its client has just dropped. If it were not begun
 * again, it would be lost until its lease expires. The gateway rejects a start from a
 * snapshot that was already used, so at most one of the two processes executes the run. */
#pragma once

#include "supervisor/runners/runner.h"

struct kept_controllers;

/* most: at most this many controllers are kept at once; 0: none. */
struct kept_controllers *kept_controllers_create(struct loop *loop,
                                                 struct runner_shared *shared,
                                                 unsigned most, int64_t keep_ms,
                                                 int64_t poll_ms);
void kept_controllers_destroy(struct kept_controllers *kept);

/* Replies with how long the controller may poll. */
void kept_controllers_answer_connect(struct kept_controllers *kept, struct exchange *x);

/* Holds a controller's poll, or rejects it, upon which the controller exits. */
void kept_controllers_hold(struct kept_controllers *kept, struct exchange *x,
                           struct runner *runner);

/* The client of that exchange has disconnected. */
void kept_controllers_drop(struct kept_controllers *kept, struct exchange *x);

/* Hands the run to a matching kept controller, and takes ownership of message and place.
 *
 * Returns false and takes nothing if there is none. */
bool kept_controllers_hand_over(struct kept_controllers *kept, struct run_message *message,
                                const struct machine_place *place);

/* Rejects the polls of all kept controllers, which then exit. */
void kept_controllers_end(struct kept_controllers *kept);
void kept_controllers_forget(struct kept_controllers *kept, struct runner *runner);
