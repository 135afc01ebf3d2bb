/* connection_limit.c - counts the long-lived connections of an environment, and of its project,
 * against --realtime-connections. */
#include "call/connection_limit.h"

#include "live/environment.h"

enum err connection_limit_take(struct seat *seat, struct environment *env,
                               struct failure *why)
{
    if (seat->env == env)
        return OK;
    connection_limit_leave(seat);
    if (!room_has(&env->seats, 1))
        return explain(why, ERR_BUSY, "Too many concurrent requests");
    room_take(&env->seats, 1);
    environment_hold(env);
    seat->env = env;
    return OK;
}

void connection_limit_leave(struct seat *seat)
{
    if (!seat->env)
        return;
    room_give(&seat->env->seats, 1);
    environment_release(seat->env);
    seat->env = NULL;
}
