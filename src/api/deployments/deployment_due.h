/* deployment_due.h - what comes to a deployment when nobody does anything: its time is over, or
 * its builder is silent. */
#pragma once

#include "api/deployments/deployment_commands.h"

enum { DEPLOYMENT_QUEUED_MS = 15 * 60 * 1000 };

/* Looks at what is due for the deployment, and when. */
void deployment_set_timer(struct deployment *deployment);

/* Its build was cut off: it is pending again; the second time it has failed, of the reason. */
void deployment_begin_anew(struct deployment *deployment, const char *reason);

/* It ends badly, if it has not ended. error or reason: NULL for none; taken over. Tried again
 * until the store takes it, unless the gateway stops. */
void deployment_end(struct deployment *deployment, enum deployment_status status,
                    struct bytes *error, struct bytes *reason);
