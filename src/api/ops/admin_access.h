/* admin_access.h - who may ask what only operators should see. */
#pragma once

#include "api/request/call.h"

/* The request brings the metrics token. */
bool admin_has_metrics_token(const struct api_call *call);

/* ERR_FORBIDDEN unless what came by the admin listener was sent by nobody's web page. */
enum err admin_check_access(struct api_call *call);
