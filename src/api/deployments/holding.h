/* holding.h - a call of the CLI, held while its deployment is built.
 *
 *   first try ─► created ─┐        ┌─► built in time: 200, or 422 with the reason
 *   next try ─► the same ─┴─► held ┤
 *                                  └─► deploy-hold has passed: 503; at the last try 200
 *
 * The CLI follows a build by no other means: its user sees the response to this call. It
 * makes at most five attempts, with one request id. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/call.h"

enum { HOLDING_TRIES_MAX = 5 };

/* Members of the response other than the deployment's. */
struct holding_extras {
    json_t *canceled; /* [{version, shortCode}] canceled for it; NULL: none */
};

/* Replies to the call when the deployment has settled or time is up. Takes ownership of
 * extras. */
void holding_begin(struct api_call *call, struct deployment *deployment,
                   struct holding_extras extras);

/* Replies 200 at once, because it was already deployed. */
void holding_reply_existing(struct api_call *call, struct deployment *deployment);
