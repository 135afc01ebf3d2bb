/* workload_sockets.h - the sockets on which controllers are told to look at their run.
 *
 *   upgrade of a runner ─► open ─► 40/workload, ─► granted ─► run:notify … */
#pragma once

#include "supervisor/runners/runner.h"

struct workload_sockets;

struct workload_sockets *workload_sockets_create(struct loop *loop,
                                                 struct runner_shared *shared);

/* Every socket has closed. */
void workload_sockets_destroy(struct workload_sockets *sockets);

/* The exchange becomes a socket of the runner, or is refused. */
void workload_sockets_accept(struct workload_sockets *sockets, struct exchange *x,
                             const struct runner *runner);

void workload_sockets_notify(struct workload_sockets *sockets, struct slice run);
