/* execute.h - runs a supervise role along with the gateway.
 *
 *   execute_start ──► keeper ──► supervise role        execute_watch, when there is a loop
 *   execute_end   ──► keeper ──► SIGTERM, then waits ──► ended
 *
 * The keeper is a separate process (role_keeper.h), because a confined gateway must not
 * execute programs. The role outlives a gateway that is killed. The next gateway's keeper
 * finds the lock of its folder taken, and leaves it running. The kernel reports who holds
 * the lock (site.h), so no file needs to name a process. */
#pragma once

#include "server/config/config.h"

struct execute;
struct uv_loop_s;

/* Returns the error of execute_start, without starting anything. */
enum err execute_check(const struct config *config, struct failure *why);

/* Call it before the gateway opens anything, and before there is a thread or a loop. The
 * role gets the arguments of config and the environment, without the gateway's secrets.
 * ERR_INVALID with the reason: the role could not start. */
enum err execute_start(const struct config *config, struct execute **execute,
                       struct failure *why);

/* Call it next, before the other functions. */
void execute_watch(struct execute *execute, struct uv_loop_s *uv);

enum execute_whose {
    EXECUTE_ANY, /* including one started by an earlier gateway */
    EXECUTE_OWN, /* only our own; another one may belong to another gateway */
};

/* Ends the role, which first finishes its runs. Calls ended later, once the role has
 * exited. */
void execute_end(struct execute *execute, enum execute_whose whose,
                 void (*ended)(void *owner), void *owner);

/* Requires that ended was called. Ignores NULL. The memory is freed once the loop has
 * run. */
void execute_destroy(struct execute *execute);
