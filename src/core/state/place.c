/* place.c - puts a run into the queue or slot of its state, and sets its timer.
 *
 *   leased, executing, …              ─► a slot of its queue (run_holds_slot)
 *   canceling, in a singleton queue   ─► the same
 *   queued, and it does not pause     ─► its queue
 *   waiting, and its waits have ended ─► its queue, before runs that have not started
 *   anything else                     ─► neither; if it has not ended, its limits and gates
 *                                        count (limits_count_set)
 *
 * The place depends only on the run's state, so engine_place may be called at any time. */
#include "core/state/place.h"

#include "core/fleet/dev_sessions.h"
#include "core/fleet/versions.h"
#include "core/fleet/waiting_log.h"
#include "core/model/run_life.h"
#include "core/model/wait_list.h"

int64_t engine_lost_at(const struct tracked *run)
{
    bool is_polled = run->polled_until && run->polled_until < run->alive_until;
    return is_polled ? run->polled_until : run->alive_until;
}

/* Returns true if the run belongs into its queue. A queued run does not while its retry is
 * not due, or while it pauses after a failed dequeue. */
static bool waits_in_queue(const struct engine *engine, const struct run *run)
{
    if (run->execution != EXECUTION_QUEUED || run_is_final(run))
        return false;
    bool may_pause = run->status == RUN_RETRYING || run->started_at;
    return !may_pause || run->due_at <= loop_wall_ms(engine->loop);
}

/* Returns when the timer fires, monotonic ms; INT64_MAX: never. A run that waits for a
 * version has no deadline but its ttl, and none once it was dequeued: due_at is then the
 * end of a pause, kept for when the version arrives. */
static int64_t next_deadline(struct engine *engine, struct tracked *run)
{
    int64_t due = run->run.due_at ? engine_deadline(engine, run->run.due_at) : INT64_MAX;
    int64_t lost = engine_lost_at(run);
    switch (run->run.execution) {
    case EXECUTION_CREATED: return run->run.started_at ? INT64_MAX : due;
    case EXECUTION_EXECUTING: return lost;
    case EXECUTION_WITH_WAITPOINTS: return due < lost ? due : lost;
    case EXECUTION_FINISHED: return INT64_MAX;
    default: return due;
    }
}

/* Delays a deadline that has passed while the store fails, so that it is not retried at
 * once. */
static int64_t not_at_once(const struct engine *engine, int64_t deadline)
{
    int64_t now = loop_now_ms(engine->loop);
    return engine_store_fails(engine) && deadline <= now ? now + STORE_RETRY_MS : deadline;
}

/* Returns which workers may have the run: in dev those of its session; elsewhere all, but a
 * run of a plain registration only those that take such runs. */
static uint32_t audience_of(const struct tracked *run)
{
    const struct session *session =
        run->env->is_dev ? dev_sessions_of_run(run->env, &run->run) : NULL;
    if (session)
        return session->audience;
    return versions_is_plain(run->env, &run->run) ? AUDIENCE_PLAIN : AUDIENCE_NOBODY;
}

struct queue_seat engine_seat_of(const struct run *run)
{
    const struct run_rare *rare = run_rare(run);
    return (struct queue_seat){ .queue = bytes_slice(run->queue),
                                .key = bytes_slice(rare->concurrency_key),
                                .limits = bytes_slice(rare->limits) };
}

/* Returns true for a canceled run of a singleton queue whose worker has not confirmed yet:
 * the next run of its key starts when it has ended. */
static bool keeps_slot(const struct environment *env, const struct run *run)
{
    return run->execution == EXECUTION_PENDING_CANCEL &&
           queues_figures(&env->queues, bytes_slice(run->queue)).settings.singleton;
}

void engine_place(struct engine *engine, struct tracked *run)
{
    struct environment *env = run->env;
    struct timers *timers = loop_timers(engine->loop);
    struct queue_seat seat = engine_seat_of(&run->run);

    if (run_holds_slot(&run->run) || keeps_slot(env, &run->run)) {
        queues_run(&env->queues, &run->item, seat);
    } else if (waits_in_queue(engine, &run->run) && !run->in_flight) {
        run->item.audience =
            (uint16_t)audience_of(run); /* below 64, core/fleet/dev_sessions.c */
        queues_wait(&env->queues, &run->item, seat, run->run.queue_position);
    } else if (wait_list_has_ended(&run->run) && !run->in_flight) {
        queues_wait_again(&env->queues, &run->item, seat, run->run.queue_position);
    } else if (run_is_final(&run->run)) {
        queues_leave(&env->queues, &run->item);
    } else {
        queues_rest(&env->queues, &run->item, seat.limits);
    }
    engine_match(engine, env);
    waiting_log_note(run);

    int64_t deadline = not_at_once(engine, next_deadline(engine, run));
    bool is_queued = run->item.place && run->run.execution == EXECUTION_QUEUED;
    if (deadline == INT64_MAX || (is_queued && run->run.started_at))
        timers_clear(timers, &run->timer);
    else
        timers_set(timers, &run->timer, engine->due_kind, deadline);
}

bool engine_take_slot(struct environment *env, struct slice run_id)
{
    struct tracked *run = environment_find(env, run_id);
    struct queue_seat seat = engine_seat_of(&run->run);
    const struct queue_item *first = queues_next(&env->queues, AUDIENCE_RESUMED);
    if (run->item.running)
        return true;
    if (first ? first != &run->item : !queues_has_slot(&env->queues, seat))
        return false;
    queues_run(&env->queues, &run->item, seat);
    return true;
}
