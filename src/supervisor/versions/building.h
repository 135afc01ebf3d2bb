/* building.h - builds what the gateway hands out, one deployment after the other.
 *
 *   dequeue, held ─► version_job ─► complete ─► dequeue …
 *                    └── every 2 s: heartbeat, with the log
 *
 * The gateway refuses a heartbeat when the deployment is not ours any more: it was canceled, or
 * its time has passed. Then the children are killed, and nothing is reported. */
#pragma once

#include "supervisor/versions/version_job.h"

struct building;

/* Both are borrowed for as long as it lives. Returns NULL if the settings do not want builds. */
struct building *building_create(const struct version_shared *shared, const char *instance);

/* Asks no more; what is being built is given up, and the gateway has it built anew.
 * NULL is fine. */
void building_stop(struct building *building);

/* Nothing of it is left: after building_stop, in a while. NULL is. */
bool building_is_idle(const struct building *building);

/* It is idle. NULL is fine. */
void building_destroy(struct building *building);
