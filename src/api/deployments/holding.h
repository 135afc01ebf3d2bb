/* holding.h - a call of the CLI that is held while its deployment is built.
 *
 *   first try ─► created ─┐        ┌─► built in time: 200, or 422 with the reason
 *   next try ─► the same ─┴─► held ┤
 *                                  └─► deploy-hold is over: 503, ask again; at the last try 200
 *
 * The CLI follows a build by no other means: what it is answered is what its user sees. It asks
 * five times at most, by one id. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/call.h"

enum { HOLDING_TRIES_MAX = 5 };

/* What is answered beside the deployment itself. */
struct holding_extras {
    json_t *canceled; /* [{version, shortCode}] that made room; NULL: none */
};

/* The call is answered when there is something to say. Takes over extras. */
void holding_begin(struct api_call *call, struct deployment *deployment,
                   struct holding_extras extras);

/* 200 at once: it was deployed before. */
void holding_reply_existing(struct api_call *call, struct deployment *deployment);
