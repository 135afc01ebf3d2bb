/* sockets.h - all WebSocket clients, for api/services.c; and what sends for their feeds. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct environment;
struct feed_ops;
struct sockets;

struct sockets *sockets_create(struct loop *loop);

/* `drain` to each; those that do not leave by themselves are closed, spread over at most
 * a third of the timeout twice, and those that have not said hello at once. */
void sockets_drain(struct sockets *sockets, int64_t timeout_ms);

/* Retention has moved the environment's floor: `floor` to each of its clients. */
void sockets_tell_floor(struct sockets *sockets, const struct environment *env);

size_t sockets_count(const struct sockets *sockets);

extern const struct feed_ops socket_feed_ops;
