/* stale_limits.c - visits the keys of changed limits and rates in time slices. */
#include "core/state/stale_limits.h"

#include "core/state/rates.h"

static bool refresh_some(struct flusher *flusher)
{
    struct environment *env = container_of(flusher, struct engine_share, stale_limits)->env;
    struct timeslice timeslice = loop_timeslice(env->loop);
    bool more = true;
    while (more && timeslice_left(&timeslice)) {
        more = queues_refresh_stale(&env->queues);
        engine_refill(env->engine, env);
    }
    if (!more)
        engine_match(env->engine, env);
    return more;
}

void stale_limits_init(struct engine_share *share)
{
    share->stale_limits.fn = refresh_some;
    loop_add_flusher(share->env->loop, &share->stale_limits);
}

void stale_limits_finish(struct engine_share *share)
{
    loop_remove_flusher(&share->stale_limits);
}
