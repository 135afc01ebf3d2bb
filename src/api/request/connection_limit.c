/* connection_limit.c - counts long-lived connections against --realtime-connections. */
#include "api/request/connection_limit.h"

#include "api/request/quotas.h"

enum err connection_limit_take(struct seat *seat, struct api *api, struct environment *env,
                               struct failure *why)
{
    if (seat->env == env)
        return OK;
    connection_limit_leave(seat);
    struct quota *quota = &quotas_of(api_quotas(api), env)->seats;
    if (!quota_has(quota, 1))
        return explain(why, ERR_BUSY, "Too many concurrent requests");
    quota_take(quota, 1);
    environment_hold(env);
    *seat = (struct seat){ .env = env, .quota = quota };
    return OK;
}

void connection_limit_leave(struct seat *seat)
{
    if (!seat->env)
        return;
    quota_release(seat->quota, 1);
    environment_release(seat->env);
    *seat = (struct seat){ 0 };
}
