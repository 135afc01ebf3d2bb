/* kept_controllers.h - controllers that are kept for another run of their version.
 *
 *   its run is done ─► GET /warm-start, held ─► a run of the same version, environment and
 *                           │                   machine: it is the answer ─► it starts
 *                           │                        └─ not within START_MS: begun anew, cold
 *                           └─ kept too long, or another version came: it ends
 *
 * A run that was handed to a poll which its client had just dropped would be lost until its
 * lease is over. So it is begun anew soon; the gateway refuses a start from a snapshot that was
 * used, so at most one of both executes it. */
#pragma once

#include "supervisor/runners/runner.h"

struct kept_controllers;

/* most: at once; 0: none are kept. */
struct kept_controllers *kept_controllers_create(struct loop *loop,
                                                 struct runner_shared *shared,
                                                 unsigned most, int64_t keep_ms,
                                                 int64_t poll_ms);
void kept_controllers_destroy(struct kept_controllers *kept);

/* How long it may ask. */
void kept_controllers_answer_connect(struct kept_controllers *kept, struct exchange *x);

/* Holds the question of a controller, or refuses: then it ends. */
void kept_controllers_hold(struct kept_controllers *kept, struct exchange *x,
                           struct runner *runner);

/* The client of that exchange is gone. */
void kept_controllers_drop(struct kept_controllers *kept, struct exchange *x);

/* False: none is kept for such a run. Else takes over message and place. */
bool kept_controllers_hand_over(struct kept_controllers *kept, struct run_message *message,
                                const struct machine_place *place);

/* All of them end. */
void kept_controllers_end(struct kept_controllers *kept);
void kept_controllers_forget(struct kept_controllers *kept, struct runner *runner);
