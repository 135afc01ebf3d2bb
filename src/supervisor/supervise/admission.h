/* admission.h - which dequeued run begins, and when: in a place that it takes, or later.
 *
 *   admission_take ─► a place? ─► a kept controller, or a new runner
 *                       └─ not now: kept aside, and there is room for nothing else
 *                              └─ not in time: given back to the gateway
 *
 * The gateway is told what there is room for, so that few runs are kept aside: those for which
 * the room went while they were on their way. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"
#include "supervisor/gateway_client/run_message.h"
#include "supervisor/runners/places.h"

struct admission;
struct runner_shared;
struct workload;

/* on_room: there may be more room than before. workload: whose kept controllers are asked
 * first; all of them outlive it. */
struct admission *admission_create(struct runner_shared *shared, struct workload *workload,
                                   void (*on_room)(void *owner), void *owner);

/* Nothing is kept aside. NULL is fine. */
void admission_destroy(struct admission *admission);

/* Takes over the message. */
void admission_take(struct admission *admission, struct run_message *message);

/* There may be a place for what is kept aside. */
void admission_look(struct admission *admission);

/* Gives back what is kept aside, for this reason. */
void admission_give_back(struct admission *admission, const char *reason);

/* The machines of which one run more fits, as bits; 0: there is no room. */
unsigned admission_machines(const struct admission *admission);

/* Appends what is left for one run, an object of JSON. False, and nothing: whatever the run
 * takes. */
bool admission_tell_room(const struct admission *admission, struct buf *out);
