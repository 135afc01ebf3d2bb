/* execute.h - keeps a supervise role beside the gateway.
 *
 *   execute_start ──► keeper ──► supervise role        execute_watch, when there is a loop
 *   execute_end   ──► keeper ──► SIGTERM, then it waits ──► ended
 *
 * The keeper is a process of its own (role_keeper.h), since the gateway executes nothing once it is
 * confined. The role outlives a gateway that is killed; the next gateway's keeper finds the lock of
 * its folder taken, and lets it go on. Who has the lock is the kernel's word (site.h), so no file
 * names a process. */
#pragma once

#include "server/config/config.h"

struct execute;
struct uv_loop_s;

/* What execute_start would refuse. */
enum err execute_check(const struct config *config, struct failure *why);

/* Before the gateway opens anything, and before there is a thread or a loop. The role gets the
 * arguments of config and the environment, without the secrets of the gateway. ERR_INVALID with the reason: such
 * a role could not start. */
enum err execute_start(const struct config *config, struct execute **execute,
                       struct failure *why);

/* Next; then the others may be called. */
void execute_watch(struct execute *execute, struct uv_loop_s *uv);

enum execute_whose {
    EXECUTE_ANY, /* also the one that an earlier gateway has started */
    EXECUTE_OWN, /* the other one may be the role of another gateway */
};

/* Asks it to end, and waits for it: its runs may finish meanwhile. ended is called later. */
void execute_end(struct execute *execute, enum execute_whose whose,
                 void (*ended)(void *owner), void *owner);

/* ended was called. NULL is fine. The memory is gone once the loop has run on. */
void execute_destroy(struct execute *execute);
