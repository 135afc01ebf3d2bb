/* run_notifications.h - tells workers which of their runs to look at.
 *
 *   the engine: a snapshot that the worker did not ask for ─► subscribed sockets
 *                                                             ─► run:notify, same turn
 *
 * A notice carries no state: the worker asks for the newest snapshot. So a run is noted at
 * most once for a socket that does not read, and a socket that comes late is told of what
 * it may have missed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api;
struct run_notifications;

struct run_notifications *run_notifications_create(struct api *api);
/* Every socket has closed. NULL is fine. */
void run_notifications_destroy(struct run_notifications *all);

/* Each is closed at a moment of its own, within so long: their clients come back by
 * themselves. */
void run_notifications_drain(struct run_notifications *all, int64_t most_ms);

/* Closes each with CLOSE_MOVED: this process knows that another gateway leads. */
void run_notifications_move(struct run_notifications *all);

/* Closes those whose credential has ended, at most so many. False: there are more. */
bool run_notifications_end(struct run_notifications *all, int64_t now_ms, size_t at_most);

size_t run_notifications_count(const struct run_notifications *all);
