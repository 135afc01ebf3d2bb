/* sockets.h - all WebSocket clients together: drain, move, floor.
 *
 * api/router/services.c creates them. Their feeds send through socket_feed_ops. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct environment;
struct feed_ops;
struct sockets;

struct sockets *sockets_create(struct loop *loop);

/* If the next process follows, this one serves for DRAIN_LINGER_MS and then closes its
 * clients. Each gets its own moment after that, within DRAIN_RETURN_MS, at which to come
 * back. */
enum {
    DRAIN_LINGER_MS = 500,
    DRAIN_RETURN_MS = 4000,
    DRAIN_STEP = 2473, /* from one moment to the next; even a few are far apart */
};

/* Sends `drain` to each client, with the moment at which to reconnect. Clients that do not
 * leave by themselves are closed: all together if the next process follows, otherwise
 * spread over at most two thirds of the timeout. Those that have not sent hello are closed
 * at once. */
void sockets_drain(struct sockets *sockets, int64_t timeout_ms, bool has_next);

/* Closes each client with CLOSE_MOVED, when this process knows that another one leads. */
void sockets_move(struct sockets *sockets);

/* Sends `floor` to each client of an environment whose floor retention has moved. */
void sockets_send_floor(struct sockets *sockets, const struct environment *env);

size_t sockets_count(const struct sockets *sockets);

extern const struct feed_ops socket_feed_ops;
