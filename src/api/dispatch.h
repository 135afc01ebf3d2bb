/* dispatch.h - from a request to the handler of its route. */
#pragma once

#include "call/route.h"

/* What server_create is given; its owner is the struct api. */
struct http_handler api_handler(void);

/* All areas of routes, in the order of the look-up. */
const struct area *const *api_areas(size_t *count);
