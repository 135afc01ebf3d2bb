/* again.c - one list and one timer: all that failed waits for the same second. */
#include "engine/again.h"

#include "base/mem.h"
#include "engine/state.h"

static void begin_again(struct timer *timer)
{
    struct engine *engine = container_of(timer, struct engine, again_timer);
    struct list due;
    list_init(&due);
    if (engine->stopped)
        return;
    list_move_all(&due, &engine->again);
    while (!list_empty(&due)) {
        struct again *again = container_of(list_take(&due), struct again, link);
        again->fn(again);
    }
}

void again_init(struct engine *engine)
{
    list_init(&engine->again);
    engine->again_kind = timers_kind(loop_timers(engine->loop), begin_again);
}

void again_finish(struct engine *engine)
{
    timers_clear(loop_timers(engine->loop), &engine->again_timer);
    while (!list_empty(&engine->again))
        free(container_of(list_take(&engine->again), struct again, link));
}

void again_later(struct engine *engine, struct again *again,
                 void (*fn)(struct again *again))
{
    again->engine = engine;
    again->fn = fn;
    list_append(&engine->again, &again->link);
    if (!engine->again_timer.place)
        loop_set_timer(engine->loop, &engine->again_timer, engine->again_kind,
                       STORE_AGAIN_MS);
}
