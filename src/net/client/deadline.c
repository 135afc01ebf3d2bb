/* deadline.c - timers of one kind that call their owner's function. */
#include "net/client/deadline.h"

static void on_timer(struct timer *timer)
{
    struct deadline *deadline = container_of(timer, struct deadline, timer);
    deadline->fn(deadline);
}

void deadline_set(struct loop *loop, struct deadline *deadline, int64_t ms)
{
    uint32_t kind = timers_kind(loop_timers(loop), on_timer);
    loop_set_timer(loop, &deadline->timer, kind, ms);
}

bool deadline_is_set(const struct deadline *deadline)
{
    return deadline->timer.place;
}

void deadline_clear(struct loop *loop, struct deadline *deadline)
{
    timers_clear(loop_timers(loop), &deadline->timer);
}
