/* alone.c - commands that nobody waits for, and which must happen although the store may
 * fail when their time has come. */
#include "base/mem.h"
#include "engine/again.h"
#include "engine/state.h"

struct alone {
    struct again again; /* first */
    struct command command;
};

static void begin_again(struct again *again);

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
        again_later(command->engine, &alone->again, begin_again);
    else
        alone_free(&alone->again);
}

static void begin_again(struct again *again)
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
