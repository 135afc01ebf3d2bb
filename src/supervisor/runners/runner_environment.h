/* runner_environment.h - what the process of a run has in its environment: all of it; pure.
 *
 * The controller hands little of it on: the task's process gets PATH, NODE_ENV, what the
 * operator passes through, and the variables that the gateway sends with the start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "os/process/child_environment.h"
#include "supervisor/gateway_client/run_message.h"

struct runner_home {
    const struct run_message *message;
    const char *token;        /* opens this runner's run in the workload API */
    const char *runner;       /* its id */
    const char *instance;     /* this supervisor's name */
    const char *content_hash; /* of the version */
    const char *directory;    /* scratch: HOME and TMPDIR */
    const char *gateway;      /* its URL */
    int port;                 /* of the workload API */
    int64_t now_ms;           /* Unix ms */
    bool warm;                /* it may ask for another run when it is done */
    char *const *outer; /* "NAME=value", ended by NULL: ours, of which few are passed on */
};

void runner_environment_fill(struct child_environment *environment,
                             const struct runner_home *home);
