/* registering.h - a version is registered: from the pieces of a body to a worker that is there.
 *
 *   pieces ─► registering_take
 *   call   ─► registering_end, _begin ─► read, a few tasks a turn ─► document written, synced
 *                                                                │
 *     in dev: current at once, its declared schedules follow ◄───┤
 *     elsewhere: promoted (promotion.h) ◄────────────────────────┤
 *     of a deployment: there, until it is promoted ◄─────────────┴─► done
 *
 * A registration of the build that is current already is that version again. */
#pragma once

#include "api/request/call.h"
#include "core/fleet/worker_versions.h"

/* The version that a call has registered, as it was then. */
struct registered {
    char id[ID_MAX];
    char version[WORKER_VERSION_MAX];
    char content_hash[128];
};

/* What the worker of a deployment is known by: the members of struct worker. */
struct registering_deployment {
    char id[ID_MAX];
    char version[WORKER_VERSION_MAX]; /* which is its own (workers_take_version) */
    char short_code[16];
    char external_id[3 * EXTERNAL_ID_MAX + 1];
    char archive_hash[65];
    char runtime[WORKER_RUNTIME_MAX];
};

/* made: NULL when status is not OK, of which call->why then says more. The call is the
 * owner's again, to be answered. */
typedef void registering_done_fn(struct api_call *call, const struct registered *made,
                                 enum err status);

/* For route.on_body. ERR_INVALID with a reason, here and below: nothing is left of it then. */
enum err registering_take(struct api_call *call, struct slice piece);

/* All pieces have come. One of the next two follows. */
enum err registering_end(struct api_call *call);

/* deployment: copied; NULL: a plain registration. Its version is not
 * reused for another deployment of the same content, nor promoted, and touches neither
 * schedules nor limits; nobody can lock a run to it until it is DEPLOYED (versions.h). */
void registering_begin(struct api_call *call,
                       const struct registering_deployment *deployment,
                       registering_done_fn *done);

/* What was taken is given back. */
void registering_drop(struct api_call *call);
