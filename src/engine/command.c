/* command.c - what a command is before it is decided (flight.c). */
#include "engine/state.h"

/* A run id that is too long is that of no run: not found, like any other. */
void command_prepare(struct command *command, struct engine *engine,
                     struct environment *env, struct slice run_id,
                     command_decide_fn *decide_fn)
{
    command->engine = engine;
    command->env = env;
    command->decide = decide_fn;
    command->decision = DECISION_NOTHING;
    command->run = NULL;
    command->also = NULL;
    command->seq = 0;
    command->why = (struct failure){ 0 };
    if (run_id.len >= sizeof(command->run_id))
        run_id = SLICE("-");
    snprintf(command->run_id, sizeof(command->run_id), "%.*s", SLICE_ARG(run_id));
}

void command_join(struct command *command, struct command *other, struct slice run_id,
                  command_decide_fn *decide_fn)
{
    struct command **end = &command->also;
    command_prepare(other, command->engine, command->env, run_id, decide_fn);
    while (*end)
        end = &(*end)->also;
    *end = other;
}
