/* connection_shares.h - limits of long-lived connections of environments and projects. */
#pragma once

#include "api/request/call.h"
#include "server/config/config.h"

/* If realtime-connections is set, it limits an environment, and a project may have twice
 * that. Otherwise an environment may have 3/4 of the connections, and a project 7/8, so
 * that some are left for others and for short requests. */
void connection_shares_set(const struct config *config, struct api_options *api);

/* Logs the limits; all: connections of the gateway. */
void connection_shares_log(int64_t all, const struct api_options *api);
