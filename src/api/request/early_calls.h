/* early_calls.h - holds calls that arrive before this gateway can serve them.
 *
 *   head ─► held ─┬─ the gateway is ready: enters, as if it had just arrived
 *                 ├─ HELD_MS has passed, or the gateway stops: refused with 503
 *                 └─ the client leaves
 *
 * A proxy sends calls to a standby gateway only while no gateway leads. Clients are unknown
 * before accounts are loaded, so a call counts for its address, and none of its body is
 * read.
 *
 * A gateway that follows holds a call until its memory is confirmed (core/live/certainty.h) in
 * two cases: the call may only begin with what the leader has by now, or its credential is
 * unknown here and may be new.
 *
 *   head or handler ─► confirming ─┬─ memory has what the leader has: enters once more
 *                                  ├─ CONFIRM_MS has passed: enters, and gets 503
 *                                  └─ the client leaves */
#pragma once

#include "api/request/call.h"

struct early_call;
struct early_calls;

/* Called when a held call enters; it is refused if the gateway is still not ready.
 * complete: the whole request has arrived; otherwise its body must be resumed. */
typedef void early_enter_fn(struct api_call *call, bool complete);

struct early_calls *early_calls_create(struct loop *loop, struct certainty *certainty,
                                       early_enter_fn *enter);
/* Requires that no call is held. */
void early_calls_destroy(struct early_calls *calls);

/* Holds a call whose head has arrived. Returns false if too many are held, from its client
 * or in total. */
bool early_calls_hold(struct early_calls *calls, struct api_call *call);

/* Notes that the whole request of a held call has arrived. */
void early_call_complete(struct early_call *early);

/* Lets all calls enter in order of arrival, in time slices. */
void early_calls_enter(struct early_calls *calls);

/* Lets all calls enter now, to be refused. */
void early_calls_end(struct early_calls *calls);
