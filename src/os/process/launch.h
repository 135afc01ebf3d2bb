/* launch.h - the hidden role of our binary in which a child process prepares itself.
 *
 *   read and close the order (fd 3) ─► session, umask, OOM score, cgroup, namespace ─► fork
 *   in the child: limits, groups, user, death signal, is the parent alive? folder ─► exec
 *
 * It does what libuv cannot do between fork and exec. Failures go through the report (fd
 * 4), which the program does not inherit. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "os/process/process.h"

/* The first argument, checked before everything else in main.c. It is not in the help,
 * because only children.c uses it. */
#define LAUNCH_ROLE "--launch"

enum { LAUNCH_ORDER_FD = 3, LAUNCH_REPORT_FD = 4 };

static inline bool launch_is_asked_for(int argc, char **argv)
{
    return argc == 2 && slice_is(slice_of(argv[1]), LAUNCH_ROLE);
}

/* Executes the role. Returns an exit status only if there is no order. */
int launch_run(void);
