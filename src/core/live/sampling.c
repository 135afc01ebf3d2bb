/* sampling.c - adds the state of the queue to a sample. */
#include "core/live/sampling.h"

#include "core/live/environment.h"

int64_t sampling_queued_since(const struct environment *env)
{
    const struct queue_item *oldest = queues_oldest(&env->queues);
    return oldest
               ? run_in_queue_since(&container_of(oldest, const struct tracked, item)->run)
               : 0;
}

void sampling_pass(struct environment *env)
{
    int64_t now = loop_wall_ms(env->loop);
    if (stats_is_over(&env->stats, now))
        stats_close(&env->stats, now, env->queues.waiting, sampling_queued_since(env));
}

void sampling_end(struct environment *env)
{
    stats_close(&env->stats, loop_wall_ms(env->loop), env->queues.waiting,
                sampling_queued_since(env));
}
