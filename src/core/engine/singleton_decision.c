/* singleton_decision.c - skips or cancels in the commit of the trigger. */
#include "core/engine/singleton_decision.h"

#include "core/engine/run_commands.h"
#include "core/model/run_life.h"
#include "core/state/singletons.h"

static const char cancel_reason[] = "Canceled by a newer run with its concurrencyKey";

static bool descends_from(const struct environment *env, const struct run *run,
                          const char *id)
{
    struct slice parent = bytes_slice(run_rare(run)->parent);
    while (parent.ptr) {
        const struct tracked *known = environment_find(env, parent);
        if (slice_equal(parent, slice_of(id)))
            return true;
        parent = known ? bytes_slice(run_rare(&known->run)->parent) : (struct slice){ 0 };
    }
    return false;
}

/* A run must not wait for itself, and a canceled run cancels the runs that it triggered. */
static enum decision refuse_descendant(struct command *command, const struct trigger *item)
{
    explain(&command->why, ERR_RULE,
            "Cannot trigger %.*s because the run that triggers it, or one above that, has "
            "its concurrencyKey in a singleton queue; use another concurrencyKey or queue",
            SLICE_ARG(text_clip(bytes_slice(item->run.task))));
    return DECISION_REFUSE;
}

enum decision singleton_decide(struct command *command, struct trigger *item,
                               const struct run *now, struct run *next, unsigned *marks)
{
    bool cancels = item->singleton == SINGLETON_CANCEL;
    item->replaces = false;
    if (!singletons_hold(command->env, item, now)) {
        explain(&command->why, ERR_CONFLICT, "Another run holds the key");
        return DECISION_REFUSE;
    }
    if ((cancels || item->run.resume_parent) &&
        descends_from(command->env, &item->run, now->id))
        return refuse_descendant(command, item);
    if (!cancels)
        return DECISION_NOTHING;
    item->replaces = true;
    return run_decide_cancel(command, now, next, cancel_reason, marks);
}

void singleton_cancel_new(const struct trigger *item, int64_t now_ms)
{
    struct change *change = item->leader->change;
    run_advance(&change->run, EVENT_CANCEL, now_ms);
    run_end_with(&change->run, error_text(cancel_reason), &change->marks);
}
