/* stored_uses.h - stores when keys and tokens were last used, so that it survives a restart.
 *
 *   every hour, and at a stop ─► keys and tokens that were used since ─► their documents, as
 *   many in one commit as fit
 *
 * A follower reports its uses to the leader (server/memory/reported_uses.h). A killed process
 * loses at most the uses of the last hour. A lasting sign-in is written with
 * each use anyway (accounts/lasting.h). */
#pragma once

#include "api/request/call.h"

struct stored_uses;

struct stored_uses *stored_uses_create(struct api *api);
/* Requires stored_uses_has_ended. Ignores NULL. */
void stored_uses_destroy(struct stored_uses *stored);

/* Stores uses every hour from now on. */
void stored_uses_start(struct stored_uses *stored);

/* Stores uses one last time. */
void stored_uses_stop(struct stored_uses *stored);
bool stored_uses_has_ended(const struct stored_uses *stored);
