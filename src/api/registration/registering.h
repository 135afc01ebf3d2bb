/* registering.h - registers a version, from the pieces of a body to a known worker.
 *
 *   pieces ─► registering_take
 *   call   ─► registering_end, _begin ─► read, a few tasks per turn ─► document synced
 *                                                                │
 *     in dev: current at once, its declared schedules follow ◄───┤
 *     elsewhere: promoted (promotion.h) ◄────────────────────────┤
 *     of a deployment: known, until it is promoted ◄─────────────┴─► done
 *
 * If the build is already the current version, registering it again returns that
 * version. */
#pragma once

#include "api/request/call.h"
#include "core/fleet/worker_versions.h"

/* The version that a call has registered, as it was at that time. */
struct registered {
    char id[ID_MAX];
    char version[WORKER_VERSION_MAX];
    char content_hash[128];
};

/* The identity of a deployment's worker: members of struct worker. */
struct registering_deployment {
    char id[ID_MAX];
    char version[WORKER_VERSION_MAX]; /* its own, by workers_take_version */
    char short_code[16];
    char external_id[3 * EXTERNAL_ID_MAX + 1];
    char archive_hash[65];
    char runtime[WORKER_RUNTIME_MAX];
};

/* made: NULL if status is not OK; call->why then has the reason. The owner must now reply
 * to the call. */
typedef void registering_done_fn(struct api_call *call, const struct registered *made,
                                 enum err status);

/* Takes a piece of the body; for route.on_body. Returns ERR_INVALID with a reason, here and
 * below; everything taken is then freed. */
enum err registering_take(struct api_call *call, struct slice piece);

/* Ends the body, after all pieces were taken. Then call one of the next two. */
enum err registering_end(struct api_call *call);

/* Registers the version. deployment: copied; NULL: a plain registration. A deployment's
 * version is not reused for another one with the same content, is not promoted, and changes
 * neither schedules nor limits. No run can be locked to it until it is DEPLOYED
 * (versions.h). */
void registering_begin(struct api_call *call,
                       const struct registering_deployment *deployment,
                       registering_done_fn *done);

/* Frees what was taken. */
void registering_drop(struct api_call *call);
