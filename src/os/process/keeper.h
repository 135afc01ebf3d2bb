/* keeper.h - a process between spawner and program that passes on signals and the outcome.
 *
 *   keeper ── program               keeper_guard_group
 *   keeper ── init ── program       keeper_guard_namespace, keeper_be_init
 *
 * A keeper runs as the program's user and waits with all signals blocked. A signal to pass
 * on arrives as SIGTERM with a value; any other signal is passed on unchanged. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Returns the value to queue with SIGTERM. alone: signal only the program, not
 * everything. */
int keeper_value(int signal, bool alone);

/* The keeper without a namespace. Orphans of the program become its children. It kills them
 * once the program has ended. If the spawner dies, it kills the program first. */
_Noreturn void keeper_guard_group(pid_t program, pid_t spawner);

/* The keeper with a namespace. It reads the outcome of the program from outcome. If the
 * spawner dies, the kernel kills the keeper and the namespace. */
_Noreturn void keeper_guard_namespace(pid_t init, int outcome);

/* The first process of a namespace. It reaps children, writes the program's outcome to
 * outcome, and exits when the program does, which ends the whole namespace. */
_Noreturn void keeper_be_init(pid_t program, int outcome);
