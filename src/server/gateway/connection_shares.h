/* connection_shares.h - how many connections that stay an environment and a project may have. */
#pragma once

#include "api/request/call.h"
#include "server/config/config.h"

/* A setting that is given is of one environment, and a project has twice that. If none is,
 * one environment may have most of the connections, and a project leaves some for others
 * and for requests that come and go. */
void connection_shares_set(const struct config *config, struct api_options *api);

/* Logs what holds; all: connections of the gateway. */
void connection_shares_log(int64_t all, const struct api_options *api);
