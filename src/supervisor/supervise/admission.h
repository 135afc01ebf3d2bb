/* admission.h - decides which dequeued run begins, and when.
 *
 *   admission_take ─► a place? ─► a kept controller, or a new runner
 *                       └─ not now: the run waits, and nothing else is admitted
 *                              └─ not in time: released to the gateway
 *
 * A place is the CPU and memory of one run (places.h). The gateway knows how much is free,
 * so few runs must wait: those whose place was taken while they were being dequeued. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"
#include "supervisor/gateway_client/run_message.h"
#include "supervisor/runners/places.h"

struct admission;
struct runner_shared;
struct workload;

/* on_room is called when there may be more free places. workload: its kept controllers are
 * tried first. All arguments must outlive it. */
struct admission *admission_create(struct runner_shared *shared, struct workload *workload,
                                   void (*on_room)(void *owner), void *owner);

/* Requires that no run waits. Ignores NULL. */
void admission_destroy(struct admission *admission);

/* Takes ownership of the message. */
void admission_take(struct admission *admission, struct run_message *message);

/* Starts waiting runs that now get a place. Call it when a place may be free. */
void admission_look(struct admission *admission);

/* Releases all waiting runs to the gateway, with this reason. */
void admission_give_back(struct admission *admission, const char *reason);

/* Returns the machine presets that have room for one more run, as bits; 0: none. */
unsigned admission_machines(const struct admission *admission);

/* Appends the most that one more run may take, as a JSON object.
 *
 * Returns false and appends nothing if there is no limit. */
bool admission_write_capacity(const struct admission *admission, struct buf *out);
