/* building.h - builds what the gateway hands out, one deployment at a time.
 *
 *   dequeue, held ─► version_job ─► complete ─► dequeue …
 *                    └── every 2 s: heartbeat, with the log
 *
 * The gateway rejects a heartbeat when the deployment is no longer ours because it was
 * canceled or its deadline has passed. Then the children are killed, and nothing is
 * reported. */
#pragma once

#include "supervisor/versions/version_job.h"

struct building;

/* Borrows both for as long as it lives. Returns NULL if the settings disable builds. */
struct building *building_create(const struct version_shared *shared, const char *instance);

/* Stops dequeuing and abandons the current build, which the gateway hands out again.
 *
 * Ignores NULL. */
void building_stop(struct building *building);

/* Returns true if no build or call is left, some time after building_stop. NULL is idle. */
bool building_is_idle(const struct building *building);

/* Requires building_is_idle. Ignores NULL. */
void building_destroy(struct building *building);
