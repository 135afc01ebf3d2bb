/* deployment_due.h - ends a deployment by time, or when its builder is silent. */
#pragma once

#include "api/deployments/deployment_commands.h"

enum { DEPLOYMENT_QUEUED_MS = 15 * 60 * 1000 };

/* Sets the timer to when something is due for the deployment. */
void deployment_set_timer(struct deployment *deployment);

/* Makes a deployment pending again whose build was cut off; the second time it fails for
 * reason. */
void deployment_restart(struct deployment *deployment, const char *reason);

/* Ends a deployment that does not become a version, unless it has ended. error or reason:
 * NULL for none; takes ownership. If it cannot be written, it is tried again each second,
 * unless the gateway stops. */
void deployment_end(struct deployment *deployment, enum deployment_status status,
                    struct bytes *error, struct bytes *reason);
