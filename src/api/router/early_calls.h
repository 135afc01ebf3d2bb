/* early_calls.h - holds calls that come before this gateway leads, unread, until it does.
 *
 *   head ─► held ─┬─ the gateway is ready: enters, as if it came now
 *                 ├─ HELD_MS has passed, or the gateway ends: refused with 503
 *                 └─ the client leaves
 *
 * A proxy sends calls to a gateway that stands by only while no gateway leads. Clients are
 * unknown before accounts are loaded, so a call counts for its address, and none of its
 * body is read. */
#pragma once

#include "api/request/call.h"

struct early_call;
struct early_calls;

/* Called when a held call enters; it is refused if the gateway still is not ready.
 * complete: the whole request has come; otherwise its body must be resumed. */
typedef void early_enter_fn(struct api_call *call, bool complete);

struct early_calls *early_calls_create(struct loop *loop, early_enter_fn *enter);
/* Requires that no call is held any more. */
void early_calls_destroy(struct early_calls *calls);

/* Holds a call whose head has come. Returns false if too many are held, of its client or in
 * all. */
bool early_calls_hold(struct early_calls *calls, struct api_call *call);

/* Notes that the whole request of a held call has come. */
void early_call_complete(struct early_call *early);

/* Lets all calls enter in the order in which they came, in time slices. */
void early_calls_enter(struct early_calls *calls);

/* Lets all calls enter now, to be refused. */
void early_calls_end(struct early_calls *calls);
