/* sampling.c - adds the state of the queue to a sample. */
#include "core/live/sampling.h"

#include "core/live/environment.h"

void sampling_pass(struct environment *env)
{
    int64_t now = loop_wall_ms(env->loop);
    if (!stats_is_over(&env->stats, now))
        return;
    const struct queue_item *oldest = queues_oldest(&env->queues);
    int64_t since =
        oldest ? run_in_queue_since(&container_of(oldest, const struct tracked, item)->run)
               : 0;
    stats_close(&env->stats, now, env->queues.waiting, since);
}
