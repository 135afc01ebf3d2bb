/* sweep.c - applies the consequences of run states, at start and when versions change.
 *
 *   each run of an environment, oldest change first, some in each turn
 *     ├ no deadline set yet           ─► set its timer
 *     ├ queued, waits for a version   ─► is it there now?
 *     ├ waits for something           ─► noted in the tables of waits.c
 *     ├ is leased                     ─► noted in leases.c
 *     ├ its parent was canceled       ─► canceled too
 *     └ its branch was archived       ─► canceled
 *
 * So nothing that a crash interrupts has to be recorded. */
#include "base/mem.h"
#include "core/engine/calls.h"
#include "core/engine/run_commands.h"
#include "core/engine/store_retry.h"
#include "core/engine/waits.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/leases.h"
#include "core/fleet/versions.h"
#include "core/model/run_life.h"

enum { LOOKED_AT_ONCE = 256, CANCELED_AT_ONCE = 16 };

struct sweep {
    struct engine *engine;
    struct environment *env;
    struct flusher flusher;
    uint64_t at, until; /* revs */
    bool again;         /* run it once more when it is done */
    struct list link;   // engine::sweeps
};

/* Canceling a parent cancels its children. No other outcome does, because a task may
 * trigger runs that outlive it. */
static bool takes_children_along(const struct run *parent)
{
    return parent->status == RUN_CANCELED && run_is_settled(parent);
}

struct parent_read {
    struct store_retry retry; /* first */
    struct run_read read;
    struct engine *engine;
    struct environment *env;
    char child[ID_MAX];
};

static void parent_read_free(struct parent_read *op)
{
    environment_release(op->env);
    free(op);
}

static void follow_again(struct store_retry *retry)
{
    struct parent_read *op = container_of(retry, struct parent_read, retry);
    struct tracked *child = environment_find(op->env, slice_of(op->child));
    if (child)
        engine_follow_parent(op->engine, child);
    parent_read_free(op);
}

static void on_parent_read(struct run_read *read, enum err status)
{
    struct parent_read *op = container_of(read, struct parent_read, read);
    op->engine->reads--;
    if (status && status != ERR_NOT_FOUND) {
        store_retry_later(op->engine, &op->retry, follow_again);
        return;
    }
    if (!status && takes_children_along(read->run) && !op->engine->stopped)
        run_cancel_alone(op->engine, op->env, slice_of(op->child));
    parent_read_free(op);
}

/* A parent that is not in memory is final, but only the store knows how it ended. */
void engine_follow_parent(struct engine *engine, struct tracked *run)
{
    struct slice id = bytes_slice(run_rare(&run->run)->parent);
    if (!id.ptr || run_is_final(&run->run))
        return;
    const struct tracked *parent = environment_find(run->env, id);
    if (parent && takes_children_along(&parent->run))
        run_cancel_alone(engine, run->env, slice_of(run->run.id));
    if (parent)
        return;
    struct parent_read *op = mem_new(struct parent_read);
    op->engine = engine;
    op->env = run->env;
    environment_hold(op->env);
    engine->reads++;
    snprintf(op->child, sizeof(op->child), "%s", run->run.id);
    run_read_begin(run->env, id, &op->read, on_parent_read);
}

void engine_follow_branch(struct engine *engine, struct tracked *run)
{
    if (engine_is_retired(run->env) && !run_is_final(&run->run))
        run_cancel_archived(engine, run->env, slice_of(run->run.id));
}

static enum decision advance(const struct command *command, struct run *next,
                             enum run_event event)
{
    return run_advance(next, event, loop_wall_ms(command->engine->loop)) ? DECISION_NOTHING
                                                                         : DECISION_COMMIT;
}

/* Returns true if the run was triggered when no version, or an older one, had its task, and
 * needs limits that the task has now. */
static bool lacks_limits(const struct environment *env, const struct run *run)
{
    return run->status == RUN_QUEUED &&
           versions_has_limits_for(run, workers_task_of(env->fleet->workers, run));
}

/* A run that is queued, or waits for a version again, keeps its ttl or pause and its place
 * in the queue. A retry is checked when it is dequeued. */
static enum decision decide_version(struct command *command, const struct run *now,
                                    struct run *next, unsigned *marks)
{
    enum version_verdict verdict = versions_check(command->env, now);
    (void)marks;
    if (now->status == RUN_PENDING_VERSION && verdict == VERSION_IS_THERE) {
        versions_lock(command->env, next);
        versions_take_limits(next, workers_task_of(command->env->fleet->workers, next));
        return advance(command, next, EVENT_VERSION_CAME);
    }
    if (now->status == RUN_QUEUED && verdict > VERSION_UNDECIDED)
        return advance(command, next, EVENT_NO_VERSION);
    if (!lacks_limits(command->env, now))
        return DECISION_NOTHING;
    versions_take_limits(next, workers_task_of(command->env->fleet->workers, next));
    return DECISION_COMMIT;
}

void engine_follow_version(struct engine *engine, struct tracked *run)
{
    enum version_verdict verdict;
    if (run->run.status != RUN_PENDING_VERSION && run->run.status != RUN_QUEUED)
        return;
    verdict = versions_check(run->env, &run->run);
    bool must_change = run->run.status == RUN_QUEUED ? verdict > VERSION_UNDECIDED ||
                                                           lacks_limits(run->env, &run->run)
                                                     : verdict == VERSION_IS_THERE;
    if (must_change)
        command_begin_alone(engine, run->env, slice_of(run->run.id), decide_version);
}

static void follow(struct engine *engine, struct tracked *run)
{
    if (!run_is_settled(&run->run) && !flights_have(engine, run))
        engine_place(engine, run); /* loaded without a timer */
    if (engine_is_retired(run->env)) {
        engine_follow_branch(engine, run);
        return;
    }
    engine_follow_version(engine, run);
    waits_note(engine, run);
    leases_note(run);
    engine_follow_parent(engine, run);
}

static bool sweep_some(struct flusher *flusher)
{
    struct sweep *sweep = container_of(flusher, struct sweep, flusher);
    const struct order *all = &sweep->env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(sweep->engine->loop);

    /* If there are many sweeps, only the first continues however late the turn is. */
    if (sweep->engine->sweeps.next != &sweep->link && !loop_time_left(timeslice.loop))
        return true;
    for (uint32_t i = order_after(all, sweep->at); i < all->count; i++) {
        struct place place = order_place(all, i);
        if (place.rev > sweep->until)
            break;
        if (!timeslice_left_every(&timeslice, engine_is_retired(sweep->env)
                                                  ? CANCELED_AT_ONCE
                                                  : LOOKED_AT_ONCE))
            return true;
        sweep->at = place.rev;
        if (place.run)
            follow(sweep->engine, place.run);
    }
    if (sweep->again) {
        sweep->again = false;
        sweep->at = 0;
        sweep->until = sweep->env->applied;
        return true;
    }
    engine_end_sweep(&sweep->link);
    return false;
}

void engine_end_sweep(struct list *link)
{
    struct sweep *sweep = container_of(link, struct sweep, link);
    loop_remove_flusher(&sweep->flusher);
    list_remove(link);
    environment_release(sweep->env);
    free(sweep);
}

void engine_sweep_environment(struct engine *engine, struct environment *env)
{
    if (engine->follows)
        return;
    list_each (link, &engine->sweeps) {
        struct sweep *under_way = container_of(link, struct sweep, link);
        if (under_way->env == env) {
            under_way->again = true;
            return;
        }
    }
    struct sweep *sweep = mem_new(struct sweep);
    sweep->engine = engine;
    sweep->env = env;
    environment_hold(env);
    sweep->until = env->applied;
    sweep->flusher.fn = sweep_some;
    list_append(&engine->sweeps, &sweep->link);
    loop_add_flusher(engine->loop, &sweep->flusher);
    loop_wake(engine->loop, &sweep->flusher);
}

void engine_sweep(struct engine *engine)
{
    uint32_t at = 0;
    engine->is_loading = false;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));) {
        dev_sessions_start(env);
        engine_sweep_environment(engine, env);
    }
}
