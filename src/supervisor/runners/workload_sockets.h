/* workload_sockets.h - sockets that notify controllers when their run has changed.
 *
 *   upgrade of a runner ─► open ─► 40/workload, ─► granted ─► run:notify … */
#pragma once

#include "supervisor/runners/runner.h"

struct workload_sockets;

struct workload_sockets *workload_sockets_create(struct loop *loop,
                                                 struct runner_shared *shared);

/* Requires that every socket has closed. */
void workload_sockets_destroy(struct workload_sockets *sockets);

/* Upgrades the exchange to a socket of the runner, or rejects it. */
void workload_sockets_accept(struct workload_sockets *sockets, struct exchange *x,
                             const struct runner *runner);

void workload_sockets_notify(struct workload_sockets *sockets, struct slice run);
