/* versions.h - whether the version of the worker that is to execute a run is there.
 *
 *   made, delay over, registered, promoted ─► versions_judge ─► QUEUED or PENDING_VERSION
 *
 * A run that is locked to a version wants that one, any other the current one of its
 * environment (worker_versions.h); in dev both are wanted of a session (sessions.h). Who waits is
 * found by the sweep when another version is current, or other sessions are there. */
#pragma once

#include "fleet/fleet.h"

enum version_verdict {
    VERSION_IS_THERE,   /* and it has the run's task */
    VERSION_UNDECIDED,  /* in dev: no session is there, or may be back in a moment */
    VERSION_NONE,       /* no version is registered; the one it is locked to is not there */
    VERSION_LACKS_TASK, /* the one that the run wants has not its task, nor any session */
};

enum version_verdict versions_judge(const struct environment *env, const struct run *run);

/* The run has to wait for a version: none that could come to it by itself has its task. */
bool versions_lack(const struct environment *env, const struct run *run);
