/* versions.h - whether the version of the worker that is to execute a run is there.
 *
 *   made, delay over, registered, promoted ─► versions_judge ─► QUEUED or PENDING_VERSION
 *
 * A run that is locked to a version wants that one; one whose trigger names a deployment by its
 * user's id wants the version of that, and is locked to it as soon as it is there; any other the
 * current one of its environment (worker_versions.h). In dev all are wanted of a session
 * (dev_sessions.h). Who waits is found by the sweep when another version is current, a deployment with
 * an id is DEPLOYED, or other sessions are there. */
#pragma once

#include "core/fleet/fleet.h"

enum version_verdict {
    VERSION_IS_THERE,   /* and it has the run's task */
    VERSION_UNDECIDED,  /* in dev: no session is there, or may be back in a moment */
    VERSION_NONE,       /* no version is current; the one that the run wants is not there */
    VERSION_LACKS_TASK, /* the one that the run wants has not its task, nor any session */
    /* It has the task, and no version that is kept declares the queue. "task/<id>" is always there. */
    VERSION_LACKS_QUEUE,
};

enum version_verdict versions_judge(const struct environment *env, const struct run *run);

/* The run has to wait for a version: none that could come to it by itself has its task. */
bool versions_lack(const struct environment *env, const struct run *run);

/* A run whose trigger names a deployment is locked to the version of that, if it is there and
 * has its task. */
void versions_lock(const struct environment *env, struct run *run);

/* Outside of dev: the version that the run is to have was registered by a worker that has its
 * code, and not deployed. */
bool versions_is_plain(const struct environment *env, const struct run *run);

struct worker;

/* The deployment of the worker is DEPLOYED: runs may be locked to its version, and those that
 * wait for its user's id are released, promoted or not. */
void versions_deployed(struct environment *env, struct worker *worker);
