/* children.h - real processes behind process.h, on a libuv loop.
 *
 *   spawner ─┬─ keeper ─── program        without namespaces
 *            └─ keeper ─── init ─── program      init is the first of a PID namespace
 *
 * libuv has no hook between fork and exec. So what is executed is our own binary in a hidden
 * role, the launcher (launch.h), which prepares itself, becomes the keeper and executes the
 * program in a child of its own. Keeper and init hold no descriptor of the program's, and the
 * environment of none of them has anything in it.
 *
 *   the program ends     the keeper says how, kills what is left and ends
 *   a signal is sent     the keeper passes it on
 *   the spawner dies     the keeper, or the kernel where there is a namespace, kills everything
 *   the keeper dies      so does the program; the spawner kills the program's group
 *
 * Without a namespace that is as good as a user's own processes can be watched: who runs as the
 * same user can kill the keeper.
 *
 * The thread that spawns must be one that lives as long as its process: for the kernel a parent
 * is a thread. */
#pragma once

#include "base/loop.h"
#include "os/process/process.h"

/* launcher: what has the role LAUNCH_ROLE (launch.h); NULL: this binary. */
struct processes *children_create(struct loop *loop, const char *launcher);

/* NULL is fine. All of them ended. */
void children_destroy(struct processes *processes);
