/* limit_expiry.c - one timer, for the override that ends first. */
#include "api/queues/limit_expiry.h"

#include <stdlib.h>

#include "base/mem.h"

enum { LONGEST_MS = 3600 * 1000 }; /* the clock may be set meanwhile */

struct limit_expiry {
    struct api *api;
    struct timer timer;
    uint32_t kind;
};

static struct loop *loop_of(const struct limit_expiry *expiry)
{
    return engine_loop(api_engine(expiry->api));
}

void limit_expiry_look(struct limit_expiry *expiry)
{
    struct engine *engine = api_engine(expiry->api);
    int64_t now = loop_wall_ms(loop_of(expiry)), next = INT64_MAX;
    uint32_t at = 0;
    for (struct environment *env; (env = engine_next_environment(engine, &at));) {
        uint32_t before = env->queues.limits.overrides;
        int64_t end = before ? limits_end_overrides(&env->queues, now) : INT64_MAX;
        next = end < next ? end : next;
        if (env->queues.limits.overrides != before)
            engine_match(engine, env);
    }
    timers_clear(loop_timers(loop_of(expiry)), &expiry->timer);
    if (next != INT64_MAX)
        loop_set_timer(loop_of(expiry), &expiry->timer, expiry->kind,
                       next - now < LONGEST_MS ? next - now : LONGEST_MS);
}

static void on_time(struct timer *timer)
{
    limit_expiry_look(container_of(timer, struct limit_expiry, timer));
}

struct limit_expiry *limit_expiry_create(struct api *api)
{
    struct limit_expiry *expiry = mem_new(struct limit_expiry);
    expiry->api = api;
    expiry->kind = timers_kind(loop_timers(loop_of(expiry)), on_time);
    return expiry;
}

void limit_expiry_stop(struct limit_expiry *expiry)
{
    timers_clear(loop_timers(loop_of(expiry)), &expiry->timer);
}

void limit_expiry_destroy(struct limit_expiry *expiry)
{
    free(expiry);
}
