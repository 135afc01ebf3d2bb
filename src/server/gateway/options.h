/* options.h - turns settings into the options of the API and the engine. */
#pragma once

#include "api/request/call.h"
#include "server/config/config.h"

/* How many runs execute at once for a developer, as far as the settings say, or this machine. */
uint32_t gateway_dev_concurrency(const struct config *config);

/* Sets the options that are settings; texts are borrowed from the config. */
void gateway_set_options(const struct config *config, struct api_options *options);
