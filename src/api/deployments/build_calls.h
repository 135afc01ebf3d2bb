/* build_calls.h - what the handlers of builders share. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/call.h"

/* The deployment that the call's first parameter names, in any environment that the token
 * serves, which is entered. NULL with ERR_NOT_FOUND in why. */
struct deployment *build_find_served(struct api_call *call);

/* ERR_CONFLICT unless the deployment is in the hands of the token's builders. attempt: which
 * build of it the builder has; 0: it does not say. */
enum err build_check_hands(struct api_call *call, const struct deployment *deployment,
                           int64_t attempt);

/* An error as its builder tells it, without secrets; NULL: it has no name or no message. */
struct bytes *build_error_read(const struct deployment *deployment, const json_t *error);
