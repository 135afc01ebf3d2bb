/* build_calls.h - code shared by the handlers of builders' calls. */
#pragma once

#include "api/deployments/deployment_commands.h"
#include "api/request/call.h"

/* Returns the deployment that the call's first parameter names, and enters its environment,
 * which may be any that the token serves. Returns NULL with ERR_NOT_FOUND in why if it does
 * not exist. */
struct deployment *build_find_served(struct api_call *call);

/* Returns ERR_CONFLICT unless a builder with this token has the deployment. attempt: which
 * of its builds the builder has; 0: not given. */
enum err build_check_hands(struct api_call *call, const struct deployment *deployment,
                           int64_t attempt);

/* Reads an error as its builder sent it, without secrets. Returns NULL if the name or the
 * message is missing. */
struct bytes *build_error_read(const struct deployment *deployment, const json_t *error);
