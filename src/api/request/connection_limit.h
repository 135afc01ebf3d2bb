/* connection_limit.h - how many connections that stay an environment may have: WebSockets, event
 * streams, readers and piping writers of streams, held polls and calls, dequeues, notice sockets and
 * presences of workers.
 *
 * Each has a seat. An environment has --realtime-connections seats and a project more (gateway.c
 * shares them out), so that nobody takes all connections of the gateway. The token of a worker
 * serves several environments: its seat is one of the first of them. */
#pragma once

#include "api/request/call.h"

struct seat {
    struct environment *env; /* NULL: not taken */
    struct room *room;       /* of the environment's seats (rooms.h) */
};

/* Nothing changes if it is taken in this environment already; in another it is left. */
enum err connection_limit_take(struct seat *seat, struct api *api, struct environment *env,
                               struct failure *why);

/* Nothing happens if it is not taken. */
void connection_limit_leave(struct seat *seat);
