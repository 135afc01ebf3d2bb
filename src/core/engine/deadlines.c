/* deadlines.c - timers of runs: what a run waited for has arrived, or did not arrive in
 * time.
 *
 *   delayed: its time    queued: its ttl              leased: no start
 *   waiting: its date    executing: no sign of life   canceling: no confirmation
 *   retry, pause: may be offered again
 *
 * Deadlines are stored in the runs (due_at), so they survive a restart. Heartbeats are not
 * stored: after a restart, every executing run has its full heartbeat timeout again. */
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/engine/attempts.h"
#include "core/engine/calls.h"
#include "core/engine/waits.h"
#include "core/fleet/versions.h"
#include "core/model/run_life.h"

enum {
    DEQUEUE_FAILURES_MAX = 12,
    DEQUEUE_PAUSE_MS = 1000,
    DEQUEUE_PAUSE_MAX_MS = 3600 * 1000,
    STALLED_RETRY_MS = 250,
    NEVER_STARTED_TEXT = 512, /* bytes of the error, with the worker's reason and a zero */
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

static enum decision start_queue(const struct command *command, struct run *next,
                                 int64_t time)
{
    versions_lock(command->env, next);
    bool waits = versions_lack(command->env, next);
    if (run_advance(next, waits ? EVENT_NO_VERSION : EVENT_DELAY_OVER, time))
        return DECISION_NOTHING;
    int64_t ttl = run_ttl_ms(next);
    next->queued_at = time;
    next->due_at = ttl ? time + ttl : 0;
    return DECISION_COMMIT;
}

static struct bytes *never_started(struct slice said)
{
    char text[NEVER_STARTED_TEXT] = "No worker started the run after it was dequeued";
    if (said.len)
        snprintf(
            text, sizeof(text),
            "No worker started the run after it was dequeued; the last one reported: %.*s",
            SLICE_ARG(said));
    return error_internal("TASK_RUN_DEQUEUED_MAX_RETRIES", text);
}

/* Offers the run again after a pause, or fails it after DEQUEUE_FAILURES_MAX leases. Pauses
 * double, with a random part, up to an hour. said: the worker's reason; absent if it gave
 * none. */
static enum decision lease_over(const struct command *command, struct run *next,
                                const char *reason, struct slice said, unsigned *marks)
{
    int64_t pause = DEQUEUE_PAUSE_MS, time = loop_wall_ms(command->engine->loop);

    if (++next->dequeue_failures >= DEQUEUE_FAILURES_MAX) {
        if (run_advance(next, EVENT_SYSTEM_FAILURE, time))
            return DECISION_NOTHING;
        run_end_with(next, never_started(said), marks);
        log_decision("lease over", command->env->id, next->id, reason, "failures",
                     log_number(next->dequeue_failures), NULL);
        return DECISION_COMMIT;
    }
    if (run_advance(next, EVENT_LEASE_OVER, time))
        return DECISION_NOTHING;
    pause <<= next->dequeue_failures - 1;
    pause += (int64_t)random_below((uint64_t)pause);
    next->due_at = time + (pause < DEQUEUE_PAUSE_MAX_MS ? pause : DEQUEUE_PAUSE_MAX_MS);
    log_decision("lease over", command->env->id, next->id, reason, "failures",
                 log_number(next->dequeue_failures), "delay_ms",
                 log_number(next->due_at - time), NULL);
    return DECISION_COMMIT;
}

static enum decision decide_release(struct command *command, const struct run *now,
                                    struct run *next, unsigned *marks)
{
    struct release *op = container_of(command, struct release, command);
    if (!run_is_newest(now, op->snapshot)) {
        explain(&command->why, ERR_CONFLICT, "The snapshot is not the run's newest");
        return DECISION_REFUSE;
    }
    if (now->execution != EXECUTION_PENDING_EXECUTING) {
        explain(&command->why, ERR_INVALID, "The run is not dequeued");
        return DECISION_REFUSE;
    }
    return lease_over(command, next, "its worker gave it back", op->reason, marks);
}

void attempt_release(struct engine *engine, struct environment *env, struct slice run_id,
                     struct release *op, command_done_fn *done)
{
    command_begin(engine, env, run_id, &op->command, decide_release, done);
}

static void log_lost(const struct command *command, const struct run *now)
{
    log_decision("attempt lost", command->env->id, now->id,
                 "its worker stopped its heartbeat", "attempt", log_number(now->attempt),
                 NULL);
}

/* The worker gave no sign of life: in dev its session is gone, elsewhere another worker may
 * retry the run. */
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
        log_lost(command, now);
        log_decision("retry planned", command->env->id, now->id, "its attempt was lost",
                     "attempt", log_number(now->attempt), "delay_ms",
                     log_number(STALLED_RETRY_MS), NULL);
        return DECISION_COMMIT;
    }
    if (run_advance(next, command->env->is_dev ? EVENT_INTERRUPTED : EVENT_FAILED, time))
        return DECISION_NOTHING;
    log_lost(command, now);
    run_end_with(next,
                 error_internal(code, command->env->is_dev
                                          ? "No heartbeat came for the run: trigger dev "
                                            "ended, or could not report the end"
                                          : "The worker stopped its heartbeat"),
                 marks);
    return DECISION_COMMIT;
}

/* Returns true if the worker was silent for too long in the current state of the run. A
 * transition decided a moment ago has its own timeout. */
static bool is_silent(const struct command *command, const struct run *now)
{
    const struct tracked *run = environment_find(command->env, slice_of(now->id));
    return run && run->run.snapshot == now->snapshot &&
           engine_lost_at(run) <= loop_now_ms(command->engine->loop);
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
    case EXECUTION_DELAYED:
        return due ? start_queue(command, next, time) : DECISION_NOTHING;
    case EXECUTION_CREATED:
    case EXECUTION_QUEUED:
        return due && !now->started_at ? expire(next, time, marks) : DECISION_NOTHING;
    case EXECUTION_PENDING_EXECUTING:
        return due ? lease_over(command, next, "its worker did not start it in time",
                                (struct slice){ 0 }, marks)
                   : DECISION_NOTHING;
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

/* Returns true if nothing has to be written, and the run only gets a new place in the
 * timers: a pause has ended, the clock was set back, or a heartbeat arrived. */
static bool only_place(struct engine *engine, const struct tracked *run)
{
    int64_t time = loop_wall_ms(engine->loop);
    bool is_alive = engine_lost_at(run) > loop_now_ms(engine->loop);
    switch (run->run.execution) {
    case EXECUTION_QUEUED: return run->run.started_at || run->run.due_at > time;
    case EXECUTION_EXECUTING: return is_alive;
    case EXECUTION_WITH_WAITPOINTS:
        return (!run->run.due_at || run->run.due_at > time) && is_alive;
    default: return run->run.due_at > time;
    }
}

/* The run keeps its deadline until the store has taken the change. */
static void on_due(struct command *command, enum err status)
{
    (void)status;
    free(command);
}

void deadlines_on_due(struct timer *timer)
{
    struct tracked *run = container_of(timer, struct tracked, timer);
    struct engine *engine = run->env->engine;
    if (flights_have(engine, run) || engine->stopped)
        return; /* placed again after the commit */
    if (only_place(engine, run))
        engine_place(engine, run);
    else
        command_begin(engine, run->env, slice_of(run->run.id), mem_new(struct command),
                      decide_due, on_due);
}
