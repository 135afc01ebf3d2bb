/* role_keeper.h - a process beside the gateway that starts the supervise role, and starts it anew when
 * it has ended: the gateway itself may execute nothing (confinement.h).
 *
 *   gateway ──fork──► keeper ──► our own binary as `supervise`, in a session of its own ─┐
 *      │                ▲ ▲                                                             │
 *      └── one byte ────┘ └── begun anew when nobody has the lock of its folder ◄───────┘ it ended
 *
 * The socket between the two is all that they share. The gateway says once that the role is to end; it
 * hears that by the socket's end. When the gateway is gone first, the keeper goes too and leaves the
 * role as it is. */
#pragma once

#include <stdint.h>

enum role_keeper_order {
    ROLE_KEEPER_END_ANY = 'a', /* also the role that an earlier gateway has started */
    ROLE_KEEPER_END_OWN = 'o', /* the other one may be the role of another gateway */
};

/* Everything is borrowed. */
struct role_keeper_options {
    const char *folder;              /* of the role */
    char **arguments, **environment; /* of the role; ended by NULL */
    int64_t drain_ms;                /* the role's own timeout */
    int orders;                      /* the socket */
};

/* The process is the keeper until it ends. */
_Noreturn void role_keeper_run(const struct role_keeper_options *options);
