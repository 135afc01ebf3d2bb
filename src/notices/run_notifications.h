/* run_notifications.h - tells workers which of their runs to look at (worker-protocol §1.8).
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
struct notifier;

struct notifier *notifier_create(struct api *api);
/* Every socket has closed. NULL is fine. */
void notifier_destroy(struct notifier *notifier);

/* Each is closed at a moment of its own, within a third of the timeout: their clients come
 * back by themselves. */
void notifier_drain(struct notifier *notifier, int64_t timeout_ms);

/* Closes those whose credential has ended, at most so many. False: there are more. */
bool notifier_end(struct notifier *notifier, int64_t now_ms, size_t at_most);

size_t notifier_count(const struct notifier *notifier);
