/* dispatch.h - from a request to the handler of its route. */
#pragma once

#include "api/request/route.h"

/* What server_create is given; its owner is the struct api. */
struct http_handler api_handler(void);

/* An early_enter_fn: the call that was held until the gateway leads goes the way of any other. */
void api_enter_early(struct api_call *call, bool complete);

/* All areas of routes, in the order of the look-up. */
const struct area *const *api_areas(size_t *count);
