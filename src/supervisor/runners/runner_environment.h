/* runner_environment.h - the complete environment of a run's process; pure.
 *
 * The controller passes little of it on. The task's process gets PATH, NODE_ENV, the
 * variables that the operator passes through, and those that the gateway sends with the
 * start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "os/process/child_environment.h"
#include "supervisor/gateway_client/run_message.h"

struct runner_home {
    const struct run_message *message;
    const char *token;    /* authorizes calls for this runner's run in the workload API */
    const char *runner;   /* its id */
    const char *instance; /* this supervisor's name */
    const char *content_hash; /* of the version */
    const char *directory;    /* scratch folder: HOME and TMPDIR */
    const char *gateway;      /* its URL */
    int port;                 /* of the workload API */
    int64_t now_ms;           /* Unix ms */
    bool warm;                /* it may request another run */
    /* "NAME=value", ends with NULL: our environment, of which little is passed on */
    char *const *outer;
};

void runner_environment_fill(struct child_environment *environment,
                             const struct runner_home *home);
