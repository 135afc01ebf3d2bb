/* command.c - prepares, joins, decides and finishes commands for flight.c. */
#include "core/engine/calls.h"

/* A run id that is too long becomes "-", which no run has: not found, like any unknown
 * id. */
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
    command->claims = NULL;
    command->claim_count = command->add_max = command->added = 0;
    command->claims_always = command->is_group = command->is_repeated = false;
    command->add = NULL;
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

void command_claim(struct command *command, struct claim *claims, size_t count)
{
    command->claims = claims;
    command->claim_count = count;
}

/* Clears the reason of a refusal, because the next decision sets its own. The reason of a
 * joined command whose run is missing stays. */
void command_forget_decision(struct command *command)
{
    for (; command; command = command->also) {
        if (command->decision == DECISION_REFUSE)
            command->why = (struct failure){ 0 };
        command->decision = DECISION_NOTHING;
        command->added = 0;
    }
}

bool command_decide(struct command *command, const struct run *now, struct change *change)
{
    int64_t wall_ms = loop_wall_ms(command->engine->loop);
    struct run next;
    unsigned marks = 0;
    run_copy(&next, now);
    command->decision = command->decide(command, now, &next, &marks);
    if (command->decision != DECISION_COMMIT) {
        run_finish(&next);
        return false;
    }
    *change = (struct change){ .kind = CHANGE_RUN,
                               .env = command->env->number,
                               .expected = now->version,
                               .marks = marks,
                               .run = next };
    change->run.version = now->version + 1;
    change->run.updated_at = wall_ms > now->updated_at ? wall_ms : now->updated_at;
    return true;
}

uint64_t command_number(struct command *command, uint64_t seq)
{
    struct command *first = command;
    for (; command; command = command->also)
        if (command->decision == DECISION_COMMIT)
            command->seq = seq++;
    seq += first->added;
    if (first->added)
        first->seq = seq - 1;
    return seq;
}

size_t command_count(const struct command *command)
{
    size_t count = 0;
    for (; command; command = command->also)
        count++;
    return count;
}

enum err command_outcome(const struct command *command)
{
    return command->decision == DECISION_REFUSE ? command->why.code : OK;
}

void command_finish(struct command *command, const struct run *run, enum err status)
{
    command->run = run;
    command->done(command, status);
}
