/* again.c - one list and one timer for all retries; and commands that no caller waits for.
 *
 * All operations in the list are retried together. A command without a caller is retried
 * until the store has taken it. */
#include "core/engine/again.h"

#include "base/mem.h"
#include "core/engine/state.h"

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

/* ---- commands that no caller waits for ---- */

struct alone {
    struct again again; /* first */
    struct command command;
};

static void begin_alone_again(struct again *again);

static void alone_free(struct again *again)
{
    struct alone *alone = container_of(again, struct alone, again);
    environment_release(alone->command.env);
    free(alone);
}

static void on_alone(struct command *command, enum err status)
{
    struct alone *alone = container_of(command, struct alone, command);
    if (status == ERR_STORE || status == ERR_STORE_FULL)
        again_later(command->engine, &alone->again, begin_alone_again);
    else
        alone_free(&alone->again);
}

static void begin_alone_again(struct again *again)
{
    struct alone *alone = container_of(again, struct alone, again);
    struct command *command = &alone->command;
    char run_id[sizeof(command->run_id)];
    memcpy(run_id, command->run_id, sizeof(run_id));
    command_begin(again->engine, command->env, slice_of(run_id), command, command->decide,
                  on_alone);
}

void command_begin_alone(struct engine *engine, struct environment *env,
                         struct slice run_id, command_decide_fn *decide_fn)
{
    struct alone *alone = mem_new(struct alone);
    environment_hold(env);
    command_begin(engine, env, run_id, &alone->command, decide_fn, on_alone);
}
