/* deployment_calls.h - the handlers of deployment routes, by file. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/route.h"
#include "core/fleet/fleet.h"

/* initialize.c */
route_fn deployment_initialize;

/* deployment_register.c */
enum err deployment_register_piece(struct api_call *call, struct slice piece);
route_fn deployment_register;

/* deployment_ends.c */
route_fn deployment_fail, deployment_cancel, deployment_progress, deployment_promote,
    deployment_finalize;

/* deployment_reads.c */
route_fn deployment_retrieve, deployment_list, deployment_current, deployment_latest,
    deployment_log;

/* deployment_settings.c */
route_fn deployment_settings;

/* build_calls.c */
route_fn build_dequeue, build_heartbeat, build_complete, build_archive, build_index;

/* Returns the deployment in the call's environment that its first parameter names; NULL
 * with ERR_NOT_FOUND in why if there is none. */
struct deployment *deployment_of_call(struct api_call *call);
