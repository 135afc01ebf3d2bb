/* children.h - real child processes for process.h, on a libuv loop.
 *
 *   spawner ─┬─ keeper ─── program                this process is the spawner
 *            └─ keeper ─── init ─── program       with a PID namespace, whose first is init
 *
 * libuv has no hook between fork and exec. So it executes our own binary in a hidden role,
 * the launcher (launch.h). The launcher prepares itself, becomes the keeper, and executes
 * the program in a child of its own. Keeper and init hold none of the program's
 * descriptors, and their environments are empty.
 *
 *   the program ends     the keeper reports how, kills what is left and exits
 *   a signal is sent     the keeper passes it on
 *   the spawner dies     the keeper, or the kernel with a namespace, kills everything
 *   the keeper dies      so does the program; the spawner kills the program's group
 *
 * Without a namespace, control of a child is incomplete: a process of the same user can
 * kill the keeper.
 *
 * The spawning thread must live as long as its process, because to the kernel a thread is
 * the parent. */
#pragma once

#include "base/loop.h"
#include "os/process/process.h"

/* launcher: a binary with the role LAUNCH_ROLE (launch.h); NULL: this binary. */
struct processes *children_create(struct loop *loop, const char *launcher);

/* Ignores NULL. All children must have ended. */
void children_destroy(struct processes *processes);
