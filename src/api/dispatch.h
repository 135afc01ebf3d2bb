/* dispatch.h - from a request to the handler of its route. */
#pragma once

#include "call/call.h"

/* What server_create is given; its owner is the struct api. */
struct http_handler api_handler(void);

/* All tables of routes, in the order of the look-up. */
const struct route *const *api_routes(size_t *count);
