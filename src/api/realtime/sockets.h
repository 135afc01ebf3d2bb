/* sockets.h - all WebSocket clients, for api/router/services.c; and what sends for their
 * feeds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct environment;
struct feed_ops;
struct sockets;

struct sockets *sockets_create(struct loop *loop);

/* When the next process follows, this one serves so long, and closes who listens; they are told to
 * come back from then on, within the second time, each at a moment of its own. */
enum {
    DRAIN_LINGER_MS = 500,
    DRAIN_RETURN_MS = 4000,
    DRAIN_STEP = 2473, /* from one moment to the next: few of them are far apart, too */
};

/* `drain` to each, with the moment at which to come back. Those that do not leave by themselves
 * are closed: together when the next process follows, else spread over at most a third of the
 * timeout twice. Those that have not said hello are closed at once. */
void sockets_drain(struct sockets *sockets, int64_t timeout_ms, bool has_next);

/* Closes each with CLOSE_MOVED: this process knows that another one leads. */
void sockets_move(struct sockets *sockets);

/* Retention has moved the environment's floor: `floor` to each of its clients. */
void sockets_tell_floor(struct sockets *sockets, const struct environment *env);

size_t sockets_count(const struct sockets *sockets);

extern const struct feed_ops socket_feed_ops;
