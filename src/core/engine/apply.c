/* apply.c - the one way a change becomes visible.
 *
 *   change ──► run table, orders, ring (environment_put) ──► queue, slot, timer
 *          ──► commands that follow from the new state; ready runs go to workers
 *
 * The commits of these commands are applied here too: the only cycle among the engine's
 * files.
 *
 *   apply ── canceled: cancel its children ───────► run_commands ─┐
 *     ▲   ── its parent, its branch, its version ─► sweep ────────┼─► store_retry ─► flight
 *     │   ── ended: runs that wait for it resume ─► waits ────────┘                     │
 *     └────────────── the store has taken the commit of the command ◄───────────────────┘
 *
 * The cycle terminates: a command begins only where the state demands it, and its commit
 * leaves that state. No call is reentrant: flight.c decides at the end of the turn.
 *
 * Changes arrive here once the store has acknowledged them, in the order of their
 * numbers. */
#include <assert.h>

#include "base/metrics.h"
#include "core/engine/calls.h"
#include "core/engine/run_commands.h"
#include "core/engine/waits.h"
#include "core/fleet/dev_sessions.h"
#include "core/model/run_life.h"
#include "core/state/debounce_keys.h"
#include "core/state/ends.h"
#include "core/state/singletons.h"

enum { CHILDREN_AT_ONCE = 500 };

/* Cancels unfinished children of a canceled run, once its cancel is confirmed. More than
 * CHILDREN_AT_ONCE would not fit into a turn; the sweep cancels those. */
static void end_children(struct engine *engine, struct tracked *run)
{
    const struct children *children = environment_children(run->env, slice_of(run->run.id));
    if (!children)
        return;
    if (children->count > CHILDREN_AT_ONCE) {
        engine_sweep_environment(engine, run->env);
        return;
    }
    for (uint32_t i = 0; i < children->count; i++)
        run_cancel_alone(engine, run->env, slice_of(children->runs[i]->run.id));
}

/* Returns true if the worker of the run must be notified of the new snapshot. The response
 * to its own start, complete or dequeue names the snapshot; any other change it did not
 * request. */
static bool must_notify(const struct tracked *known, const struct run *next)
{
    if (!known || known->run.snapshot == next->snapshot)
        return false;
    switch (next->execution) {
    case EXECUTION_PENDING_EXECUTING: return false;
    case EXECUTION_WITH_WAITPOINTS:
    case EXECUTION_PENDING_CANCEL: return true; /* whichever request came with it */
    default: return known->run.worker_request == next->worker_request;
    }
}

/* Restarts the heartbeat timeout of the run; after a pause, only when the pause ends. A CLI
 * that polls must keep polling during a pause as well. */
static void begin_silence(const struct engine *engine, struct tracked *run)
{
    int64_t now = loop_now_ms(engine->loop), from = now;
    if (run->run.status == RUN_RETRYING && run->run.execution == EXECUTION_EXECUTING)
        from = engine_deadline(engine, run->run.due_at);
    run->alive_until = from + engine->options.heartbeat_ms;
    if (run->polled_until)
        run->polled_until = run_is_with_worker(&run->run) ? now + SESSION_LOST_MS : 0;
}

static void report(const struct engine *engine, const struct run *before,
                   const struct change *change)
{
    if (engine->on_change)
        engine->on_change(engine->change_owner, before, change);
}

static void apply_run(struct engine *engine, struct environment *env, struct change *change)
{
    const struct tracked *known = environment_find(env, slice_of(change->run.id));
    report(engine, known ? &known->run : NULL, change);
    bool notify = must_notify(known, &change->run);
    if (run_is_final(&change->run) && !(known && run_is_final(&known->run)))
        metric_add(M_ENDED_CANCELED + (change->run.status - RUN_CANCELED), 1);
    struct tracked *run = environment_put(env, &change->run, change->seq);
    if (notify)
        engine_notice(engine, run);
    begin_silence(engine, run);
    debounce_keys_note(engine, run);
    singletons_note(run);
    engine_place(engine, run);
    engine_follow_version(
        engine, run); /* the current version may have changed since the decision */
    waits_note(engine, run);
    if (run_is_final(&run->run)) {
        waits_end(engine, env, slice_of(run->run.id));
        ends_notify(engine, env, slice_of(run->run.id));
    }
    if (run_is_settled(&run->run) && run->run.status == RUN_CANCELED)
        end_children(engine, run);
    else if (engine_is_retired(env))
        engine_follow_branch(engine, run); /* it was created, or resumed, after the sweep */
    else if (run->run.version == 1)
        engine_follow_parent(engine, run); /* its parent may have been canceled before */
    engine_evict(engine, env);
}

void engine_apply(struct engine *engine, struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct change *change = &changes[i];
        struct environment *env = engine_environment(engine, change->env);
        if (!env) {
            if (change->env == ENV_INSTALLATION)
                report(engine, NULL, change);
            change_finish(change);
            continue;
        }
        assert(change->seq == env->applied + 1);
        if (change->kind == CHANGE_RUN) {
            apply_run(engine, env, change);
        } else {
            report(engine, NULL, change);
            environment_pass(env, change->seq);
        }
        change_finish(change);
    }
}

/* Returns false while windows of the change's environment have yet to evaluate many
 * others. */
static bool may_apply(struct engine *engine, const struct change *change)
{
    const struct environment *env = engine_environment(engine, change->env);
    return !env || !evaluation_is_full(&env->evaluation);
}

bool engine_apply_some(struct engine *engine, struct store_commit *commit, size_t *applied)
{
    struct timeslice timeslice = loop_timeslice(engine->loop);
    while (*applied < commit->change_count &&
           may_apply(engine, &commit->changes[*applied]) && timeslice_left(&timeslice))
        engine_apply(engine, &commit->changes[(*applied)++], 1);
    return *applied < commit->change_count;
}
