/* admin_access.h - access checks for data that only operators may see. */
#pragma once

#include "api/request/call.h"

/* Returns true if the request has the metrics token. Returns false if no token is set. */
bool admin_has_metrics_token(const struct api_call *call);

/* Returns ERR_FORBIDDEN if a web page may have sent this request to the admin listener: its
 * Host is neither an address nor localhost, and it lacks the metrics token. */
enum err admin_check_access(struct api_call *call);
