/* seat.c - an integer per environment: exact, and with nothing left over (realtime-protocol
 * §4). */
#include "api/seat.h"

#include "live/environment.h"

enum err seat_take(struct seat *seat, const struct api *api, struct environment *env,
                   struct failure *why)
{
    if (seat->env == env)
        return OK;
    seat_leave(seat);
    if (env->seats >= api_options(api)->realtime_connections)
        return explain(why, ERR_BUSY, "Too many concurrent requests");
    env->seats++;
    seat->env = env;
    return OK;
}

void seat_leave(struct seat *seat)
{
    if (seat->env)
        seat->env->seats--;
    seat->env = NULL;
}
