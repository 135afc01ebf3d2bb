/* role_keeper.h - a process that starts the supervise role, and restarts it.
 *
 *   gateway ──fork──► keeper ──► our own binary as `supervise`, in a session of its own ─┐
 *      │                ▲ ▲                                                             │
 *      └── one byte ────┘ └── restarted when its folder is not locked ◄─────────────────┘ it ended
 *
 * A confined gateway must not execute programs itself (confinement.h). It shares only a
 * socket with the keeper. The gateway sends one byte when the role must end; the socket is
 * closed once the role has exited. If the gateway exits first, the keeper exits, too, and
 * leaves the role running. */
#pragma once

#include <stdint.h>

enum role_keeper_order {
    ROLE_KEEPER_END_ANY = 'a', /* including one started by an earlier gateway */
    ROLE_KEEPER_END_OWN = 'o', /* only our own; another one may belong to another gateway */
};

/* Everything is borrowed. */
struct role_keeper_options {
    const char *folder;              /* of the role */
    char **arguments, **environment; /* of the role; NULL at the end */
    int64_t drain_ms;                /* the role's own timeout */
    int orders;                      /* the socket */
};

/* Turns this process into the keeper; exits when done. */
_Noreturn void role_keeper_run(const struct role_keeper_options *options);
