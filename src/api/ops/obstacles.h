/* obstacles.h - what stands against sending work here: what /readyz says, and runcast_ready. */
#pragma once

#include "api/request/call.h"

enum { OBSTACLES_MAX = 3 };

/* A word for each; their number. 0: the gateway is ready. A drain never turns back. */
size_t obstacles_find(const struct api *api, const char *words[OBSTACLES_MAX]);
