/* store_retry.c - one list and one timer for all retries, and commands without a caller.
 *
 * All operations in the list are retried together. A command without a caller is retried
 * until the store has taken it. */
#include "core/engine/store_retry.h"

#include "base/mem.h"
#include "core/engine/calls.h"

static void begin_again(struct timer *timer)
{
    struct engine *engine = container_of(timer, struct engine, retry_timer);
    struct list due;
    list_init(&due);
    if (engine->stopped)
        return;
    list_move_all(&due, &engine->retries);
    while (!list_empty(&due)) {
        struct store_retry *retry = container_of(list_take(&due), struct store_retry, link);
        retry->fn(retry);
    }
}

void store_retry_init(struct engine *engine)
{
    list_init(&engine->retries);
    engine->retry_kind = timers_kind(loop_timers(engine->loop), begin_again);
}

void store_retry_finish(struct engine *engine)
{
    timers_clear(loop_timers(engine->loop), &engine->retry_timer);
    while (!list_empty(&engine->retries))
        free(container_of(list_take(&engine->retries), struct store_retry, link));
}

void store_retry_later(struct engine *engine, struct store_retry *retry,
                       void (*fn)(struct store_retry *retry))
{
    retry->engine = engine;
    retry->fn = fn;
    list_append(&engine->retries, &retry->link);
    if (!engine->retry_timer.place)
        loop_set_timer(engine->loop, &engine->retry_timer, engine->retry_kind,
                       STORE_RETRY_MS);
}

/* ---- commands that no caller waits for ---- */

struct alone {
    struct store_retry retry; /* first */
    struct command command;
};

static void begin_alone_again(struct store_retry *retry);

static void alone_free(struct store_retry *retry)
{
    struct alone *alone = container_of(retry, struct alone, retry);
    environment_release(alone->command.env);
    free(alone);
}

static void on_alone(struct command *command, enum err status)
{
    struct alone *alone = container_of(command, struct alone, command);
    if (status == ERR_STORE || status == ERR_STORE_FULL)
        store_retry_later(command->engine, &alone->retry, begin_alone_again);
    else
        alone_free(&alone->retry);
}

static void begin_alone_again(struct store_retry *retry)
{
    struct alone *alone = container_of(retry, struct alone, retry);
    struct command *command = &alone->command;
    char run_id[sizeof(command->run_id)];
    memcpy(run_id, command->run_id, sizeof(run_id));
    command_begin(retry->engine, command->env, slice_of(run_id), command, command->decide,
                  on_alone);
}

void command_begin_alone(struct engine *engine, struct environment *env,
                         struct slice run_id, command_decide_fn *decide_fn)
{
    struct alone *alone = mem_new(struct alone);
    environment_hold(env);
    command_begin(engine, env, run_id, &alone->command, decide_fn, on_alone);
}
