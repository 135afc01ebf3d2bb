/* connection_limit.h - room for a connection that stays: a WebSocket, an event stream, the reader or
 * the piping writer of a stream, a held poll, a dequeue, the notice socket or the presence
 * of a worker. The token of a worker serves several environments, and its seat is one of the
 * first of them. An environment has --realtime-connections seats and a project more
 * (gateway.c shares them out), so that nobody takes all connections of the gateway. */
#pragma once

#include "call/call.h"

struct seat {
    struct environment *env; /* NULL: not taken */
};

/* Nothing changes if it is taken in this environment already; in another it is left. */
enum err seat_take(struct seat *seat, struct environment *env, struct failure *why);

/* Nothing happens if it is not taken. */
void seat_leave(struct seat *seat);
