/* attempts.c - decides on a worker's reports about a run: started, alive, completed.
 *
 *   leased ── start ──► executing ── complete: ok ──────────────► COMPLETED
 *                        ▲  ▲  └──── complete: failed ─┬─────────► final, by its error
 *                        │  │                          │
 *                        │  └── the worker starts it ◄─┤ retry in less than 30 s
 *                        └── offered again when due ◄──┘ retry later, or by the server
 *
 *   canceling ── complete, with any result ──► CANCELED
 *   leased … canceling ── session ended ─────► INTERRUPTED, or CANCELED
 *
 * Start, heartbeat and complete name the newest snapshot; this rule replaces lease tokens.
 * If the worker could not say whether to retry, the settings that its version registered
 * decide. waits.c decides about the things that a run waits for. */
#include "core/engine/attempts.h"

#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/engine/calls.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/leases.h"
#include "core/model/metadata.h"
#include "core/model/run_life.h"

enum {
    RETRY_SOON_MS = 30 * 1000,
    USAGE_MAX = INT32_MAX,
    ENDING_SMALL = 4096, /* outputs and errors up to this size are always stored */
};

static enum decision attempt_refuse(struct command *command, enum err code,
                                    const char *text)
{
    explain(&command->why, code, "%s", text);
    return DECISION_REFUSE;
}

bool attempt_is_hidden(const struct run *run, bool by_token)
{
    return run->by_token && !by_token && !run_is_settled(run);
}

/* ---- start ---- */

/* Returns false if a run in this state cannot be started. */
static bool begin_attempt(const struct command *command, struct run *next, int64_t time)
{
    if (run_advance(next, EVENT_STARTED, time))
        return false;
    if (!next->attempt && !command->env->is_dev)
        next->base_cost_cents = command->engine->options.prices.run;
    next->attempt++;
    next->attempt_at = time;
    next->dequeue_failures = 0;
    next->due_at = 0;
    if (run_rare(next)->waits)
        bytes_clear(&run_rare_edit(next)->waits);
    return true;
}

static enum decision decide_start(struct command *command, const struct run *now,
                                  struct run *next, unsigned *marks)
{
    struct start_attempt *op = container_of(command, struct start_attempt, command);
    int64_t time = loop_wall_ms(command->engine->loop);

    if (attempt_is_hidden(now, op->by_token))
        return attempt_refuse(command, ERR_NOT_FOUND, "Run not found");
    if (run_was_asked_by(now, op->request_id) && now->execution == EXECUTION_EXECUTING)
        return DECISION_NOTHING;
    if (run_is_final(now))
        return attempt_refuse(command, ERR_INVALID,
                              "The run is finished or being canceled");
    if (!run_is_newest(now, op->snapshot))
        return attempt_refuse(command, ERR_CONFLICT,
                              "The snapshot is not the run's newest");
    if (!begin_attempt(command, next, time))
        return attempt_refuse(command, ERR_INVALID,
                              "The run cannot be started in this state");
    if (next->attempt > RUN_ATTEMPTS_MAX) {
        run_finish(next);
        run_copy(next, now);
        run_end_with(next, error_internal("TASK_RUN_CRASHED", "Too many attempts"), marks);
        return run_advance(next, EVENT_CRASHED, time)
                   ? attempt_refuse(command, ERR_INVALID, "Too many attempts")
                   : DECISION_COMMIT;
    }
    run_remember_request(next, op->request_id);
    return DECISION_COMMIT;
}

void attempt_start(struct engine *engine, struct environment *env, struct slice run_id,
                   struct start_attempt *op, command_done_fn *done)
{
    command_begin(engine, env, run_id, &op->command, decide_start, done);
}

bool attempt_heartbeat(struct engine *engine, struct environment *env, struct slice run_id,
                       struct slice snapshot)
{
    struct tracked *run = environment_find(env, run_id);
    if (!run || !run_is_newest(&run->run, snapshot))
        return false;
    int64_t now = loop_now_ms(engine->loop);
    run->alive_until = now + engine->options.heartbeat_ms;
    if (run->polled_until)
        run->polled_until = now + SESSION_LOST_MS;
    return true; /* the timer checks this when it fires: no heap work per heartbeat */
}

/* ---- a CLI that polls ---- */

void attempt_look(struct engine *engine, struct environment *env, struct slice run_id)
{
    struct tracked *run = environment_find(env, run_id);
    if (!env->is_dev || !run || !run_is_with_worker(&run->run))
        return;
    bool is_first = !run->polled_until;
    run->polled_until = loop_now_ms(engine->loop) + SESSION_LOST_MS;
    if (is_first && !flights_have(engine, run))
        engine_place(engine, run);
}

/* ---- complete ---- */

/* Returns true for errors of a worker that could not say whether to retry. */
static bool server_may_retry(struct slice error)
{
    static const char *const codes[] = { "\"TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE\"",
                                         "\"TASK_PROCESS_SIGTERM\"",
                                         "\"TASK_PROCESS_SIGSEGV\"",
                                         "\"TASK_RUN_UNCAUGHT_EXCEPTION\"",
                                         "\"TASK_MIDDLEWARE_ERROR\"" };
    struct slice code = scan_member(error, "code");
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (slice_is(code, codes[i]))
            return true;
    return false;
}

static int64_t delay_by_settings(const struct worker_task *task, unsigned attempt)
{
    double delay = (double)task->min_timeout_ms;
    for (unsigned i = 1; i < attempt && delay < (double)task->max_timeout_ms; i++)
        delay *= task->factor;
    if (task->randomize)
        delay *= 1 + (double)random_below(1000) / 1000;
    return delay > (double)task->max_timeout_ms ? task->max_timeout_ms : (int64_t)delay;
}

static const struct worker_task *task_of(const struct command *command,
                                         const struct run *run)
{
    const struct worker *worker =
        workers_by_version(command->env->fleet->workers, bytes_slice(run->worker_version));
    return worker_task(worker, bytes_slice(run->task));
}

/* Finds the retry of a run that ran out of memory: only if its task names a bigger
 * machine. */
static bool find_bigger_machine(const struct worker_task *task, struct run *next,
                                int64_t time, int64_t *at)
{
    if (!task || task->big_machine <= next->machine)
        return false;
    *at = time + delay_by_settings(task, next->attempt);
    next->machine = task->big_machine;
    return true;
}

/* Returns true, and the time, if another attempt is due. by_worker: the worker asked for
 * it. */
static bool find_retry(const struct complete_attempt *op, struct run *next, int64_t time,
                       int64_t *at, bool *by_worker)
{
    const struct worker_task *task = task_of(&op->command, next);

    if (next->attempt >= next->max_attempts)
        return false;
    if (run_error_is_out_of_memory(op->error))
        return find_bigger_machine(task, next, time, at);
    if (op->skipped_retrying || !run_error_is_retriable(op->error))
        return false;
    *by_worker = op->has_retry;
    if (op->has_retry) {
        *at = op->retry_at ? op->retry_at : time + op->retry_delay_ms;
        return true;
    }
    if (!server_may_retry(op->error) || !task || !task->has_retry)
        return false;
    *at = time + delay_by_settings(task, next->attempt);
    return true;
}

static void give_back_room(struct complete_attempt *op)
{
    engine_release_stored(op->command.engine, op->command.env, op->held);
    op->held = 0;
}

/* Returns true if the final output or error of a run is stored, and reserves its bytes. In
 * a project at its quota, only a small one is stored, because any number of runs may still
 * execute and complete. Bytes being written count, because the runs may all complete at
 * once. */
static bool may_keep(struct complete_attempt *op, struct slice ending)
{
    if (ending.len > ENDING_SMALL && engine_is_at_quota(op->command.env))
        return false;
    op->held = ending.len;
    engine_hold_stored(op->command.env, op->held);
    return true;
}

/* Returns the error that replaces an output or error that is not stored. */
static struct bytes *error_of_quota(const struct complete_attempt *op, const char *what,
                                    struct slice ending)
{
    const struct quota *project = engine_storage_quota(op->command.env);
    struct buf text = { 0 };
    metric_add(M_OVER_QUOTA, 1);
    buf_print(
        &text,
        "storage_quota: the %s of %zu bytes was discarded, because the project stores %zu "
        "of %zu bytes; remove runs or raise the quota, then replay the run",
        what, ending.len, project->used, project->limit);
    buf_add_char(&text, 0);
    struct bytes *error = error_text(text.ptr);
    buf_finish(&text);
    return error;
}

static enum decision finish_failed(struct complete_attempt *op, struct run *next,
                                   int64_t time, unsigned *marks)
{
    if (run_advance(next, run_event_of_error(op->error, op->command.env->is_dev), time))
        return attempt_refuse(&op->command, ERR_INVALID,
                              "The run has no attempt to complete");
    run_end_with(next,
                 may_keep(op, op->error) ? bytes_create(op->error)
                                         : error_of_quota(op, "error", op->error),
                 marks);
    op->result = ATTEMPT_RUN_FINISHED;
    return DECISION_COMMIT;
}

static enum decision complete_failed(struct complete_attempt *op, struct run *next,
                                     int64_t time, unsigned *marks)
{
    int64_t at = 0;
    bool by_worker = false;

    if (!find_retry(op, next, time, &at, &by_worker))
        return finish_failed(op, next, time, marks);
    bool soon = by_worker && !op->force_requeue && at - time < RETRY_SOON_MS &&
                engine_take_slot(op->command.env, slice_of(next->id)); /* it may wait */
    if (run_advance(next, soon ? EVENT_RETRY_SOON : EVENT_RETRY_QUEUED, time))
        return attempt_refuse(&op->command, ERR_INVALID,
                              "The run has no attempt to complete");
    next->due_at = at;
    log_decision("retry planned", op->command.env->id, next->id,
                 by_worker ? "its worker requested it" : "by the settings of its task",
                 "attempt", log_number(next->attempt), "delay_ms", log_number(at - time),
                 NULL);
    op->result = soon ? ATTEMPT_RETRY_IMMEDIATELY : ATTEMPT_RETRY_QUEUED;
    return DECISION_COMMIT;
}

/* Sets the type of the output; an earlier attempt may have left one in the run. */
static void set_output_type(struct run *next, struct slice type)
{
    bool is_json = !type.len || slice_is(type, "application/json");
    if (is_json && !run_rare(next)->output_type)
        return;
    struct run_rare *rare = run_rare_edit(next);
    bytes_unref(rare->output_type);
    rare->output_type = is_json ? NULL : bytes_create_shared(type);
}

/* Fails a run whose output is not stored: a reader must not mistake the missing output for
 * an empty one, and another attempt would not find more quota. */
static enum decision fail_for_quota(struct complete_attempt *op, struct run *next,
                                    int64_t time, unsigned *marks)
{
    if (run_advance(next, EVENT_FAILED, time))
        return attempt_refuse(&op->command, ERR_INVALID,
                              "The run has no attempt to complete");
    run_end_with(next, error_of_quota(op, "output", bytes_slice(op->output)), marks);
    op->result = ATTEMPT_RUN_FINISHED;
    return DECISION_COMMIT;
}

static enum decision complete_ok(struct complete_attempt *op, struct run *next,
                                 int64_t time, unsigned *marks)
{
    if (!may_keep(op, bytes_slice(op->output)))
        return fail_for_quota(op, next, time, marks);
    if (run_advance(next, EVENT_SUCCEEDED, time))
        return attempt_refuse(&op->command, ERR_INVALID,
                              "The run has no attempt to complete");
    bytes_set(&next->output, op->output);
    set_output_type(next, op->output_type);
    bytes_clear(&next->error);
    next->due_at = 0;
    *marks |= MARK_OUTPUT;
    op->result = ATTEMPT_RUN_FINISHED;
    return DECISION_COMMIT;
}

/* Returns the result of the first, identical completion, derived from the state it led
 * to. */
static enum attempt_result result_of(const struct run *run)
{
    if (run_is_final(run))
        return ATTEMPT_RUN_FINISHED;
    return run->execution == EXECUTION_QUEUED ? ATTEMPT_RETRY_QUEUED
                                              : ATTEMPT_RETRY_IMMEDIATELY;
}

double attempt_cents_per_ms(const struct environment *env, const struct run *run)
{
    const struct prices *prices = &engine_options(env->engine)->prices;
    return env->is_dev ? 0 : prices_per_ms(prices, (enum machine)run->machine);
}

/* Adds the usage at the price of the machine that executed the attempt; the next attempt
 * may run on another. */
static void add_usage(const struct complete_attempt *op, const struct run *now,
                      struct run *next)
{
    int64_t room = USAGE_MAX - (int64_t)now->usage_ms;
    int64_t ms = op->usage_ms < room ? op->usage_ms : room;
    if (ms <= 0)
        return;
    next->usage_ms += (uint32_t)ms;
    next->cost_cents += (double)ms * attempt_cents_per_ms(op->command.env, now);
}

/* Applies the metadata operations that the worker had not sent before the completion. If
 * they are invalid, too large, or grow the metadata of a full project, they are dropped, so
 * that the result of the attempt is not lost. */
static void apply_metadata(const struct complete_attempt *op, struct run *next,
                           unsigned *marks)
{
    struct buf changed = { 0 };
    struct failure why;
    if (op->metadata_operations.ptr &&
        !metadata_apply(bytes_slice(next->metadata), op->metadata_operations, &changed,
                        &why) &&
        changed.len <= RUN_METADATA_MAX &&
        !engine_check_growth(op->command.env, bytes_slice(next->metadata).len, changed.len,
                             &why)) {
        bytes_unref(next->metadata);
        next->metadata = buf_to_bytes(&changed);
        *marks |= MARK_METADATA;
    }
    buf_finish(&changed);
}

/* Starts the attempt if the worker's start was lost or never sent, so that it can
 * complete. */
static void begin_unless_begun(const struct command *command, struct run *next,
                               int64_t time)
{
    bool is_begun = next->status == RUN_EXECUTING || next->status == RUN_WAITING;
    if (!is_begun && next->attempt < RUN_ATTEMPTS_MAX)
        begin_attempt(command, next, time);
}

static enum decision decide_complete(struct command *command, const struct run *now,
                                     struct run *next, unsigned *marks)
{
    struct complete_attempt *op = container_of(command, struct complete_attempt, command);
    int64_t time = loop_wall_ms(command->engine->loop);
    enum decision decision;

    give_back_room(op); /* it may be decided again */
    if (attempt_is_hidden(now, op->by_token))
        return attempt_refuse(command, ERR_NOT_FOUND, "Run not found");
    if (run_was_asked_by(now, op->request_id)) {
        op->result = result_of(now);
        command->also = NULL; /* the joined commands were carried out the first time */
        return DECISION_NOTHING;
    }
    if (run_is_settled(now))
        return attempt_refuse(command, ERR_INVALID, "The run is already finished");
    if (!run_is_newest(now, op->snapshot))
        return attempt_refuse(command, ERR_INVALID, "The snapshot is not the run's newest");
    if (now->execution == EXECUTION_PENDING_CANCEL) {
        run_advance(next, EVENT_CANCEL_CONFIRMED, time);
        next->due_at = 0;
        op->result = ATTEMPT_RUN_FINISHED;
        decision = DECISION_COMMIT;
    } else {
        begin_unless_begun(command, next, time);
        decision = op->ok ? complete_ok(op, next, time, marks)
                          : complete_failed(op, next, time, marks);
    }
    if (decision == DECISION_COMMIT) {
        add_usage(op, now, next);
        apply_metadata(op, next, marks);
        run_remember_request(next, op->request_id);
    }
    return decision;
}

static void on_completed(struct command *command, enum err status)
{
    struct complete_attempt *op = container_of(command, struct complete_attempt, command);
    give_back_room(op);
    op->done(command, status);
}

bool attempt_may_complete(const struct environment *env, struct slice run_id,
                          struct slice snapshot, bool by_token)
{
    const struct tracked *run = environment_find(env, run_id);
    return run && !run_is_settled(&run->run) && run_is_newest(&run->run, snapshot) &&
           !attempt_is_hidden(&run->run, by_token);
}

void attempt_complete(struct engine *engine, struct environment *env, struct slice run_id,
                      struct complete_attempt *op, command_done_fn *done)
{
    op->held = 0;
    op->done = done;
    command_begin(engine, env, run_id, &op->command, decide_complete, on_completed);
}

/* ---- the session ended ---- */

static enum decision decide_interrupt(struct command *command, const struct run *now,
                                      struct run *next, unsigned *marks)
{
    int64_t time = loop_wall_ms(command->engine->loop);

    if (now->execution == EXECUTION_PENDING_CANCEL) {
        run_advance(next, EVENT_CANCEL_CONFIRMED, time);
        next->due_at = 0;
        return DECISION_COMMIT;
    }
    if (!run_is_with_worker(now) || run_advance(next, EVENT_INTERRUPTED, time))
        return DECISION_NOTHING;
    log_decision("attempt lost", command->env->id, now->id, command->why.text, "attempt",
                 log_number(now->attempt), NULL);
    run_end_with(next, error_internal("TASK_RUN_CANCELLED", command->why.text), marks);
    return DECISION_COMMIT;
}

void attempt_interrupt(struct engine *engine, struct environment *env, struct slice run_id,
                       struct command *command, const char *reason, command_done_fn *done)
{
    command_begin(engine, env, run_id, command, decide_interrupt, done);
    snprintf(command->why.text, sizeof(command->why.text), "%s", reason);
}
