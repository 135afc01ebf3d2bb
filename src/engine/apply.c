/* apply.c - the one way a change becomes visible.
 *
 *   change ──► run table, orders, ring (environment_put) ──► queue, slot, timer ──► what
 *              must follow: children of an ended run end, workers get what is ready
 *
 * Our own commits come here when the store has acknowledged them, in the order of their
 * numbers; with a database shared by several gateways its feed would come here too. */
#include <assert.h>

#include "base/buf.h"
#include "base/metrics.h"
#include "engine/attempts.h"
#include "engine/run_commands.h"
#include "engine/sessions.h"
#include "engine/state.h"
#include "engine/versions.h"
#include "engine/waiting.h"
#include "engine/waits.h"

enum { CHILDREN_AT_ONCE = 500 };

int64_t engine_deadline(const struct engine *engine, int64_t unix_ms)
{
    int64_t left = unix_ms - loop_wall_ms(engine->loop);
    return loop_now_ms(engine->loop) + (left > 0 ? left : 0);
}

/* Its turn may not have come: a retry is due later, or a failed dequeue made it pause. */
static bool waits_in_queue(const struct engine *engine, const struct run *run)
{
    if (run->execution != EXECUTION_QUEUED || run_is_final(run))
        return false;
    bool may_pause = run->status == RUN_RETRYING || run->started_at;
    return !may_pause || run->due_at <= loop_wall_ms(engine->loop);
}

/* Of a run that waits for a version only its ttl, which what was dequeued once has not: due_at
 * is the end of a pause then, for when the version comes. */
static int64_t next_deadline(struct engine *engine, struct tracked *run)
{
    int64_t due = run->run.due_at ? engine_deadline(engine, run->run.due_at) : INT64_MAX;
    int64_t lost = attempt_lost_at(run);
    switch (run->run.execution) {
    case EXECUTION_CREATED: return run->run.started_at ? INT64_MAX : due;
    case EXECUTION_EXECUTING: return lost;
    case EXECUTION_WITH_WAITPOINTS: return due < lost ? due : lost;
    case EXECUTION_FINISHED: return INT64_MAX;
    default: return due;
    }
}

/* What could not be written is tried again, but not at once. */
static int64_t not_at_once(const struct engine *engine, int64_t deadline)
{
    bool trouble = engine->store->failing || engine->store->full;
    int64_t now = loop_now_ms(engine->loop);
    return trouble && deadline <= now ? now + STORE_AGAIN_MS : deadline;
}

/* Those whose session has it: in dev. */
static uint32_t audience_of(const struct tracked *run)
{
    const struct session *session =
        run->env->is_dev ? sessions_of_run(run->env, &run->run) : NULL;
    return session ? session->audience : AUDIENCE_NOBODY;
}

void engine_place(struct engine *engine, struct tracked *run)
{
    struct environment *env = run->env;
    struct timers *timers = loop_timers(engine->loop);
    struct slice queue = bytes_slice(run->run.queue);
    struct slice key = bytes_slice(run_rare(&run->run)->concurrency_key);

    if (run_holds_slot(&run->run)) {
        queues_run(&env->queues, &run->item, queue, key);
    } else if (waits_in_queue(engine, &run->run) && !run->in_flight) {
        run->item.audience = (uint16_t)audience_of(run); /* below 64, sessions.c */
        queues_wait(&env->queues, &run->item, queue, key, run->run.queue_position);
    } else {
        queues_leave(&env->queues, &run->item);
    }
    engine_match(engine, env);
    waiting_note(run);

    int64_t deadline = not_at_once(engine, next_deadline(engine, run));
    if (deadline == INT64_MAX || (run->item.place && run->run.started_at))
        timers_clear(timers, &run->timer);
    else
        timers_set(timers, &run->timer, engine->due_kind, deadline);
}

/* Children that are not final are canceled with their parent, once that is confirmed. The
 * sweep finds so many that they would not fit a turn. */
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

/* Whether the worker of the run has to be told that there is a new snapshot. Of a start, a
 * complete and a lease it learns from the answer; whatever else makes a snapshot, it did not
 * ask for. */
static bool is_news(const struct tracked *known, const struct run *next)
{
    if (!known || known->run.snapshot == next->snapshot)
        return false;
    switch (next->execution) {
    case EXECUTION_PENDING_EXECUTING: return false;
    case EXECUTION_WITH_WAITPOINTS:
    case EXECUTION_PENDING_CANCEL: return true; /* whatever came with it */
    default: return known->run.worker_request == next->worker_request;
    }
}

void engine_on_notice(struct engine *engine, engine_notice_fn *fn, void *owner)
{
    engine->on_notice = fn;
    engine->notice_owner = owner;
}

void engine_notice(const struct engine *engine, const struct tracked *run)
{
    if (engine->on_notice)
        engine->on_notice(engine->notice_owner, run);
}

/* Its worker has as long as ever to be heard of again; a pause does not count, but who
 * polls does so meanwhile, too. */
static void begin_silence(const struct engine *engine, struct tracked *run)
{
    int64_t now = loop_now_ms(engine->loop), from = now;
    if (run->run.status == RUN_RETRYING && run->run.execution == EXECUTION_EXECUTING)
        from = engine_deadline(engine, run->run.due_at);
    run->alive_until = from + engine->options.heartbeat_ms;
    if (run->heard_until)
        run->heard_until = run_is_with_worker(&run->run) ? now + SESSION_LOST_MS : 0;
}

static void apply_run(struct engine *engine, struct environment *env, struct change *change)
{
    const struct tracked *known = environment_find(env, slice_of(change->run.id));
    bool news = is_news(known, &change->run);
    if (run_is_final(&change->run) && !(known && run_is_final(&known->run)))
        metric_add(M_ENDED_CANCELED + (change->run.status - RUN_CANCELED), 1);
    struct tracked *run = environment_put(env, &change->run, change->seq);
    if (news)
        engine_notice(engine, run);
    begin_silence(engine, run);
    engine_place(engine, run);
    versions_follow(engine, run); /* another one may be current since it was decided */
    waits_note(engine, run);
    if (run_is_final(&run->run))
        waits_end(engine, env, slice_of(run->run.id));
    if (run_is_settled(&run->run) && run->run.status == RUN_CANCELED)
        end_children(engine, run);
    else if (env->retired)
        engine_follow_branch(engine, run); /* it came, or went on, behind the sweep */
    else if (run->run.version == 1)
        engine_follow_parent(engine, run); /* it may have come too late */
    engine_evict(engine, env);
}

void engine_apply(struct engine *engine, struct change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct change *change = &changes[i];
        struct environment *env = engine_environment(engine, change->env);
        if (!env) {
            change_finish(change); /* of the installation: nobody watches it */
            continue;
        }
        assert(change->seq == env->applied + 1);
        if (change->kind == CHANGE_RUN) {
            apply_run(engine, env, change);
        } else {
            env->applied = change->seq;
            history_note(&env->history, change->seq, 0);
        }
        change_finish(change);
    }
}

/* Nothing is due before everything is in memory: the sweep sets the timers. */
void engine_load_run(struct engine *engine, struct environment *env, struct run *run)
{
    run_share_names(run);
    struct tracked *tracked = environment_load(env, run);
    tracked->alive_until = loop_now_ms(engine->loop) + engine->options.heartbeat_ms;
    engine_place(engine, tracked);
    timers_clear(loop_timers(engine->loop), &tracked->timer);
}
