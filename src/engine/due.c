/* due.c - deadlines: what the state of a run waited for has come, or did not come in time.
 *
 *   delayed: its time    queued: its ttl          leased: no start     canceling: no answer
 *   waiting: its date    executing: no heartbeat  retry, pause: may be offered again
 *
 * The deadlines are in the runs (due_at), so they come back after a restart; heartbeats
 * are not written, a restart gives every executing run its full time again. */
#include "base/mem.h"
#include "engine/attempts.h"
#include "engine/leases.h"
#include "engine/schedule_state.h"
#include "engine/state.h"
#include "engine/steer.h"
#include "engine/waits.h"
#include "engine/workers.h"

enum {
    DEQUEUE_FAILURES_MAX = 12,
    DEQUEUE_PAUSE_MS = 1000,
    DEQUEUE_PAUSE_MAX_MS = 3600 * 1000,
    STALLED_RETRY_MS = 250,
};

static enum decision expire(struct run *next, int64_t time, unsigned *marks)
{
    char text[128];
    if (run_advance(next, EVENT_TTL_OVER, time))
        return DECISION_NOTHING;
    snprintf(text, sizeof(text), "Run expired because the TTL (%.60s) was reached",
             run_rare(next)->ttl ? run_rare(next)->ttl->data : "");
    run_end_with(next, error_text(text), marks);
    run_rare_edit(next)->expired_at = time;
    return DECISION_COMMIT;
}

static enum decision start_queue(struct run *next, int64_t time)
{
    if (run_advance(next, EVENT_DELAY_OVER, time))
        return DECISION_NOTHING;
    int64_t ttl = run_ttl_ms(next);
    next->queued_at = time;
    next->due_at = ttl ? time + ttl : 0;
    return DECISION_COMMIT;
}

/* Pauses double, with a random part, up to an hour (worker-protocol §3.4, end). */
static enum decision lease_over(struct run *next, int64_t time, unsigned *marks)
{
    int64_t pause = DEQUEUE_PAUSE_MS;

    if (++next->dequeue_failures >= DEQUEUE_FAILURES_MAX) {
        if (run_advance(next, EVENT_SYSTEM_FAILURE, time))
            return DECISION_NOTHING;
        run_end_with(next,
                     error_internal("TASK_RUN_DEQUEUED_MAX_RETRIES",
                                    "No worker started the run after it was dequeued"),
                     marks);
        return DECISION_COMMIT;
    }
    if (run_advance(next, EVENT_LEASE_OVER, time))
        return DECISION_NOTHING;
    pause <<= next->dequeue_failures - 1;
    pause += (time * 7919) % pause;
    next->due_at = time + (pause < DEQUEUE_PAUSE_MAX_MS ? pause : DEQUEUE_PAUSE_MAX_MS);
    return DECISION_COMMIT;
}

static enum decision decide_release(struct command *command, const struct run *now,
                                    struct run *next, unsigned *marks)
{
    struct release *op = container_of(command, struct release, command);
    if (!run_is_newest(now, op->snapshot)) {
        explain(&command->why, ERR_CONFLICT, "The snapshot is not the newest of the run");
        return DECISION_REFUSE;
    }
    if (now->execution != EXECUTION_PENDING_EXECUTING) {
        explain(&command->why, ERR_INVALID, "The run is not dequeued");
        return DECISION_REFUSE;
    }
    return lease_over(next, loop_wall_ms(command->engine->loop), marks);
}

void attempt_release(struct engine *engine, struct environment *env, struct slice run_id,
                     struct release *op, command_done_fn *done)
{
    command_begin(engine, env, run_id, &op->command, decide_release, done);
}

/* Nobody was heard of: in dev the session is gone, elsewhere another worker may try. */
static enum decision stalled(const struct command *command, const struct run *now,
                             struct run *next, int64_t time, unsigned *marks)
{
    const char *code = now->execution == EXECUTION_WITH_WAITPOINTS
                           ? "TASK_RUN_STALLED_EXECUTING_WITH_WAITPOINTS"
                           : "TASK_RUN_STALLED_EXECUTING";

    if (!command->env->is_dev && now->attempt < now->max_attempts) {
        if (run_advance(next, EVENT_RETRY_QUEUED, time))
            return DECISION_NOTHING;
        next->due_at = time + STALLED_RETRY_MS;
        return DECISION_COMMIT;
    }
    if (run_advance(next, command->env->is_dev ? EVENT_INTERRUPTED : EVENT_FAILED, time))
        return DECISION_NOTHING;
    run_end_with(next, error_internal(code, "The worker stopped its heartbeat"), marks);
    return DECISION_COMMIT;
}

/* Of the state that the run has now; one decided just before begins its own silence. */
static bool is_silent(const struct command *command, const struct run *now)
{
    const struct tracked *run = environment_find(command->env, slice_of(now->id));
    return run && run->run.snapshot == now->snapshot &&
           run->alive_until <= loop_now_ms(command->engine->loop);
}

static enum decision confirm_cancel(struct run *next, int64_t time)
{
    next->due_at = 0;
    return run_advance(next, EVENT_CANCEL_CONFIRMED, time) ? DECISION_NOTHING
                                                           : DECISION_COMMIT;
}

static enum decision decide_due(struct command *command, const struct run *now,
                                struct run *next, unsigned *marks)
{
    int64_t time = loop_wall_ms(command->engine->loop);
    bool due = now->due_at && now->due_at <= time;

    switch (now->execution) {
    case EXECUTION_DELAYED: return due ? start_queue(next, time) : DECISION_NOTHING;
    case EXECUTION_CREATED:
    case EXECUTION_QUEUED:
        return due && !now->started_at ? expire(next, time, marks) : DECISION_NOTHING;
    case EXECUTION_PENDING_EXECUTING:
        return due ? lease_over(next, time, marks) : DECISION_NOTHING;
    case EXECUTION_PENDING_CANCEL:
        return due ? confirm_cancel(next, time) : DECISION_NOTHING;
    case EXECUTION_WITH_WAITPOINTS:
        if (due)
            return waits_decide(command->engine, command->env, next);
        break;
    case EXECUTION_EXECUTING: break;
    default: return DECISION_NOTHING;
    }
    return is_silent(command, now) ? stalled(command, now, next, time, marks)
                                   : DECISION_NOTHING;
}

/* Nothing to write: a pause is over, the clock was set back, or a heartbeat came. */
static bool only_place(struct engine *engine, const struct tracked *run)
{
    int64_t time = loop_wall_ms(engine->loop);
    switch (run->run.execution) {
    case EXECUTION_QUEUED: return run->run.started_at || run->run.due_at > time;
    case EXECUTION_EXECUTING: return run->alive_until > loop_now_ms(engine->loop);
    case EXECUTION_WITH_WAITPOINTS:
        return (!run->run.due_at || run->run.due_at > time) &&
               run->alive_until > loop_now_ms(engine->loop);
    default: return run->run.due_at > time;
    }
}

void run_due(struct timer *timer)
{
    struct tracked *run = container_of(timer, struct tracked, timer);
    struct engine *engine = run->env->engine;
    if (run->in_flight || engine->stopped)
        return; /* placed again when the commit is through */
    if (only_place(engine, run))
        engine_place(engine, run);
    else
        command_begin_alone(engine, run->env, slice_of(run->run.id), decide_due);
}

/* ---- what must follow from the states ---- */

struct sweep {
    struct engine *engine;
    struct environment *env;
    struct flusher flusher;
    uint64_t at, until; /* revs */
    bool again;         /* somebody wants another one */
    struct list link;   // engine::sweeps
};

static enum decision decide_version_came(struct command *command, const struct run *now,
                                         struct run *next, unsigned *marks)
{
    int64_t time = loop_wall_ms(command->engine->loop);
    (void)marks;
    if (now->status != RUN_PENDING_VERSION || run_advance(next, EVENT_VERSION_CAME, time))
        return DECISION_NOTHING;
    return DECISION_COMMIT;
}

/* A canceled parent takes its children with it; any other end leaves them alone, since a
 * task may trigger what outlives it (worker-protocol §3.5). */
static bool takes_children_along(const struct run *parent)
{
    return parent->status == RUN_CANCELED && run_is_settled(parent);
}

struct parent_read {
    struct run_read read; /* first */
    struct engine *engine;
    char child[ID_MAX];
};

static void on_parent_read(struct run_read *read, enum err status)
{
    struct parent_read *op = container_of(read, struct parent_read, read);
    op->engine->reads--;
    if (!status && takes_children_along(read->run) && !op->engine->stopped)
        run_cancel_alone(op->engine, read->env, slice_of(op->child));
    free(op);
}

/* A parent that memory has not is final, but only the store knows how it ended. */
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
    engine->reads++;
    snprintf(op->child, sizeof(op->child), "%s", run->run.id);
    run_read_begin(run->env, id, &op->read, on_parent_read);
}

static void follow(struct engine *engine, struct tracked *run)
{
    struct environment *env = run->env;
    struct slice id = slice_of(run->run.id);

    if (!run_is_settled(&run->run) && !run->in_flight)
        engine_place(engine, run); /* loaded without a timer */
    if (run->run.status == RUN_PENDING_VERSION) {
        const struct worker *worker = workers_for(env->workers, &run->run);
        if (worker_task(worker, bytes_slice(run->run.task)))
            command_begin_alone(engine, env, id, decide_version_came);
    }
    waits_note(engine, run);
    leases_note(engine->leases, run);
    engine_follow_parent(engine, run);
}

static bool sweep_some(struct flusher *flusher)
{
    struct sweep *sweep = container_of(flusher, struct sweep, flusher);
    const struct order *all = &sweep->env->hub.all.order;
    uint32_t i = order_after(all, sweep->at), looked = 0;

    for (; i < all->count; i++) {
        struct place place = order_place(all, i);
        if (place.rev > sweep->until)
            break;
        if ((++looked & 255) == 0 && !loop_time_left(sweep->engine->loop))
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
    free(sweep);
}

void engine_sweep_environment(struct engine *engine, struct environment *env)
{
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
    sweep->until = env->applied;
    sweep->flusher.fn = sweep_some;
    list_append(&engine->sweeps, &sweep->link);
    loop_add_flusher(engine->loop, &sweep->flusher);
    loop_wake(engine->loop, &sweep->flusher);
}

void engine_sweep(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->environment_count; i++)
        if (engine->environments[i])
            engine_sweep_environment(engine, engine->environments[i]);
    schedules_start(engine->schedules);
}
