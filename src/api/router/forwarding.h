/* forwarding.h - sends calls that only the leader answers to it, while this gateway follows.
 *
 *   head ─► waits for a leader ─► sent ─► response, piece by piece ─► ended
 *             ▲    │                │
 *             │    │                └─ the leader is lost before it responds, and the call may
 *             └────│────────────────── be sent again: the first 64 KiB of its body are kept
 *                  ├─ this gateway leads: the call enters, as if it had just arrived
 *                  └─ 8 s have passed: 503
 *
 * The leader authenticates the call and counts it for its client. Here it takes a place of
 * its project, so that no project uses all connections to the leader. A request that could
 * take effect twice gets a key, unless its client sent one (route::claims). */
#pragma once

#include "api/request/call.h"

struct forwarding;

/* Called when this gateway leads. body: what has arrived of it, kept until the call ends.
 * complete: that is all. */
typedef void forwarding_enter_fn(struct api_call *call, bool complete);

struct forwarding *forwarding_create(struct api *api, forwarding_enter_fn *enter);
/* Requires that no call and no tunnel is left. */
void forwarding_destroy(struct forwarding *forwarding);

/* Takes a call whose head has arrived: it is answered from now on. Returns false if this
 * gateway never forwards. */
bool forwarding_take(struct forwarding *forwarding, struct api_call *call);

/* A piece of the body, or the end of the request, of a call that was taken
 * (api_call::forwarded). */
void forwarding_take_body(struct api_call *call, struct slice piece);
void forwarding_take_end(struct api_call *call);

/* A gateway leads, maybe this one: calls that wait need not wait longer. */
void forwarding_look(struct forwarding *forwarding);

/* Refuses all calls that have not been sent to a leader. */
void forwarding_refuse(struct forwarding *forwarding, const char *why);

/* Ends all calls now, because this gateway stops. */
void forwarding_stop(struct forwarding *forwarding);
