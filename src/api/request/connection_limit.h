/* connection_limit.h - limits the long-lived connections of an environment and its project.
 *
 * These are WebSockets, event streams, readers and piping writers of streams, held polls
 * and calls, dequeues, notice sockets and presences of workers.
 *
 * Each takes a seat, which is one unit of the limit. An environment has
 * --realtime-connections seats, and a project more (gateway.c divides them), so that no
 * project takes all connections of the gateway. A worker's token serves several
 * environments, and takes a seat of the first. */
#pragma once

#include "api/request/call.h"

struct seat {
    struct environment *env; /* NULL: not taken */
    struct quota *quota;     /* where the environment's seats are counted (quotas.h) */
};

/* Takes a seat of the environment. Does nothing if `seat` has one there already; leaves one
 * in another environment first. Returns ERR_BUSY if none is free. */
enum err connection_limit_take(struct seat *seat, struct api *api, struct environment *env,
                               struct failure *why);

/* Does nothing if no seat is taken. */
void connection_limit_leave(struct seat *seat);
