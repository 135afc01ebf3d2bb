/* connection_limit.c - counts long-lived connections against --realtime-connections. */
#include "api/request/connection_limit.h"

#include "api/request/rooms.h"

enum err connection_limit_take(struct seat *seat, struct api *api, struct environment *env,
                               struct failure *why)
{
    if (seat->env == env)
        return OK;
    connection_limit_leave(seat);
    struct room *room = &rooms_of(api_rooms(api), env)->seats;
    if (!room_has(room, 1))
        return explain(why, ERR_BUSY, "Too many concurrent requests");
    room_take(room, 1);
    environment_hold(env);
    *seat = (struct seat){ .env = env, .room = room };
    return OK;
}

void connection_limit_leave(struct seat *seat)
{
    if (!seat->env)
        return;
    room_give(seat->room, 1);
    environment_release(seat->env);
    *seat = (struct seat){ 0 };
}
