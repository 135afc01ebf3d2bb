/* keeper.h - who stands between spawner and program, and passes on signals and the end.
 *
 *   keeper ── program               keeper_guard_group
 *   keeper ── init ── program       keeper_guard_namespace, keeper_be_init
 *
 * A keeper runs as the program's user and waits with all signals blocked. What it is to pass
 * on comes as SIGTERM with a value; any other signal is passed on as it is. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The value with which SIGTERM is queued. Alone: for the program, else for everything. */
int keeper_value(int signal, bool alone);

/* Without a namespace. Orphans of the program become children of the keeper, who kills them
 * when the program ended; when the spawner died, it kills the program first. */
_Noreturn void keeper_guard_group(pid_t program, pid_t spawner);

/* The kernel kills keeper and namespace when the spawner died. outcome is read from. */
_Noreturn void keeper_guard_namespace(pid_t init, int outcome);

/* The first process of a namespace: reaps, and ends with the program, which ends everything.
 * How the program ended is written to outcome. */
_Noreturn void keeper_be_init(pid_t program, int outcome);
