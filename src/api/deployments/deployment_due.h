/* deployment_due.h - ends a deployment that takes too long, or whose builder is silent. */
#pragma once

#include "api/deployments/deployment_commands.h"

enum { DEPLOYMENT_QUEUED_MS = 15 * 60 * 1000 };

/* Sets the timer to when something is due for the deployment. */
void deployment_set_timer(struct deployment *deployment);

/* Makes a deployment whose build was cut off pending again; the second time it fails for
 * reason. */
void deployment_restart(struct deployment *deployment, const char *reason);

/* Ends a deployment that does not become a version, unless it has ended. error, reason:
 * NULL for none; takes ownership. If it cannot be written, retries every second, unless the
 * gateway stops. */
void deployment_end(struct deployment *deployment, enum deployment_status status,
                    struct bytes *error, struct bytes *reason);
