/* versions.h - whether the worker version that a run needs is available.
 *
 *   created, due, registered, promoted ─► versions_check ─► QUEUED or PENDING_VERSION
 *
 * A run locked to a version needs that one. If its trigger names a deployment by the user's
 * own id, it needs the version of that deployment, and is locked to it as soon as it
 * exists. Any other run needs the current version of its environment (worker_versions.h).
 * In dev, a session must have the version (dev_sessions.h).
 *
 * The sweep visits waiting runs when another version becomes current, a deployment with a
 * user's id becomes DEPLOYED, or sessions change. */
#pragma once

#include "core/fleet/fleet.h"

struct worker;
struct worker_task;

enum version_verdict {
    VERSION_IS_THERE,  /* and it has the run's task and queue */
    VERSION_UNDECIDED, /* in dev: there is no session, or one may return soon */
    VERSION_NONE,      /* no version is current, or the one that the run needs is missing */
    VERSION_LACKS_TASK, /* the version that it needs, or every session, lacks its task */
    /* The task exists, but no kept version declares the queue. "task/<id>" always
     * exists. */
    VERSION_LACKS_QUEUE,
};

enum version_verdict versions_check(const struct environment *env, const struct run *run);

/* Returns true if the run must wait for a version, because none that it could get has its
 * task. */
bool versions_lack(const struct environment *env, const struct run *run);

/* Locks a run whose trigger names a deployment to that deployment's version, if it exists
 * and has the task. */
void versions_lock(const struct environment *env, struct run *run);

/* Returns true if versions_take_limits would change what the run needs. */
bool versions_has_limits_for(const struct run *run, const struct worker_task *task);

/* Sets the limits and gates that the run needs, when it is known which task it executes
 * (NULL: not yet): those of the task. Its trigger may have replaced the named limits, the
 * gates, or both. Does nothing if the run has them already.
 *
 * They are a JSON array (core/queues/queue_needs.h). In it, null says that the named limits
 * are those of the task, which had none so far; an object, even {}, that the gates are
 * decided. */
void versions_take_limits(struct run *run, const struct worker_task *task);

/* Returns that array. limits, gates: its elements, separated by commas; NULL: those of the
 * task. */
struct bytes *versions_needs_text(const struct buf *limits, const struct buf *gates);

/* Outside of dev: returns true if the version for the run was registered by a worker that
 * has its code, and not deployed. */
bool versions_is_plain(const struct environment *env, const struct run *run);

/* The deployment of the worker became DEPLOYED. Runs may now be locked to its version, and
 * those that wait for its user's id are released, whether it is promoted or not. */
void versions_deployed(struct environment *env, struct worker *worker);
