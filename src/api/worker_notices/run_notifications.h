/* run_notifications.h - notifies workers of runs that they must look at.
 *
 *   the engine: a snapshot that the worker did not request ─► subscribed sockets
 *                                                             ─► run:notify, same turn
 *
 * A notice carries no state: the worker then requests the newest snapshot. So at most one
 * notice per run waits for a socket that does not read, and a socket that subscribes late
 * is notified of changes that it may have missed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api;
struct run_notifications;

struct run_notifications *run_notifications_create(struct api *api);
/* Requires that every socket has closed. Ignores NULL. */
void run_notifications_destroy(struct run_notifications *all);

/* Closes the sockets, each at a different moment within most_ms: clients reconnect by
 * themselves. */
void run_notifications_drain(struct run_notifications *all, int64_t most_ms);

/* Closes each with CLOSE_MOVED, because another gateway leads. */
void run_notifications_move(struct run_notifications *all);

/* Closes sockets whose credential has ended, at most that many. Returns false if there are
 * more. */
bool run_notifications_end(struct run_notifications *all, int64_t now_ms, size_t at_most);

size_t run_notifications_count(const struct run_notifications *all);
