/* stored_activity.h - stores the activity of environments, so that it survives a restart.
 *
 *   every quarter of an hour, and at a stop ─► environments that changed ─► one document
 *   after the other (core/counters/activity_document.h)
 *
 * A killed process loses at most the last quarter of an hour. */
#pragma once

#include "api/request/call.h"

struct stored_activity;

struct stored_activity *stored_activity_create(struct api *api);
/* Requires stored_activity_has_ended. Ignores NULL. */
void stored_activity_destroy(struct stored_activity *stored);

/* Stores what changed, now and every quarter of an hour. */
void stored_activity_start(struct stored_activity *stored);

/* Stores what changed one last time. */
void stored_activity_stop(struct stored_activity *stored);
bool stored_activity_has_ended(const struct stored_activity *stored);

/* Restores a document into memory. A damaged one is logged; its readable part is used. */
void stored_activity_restore(struct environment *env, const struct document *document);
