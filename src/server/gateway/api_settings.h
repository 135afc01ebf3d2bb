/* api_settings.h - the settings that the API uses, a reload included. */
#pragma once

#include "api/request/call.h"
#include "server/config/config.h"

/* Copies settings into options; texts are borrowed from the config. */
void api_settings_copy(const struct config *config, struct api_options *options);
