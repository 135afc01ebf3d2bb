/* execute.h - keeps a supervise role beside the gateway.
 *
 *   execute_start ─► our own binary as `supervise`, in a session of its own ─┐
 *        ▲                                                                   │
 *        └── begun anew when nobody has the lock of its folder ◄─────────────┘ it ended
 *
 * The role outlives a gateway that is killed; the next gateway finds the lock taken, and lets it
 * go on. Who has the lock is the kernel's word (site.h), so no file names a process. */
#pragma once

#include "config/config.h"

struct execute;
struct uv_loop_s;

/* What execute_start would refuse. */
enum err execute_check(const struct config *config, struct failure *why);

/* Before the gateway opens anything. The role gets these arguments and the environment, without
 * the secrets of the gateway. ERR_INVALID with the reason: such a role could not start. */
enum err execute_start(struct uv_loop_s *uv, const struct config *config, int argc,
                       char **argv, struct execute **execute, struct failure *why);

enum execute_whose {
    EXECUTE_ANY, /* also the one that an earlier gateway has started */
    EXECUTE_OWN, /* the other one may be the role of another gateway */
};

/* Asks it to end, and waits for it: its runs may finish meanwhile. ended is called later. */
void execute_end(struct execute *execute, enum execute_whose whose,
                 void (*ended)(void *owner), void *owner);

/* ended was called. NULL is fine. The memory is gone once the loop has run on. */
void execute_destroy(struct execute *execute);
