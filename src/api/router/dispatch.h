/* dispatch.h - dispatches requests to the handlers of their routes. */
#pragma once

#include "api/request/route.h"

/* Returns the handler for server_create; its owner is the struct api. */
struct http_handler api_handler(void);

/* An early_enter_fn: a call that was held until the gateway leads now continues like any
 * other. */
void api_enter_early(struct api_call *call, bool complete);

/* A forwarding_enter_fn: the same for a call that was to be forwarded, whose body so far is in
 * api_call::kept. */
void api_enter_kept(struct api_call *call, bool complete);

/* Returns all areas of routes, in the order of areas.def. */
const struct area *const *api_areas(size_t *count);
