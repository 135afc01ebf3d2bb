/* launch.h - the hidden role of our binary in which a child process prepares itself.
 *
 *   read and close the order (fd 3) ─► session, umask, OOM score, cgroup ─► namespaces ─► fork
 *   in the child: user, groups, limits, death signal, parent still there? ─► directory ─► exec
 *
 * All that libuv cannot do between fork and exec. What fails is said through the report
 * (fd 4), which the program does not get. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "os/process/process.h"

/* The first argument, before everything that main.c reads. It is in no help: nobody but
 * children.c says it. */
#define LAUNCH_ROLE "--launch"

enum { LAUNCH_ORDER_FD = 3, LAUNCH_REPORT_FD = 4 };

static inline bool launch_is_asked_for(int argc, char **argv)
{
    return argc == 2 && slice_is(slice_of(argv[1]), LAUNCH_ROLE);
}

/* Does not come back but with an exit status, when there is no order. */
int launch_run(void);
