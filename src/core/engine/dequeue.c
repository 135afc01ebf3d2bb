/* dequeue.c - gives ready runs to workers: at once, or as soon as a run is ready.
 *
 *   dequeue_begin ─► waiting ─(a run is ready)─► holding: its lease is being committed
 *                      ▲  │                        │
 *                      │  └─ timed out: nothing    ├─► leased: done
 *                      └───── no longer ready ◄────┘
 *
 * A dequeue repeated because its response was lost gets the run that was leased to it the
 * first time. If the first dequeue still waits, it ends: a proxy may hold its connection
 * open although the worker has dropped it, and its next lease would reach no worker.
 *
 * A chosen run takes its slot at once, so it is not offered twice. If the worker has
 * disconnected meanwhile, the run is requeued; if it may have, the run is requeued unless
 * it is started within DOUBT_MS. In dev, dequeues wait in the line of the session that the
 * named version belongs to (core/fleet/line.h); elsewhere, all wait in one line per
 * environment. */
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/attempts.h"
#include "core/engine/calls.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/leases.h"
#include "core/model/run_life.h"
#include "core/state/rates.h"

enum { DOUBT_MS = 3000 };

/* ---- the line ---- */

static void stand_in_line(struct dequeue *dequeue)
{
    for (size_t i = 0; i < dequeue->seat_count; i++)
        if (line_join(&dequeue->seats[i], slice_of(dequeue->worker)))
            engine_match(dequeue->command.engine, dequeue->seats[i].env);
}

static void leave_line(struct dequeue *dequeue)
{
    for (size_t i = 0; i < dequeue->seat_count; i++)
        line_leave(&dequeue->seats[i]);
}

static void shorten_wait(struct dequeue_seat *seat, int64_t until)
{
    struct dequeue *dequeue = seat->dequeue;
    struct timers *timers = loop_timers(dequeue->command.engine->loop);
    line_leave(seat);
    if (dequeue->timer.place && dequeue->timer.at_ms > until)
        timers_set(timers, &dequeue->timer, dequeue->timer.kind, until);
}

static void finish_dequeue(struct dequeue *dequeue, enum err status)
{
    struct engine *engine = dequeue->command.engine;
    leave_line(dequeue);
    if (dequeue->seat_count)
        line_clear_name(&dequeue->seats[0]);
    loop_cancel_deferred(&dequeue->deferred);
    timers_clear(loop_timers(engine->loop), &dequeue->timer);
    for (size_t i = 0; i < dequeue->seat_count; i++)
        environment_release(dequeue->seats[i].env);
    free(dequeue->seats);
    dequeue->seats = NULL;
    dequeue->seat_count = 0;
    dequeue->done(dequeue, status);
}

/* ---- the lease ---- */

/* Binds the run to this version permanently. */
static void pin(struct dequeue *dequeue, struct run *run, const struct worker *worker,
                const struct worker_task *task)
{
    dequeue->pinned = !run->worker_version;
    if (dequeue->pinned)
        run->worker_version = bytes_create_shared(slice_of(worker->version));
    if (!run->max_attempts && task->has_retry)
        run->max_attempts = task->max_attempts;
    if (!run->max_duration_s)
        run->max_duration_s = task->max_duration_s;
}

/* Returns false if, in dev, another session has the run by now, or this session is gone. */
static bool find_version(const struct dequeue *dequeue, const struct run *run,
                         const struct worker **worker)
{
    const struct environment *env = dequeue->command.env;
    *worker = workers_for(env->fleet->workers, run);
    if (!env->is_dev)
        return true;
    const struct session *session = dev_sessions_asking(env, slice_of(dequeue->worker));
    if (!session || dev_sessions_of_run(env, run) != session)
        return false;
    if (!run->worker_version)
        *worker = session->current;
    return true;
}

static enum decision decide_dequeue(struct command *command, const struct run *now,
                                    struct run *next, unsigned *marks)
{
    struct engine *engine = command->engine;
    struct dequeue *dequeue = container_of(command, struct dequeue, command);
    const struct worker *worker;
    int64_t time = loop_wall_ms(engine->loop);
    (void)marks;

    rates_refresh(engine, command->env, dequeue->rates);
    if (!find_version(dequeue, now, &worker))
        return DECISION_NOTHING;
    const struct worker_task *task = worker_task(worker, bytes_slice(now->task));
    if (!task) {
        if (run_advance(next, EVENT_NO_VERSION, time))
            return DECISION_NOTHING;
        return DECISION_COMMIT; /* its ttl keeps running */
    }
    if (run_advance(next, EVENT_DEQUEUED, time))
        return DECISION_NOTHING;
    pin(dequeue, next, worker, task);
    next->by_token = dequeue->by_token;
    run_remember_request(next, dequeue->request_id);
    if (!next->started_at)
        next->started_at = time;
    next->due_at = time + engine->options.lease_ms;
    return DECISION_COMMIT;
}

/* ---- giving back ----
 *
 * Giving a run back too early is worse than keeping it waiting: a worker that has it is
 * notified of the same run twice, and the start that it was about to send is refused. */

struct giving_back {
    struct command command;
    uint32_t snapshot; /* the one in which its worker does not have it */
    bool pinned;       /* by the lease that it comes from */
};

/* Requeues a run that no worker has seen: any version may execute it, as before. The task's
 * settings that pin() filled in stay, because the run does not record whether its trigger
 * set them. */
static enum decision decide_give_back(struct command *command, const struct run *now,
                                      struct run *next, unsigned *marks)
{
    const struct giving_back *op = container_of(command, struct giving_back, command);
    (void)marks;
    if (now->snapshot != op->snapshot ||
        run_advance(next, EVENT_LEASE_OVER, loop_wall_ms(command->engine->loop)))
        return DECISION_NOTHING;
    next->due_at = 0;
    log_decision("lease over", command->env->id, next->id,
                 "its worker left before it was leased", NULL);
    if (op->pinned && !next->attempt)
        bytes_clear(&next->worker_version);
    return DECISION_COMMIT;
}

static void on_given_back(struct command *command, enum err status)
{
    (void)status; /* on failure, the lease expires */
    free(container_of(command, struct giving_back, command));
}

void dequeue_give_back(struct engine *engine, struct environment *env, struct slice run_id,
                       uint32_t snapshot, bool pinned)
{
    struct giving_back *op = mem_new(struct giving_back);
    op->snapshot = snapshot;
    op->pinned = pinned;
    command_begin(engine, env, run_id, &op->command, decide_give_back, on_given_back);
}

/* ---- doubts ---- */

struct doubt {
    struct engine *engine;
    struct timer timer;
    struct list link; // engine::doubts
    uint32_t env;     /* a number: it does not hold the environment */
    char run_id[RUN_ID_MAX];
    uint32_t snapshot;
    bool pinned;
};

static void doubt_destroy(struct doubt *doubt)
{
    timers_clear(loop_timers(doubt->engine->loop), &doubt->timer);
    list_remove(&doubt->link);
    free(doubt);
}

static void on_doubted(struct timer *timer)
{
    struct doubt *doubt = container_of(timer, struct doubt, timer);
    struct engine *engine = doubt->engine;
    struct environment *env = engine_environment(engine, doubt->env);
    if (env && !engine->draining)
        dequeue_give_back(engine, env, slice_of(doubt->run_id), doubt->snapshot,
                          doubt->pinned);
    doubt_destroy(doubt);
}

void dequeue_doubt(struct engine *engine, struct environment *env, struct slice run_id,
                   uint32_t snapshot, bool pinned)
{
    struct doubt *doubt = mem_new(struct doubt);
    *doubt = (struct doubt){
        .engine = engine, .env = env->number, .snapshot = snapshot, .pinned = pinned
    };
    memcpy(doubt->run_id, run_id.ptr, run_id.len);
    list_append(&engine->doubts, &doubt->link);
    loop_set_timer(engine->loop, &doubt->timer, engine->doubt_kind, DOUBT_MS);
}

void doubts_init(struct engine *engine)
{
    list_init(&engine->doubts);
    engine->doubt_kind = timers_kind(loop_timers(engine->loop), on_doubted);
}

/* Drops all doubts; their runs are requeued when the leases expire. */
void doubts_finish(struct engine *engine)
{
    while (!list_empty(&engine->doubts))
        doubt_destroy(container_of(engine->doubts.next, struct doubt, link));
}

/* ---- the lease ---- */

/* Returns true if the run was leased by the dequeue's own commit, or by that of the request
 * it repeats. */
static bool is_leased(const struct dequeue *dequeue, enum err status)
{
    const struct run *run = dequeue->command.run;
    return !status && run && run->execution == EXECUTION_PENDING_EXECUTING &&
           (dequeue->command.seq || run_was_asked_by(run, dequeue->request_id));
}

static void note_dequeued(struct engine *engine, struct tracked *run)
{
    int64_t since = run->run.started_at ? run->run.queue_position : run->run.queued_at;
    int64_t waited_ms = loop_wall_ms(engine->loop) - since;
    log_decision("run leased", run->env->id, run->run.id, "a worker requested it",
                 "version", log_slice(bytes_slice(run->run.worker_version)), "waited_ms",
                 log_number(waited_ms), NULL);
    metric_add(M_DEQUEUED, 1);
    if (since && waited_ms >= 0) {
        metric_observe_us(H_QUEUED, waited_ms * 1000);
        figures_note_wait(run->env->figures, waited_ms * 1000);
    }
    leases_note(run);
}

/* Gives tokens back if no run was leased. If the store has failed, the outcome may be
 * unknown. */
static void end_rates(struct dequeue *dequeue, enum err status, bool used)
{
    struct command *command = &dequeue->command;
    bool is_known = !status || status == ERR_NOT_FOUND || status == ERR_CONFLICT;
    rates_end(command->engine, command->env, dequeue->rates, is_known && !used);
    dequeue->rates = NULL;
}

/* Returns true if the request id belongs to a later dequeue now. */
static bool is_repeated(const struct dequeue *dequeue)
{
    return dequeue->request_id.ptr && dequeue->seat_count &&
           !dequeue->seats[0].env->is_dev && !dequeue->seats[0].request_id.ptr;
}

static void on_leased(struct command *command, enum err status)
{
    struct dequeue *dequeue = container_of(command, struct dequeue, command);
    struct engine *engine = command->engine;
    bool leased = is_leased(dequeue, status);

    dequeue->holding = false;
    end_rates(dequeue, status, leased && command->seq);
    if (dequeue->canceled) {
        bool is_others = !command->seq && is_repeated(dequeue); /* the later one's */
        if (leased && !is_others)
            dequeue_give_back(engine, command->env, slice_of(command->run_id),
                              command->run->snapshot, dequeue->pinned);
        finish_dequeue(dequeue, ERR_CANCELED);
        return;
    }
    if (leased) {
        if (command->seq) {
            note_dequeued(engine,
                          environment_find(command->env, slice_of(command->run_id)));
        }
        finish_dequeue(dequeue, OK);
        return;
    }
    if (status && status != ERR_NOT_FOUND && status != ERR_CONFLICT) {
        finish_dequeue(dequeue, status);
        return;
    }
    if (!dequeue->timer.place) {
        finish_dequeue(dequeue, ERR_NOT_FOUND); /* it has timed out meanwhile */
        return;
    }
    stand_in_line(dequeue);
}

/* ---- matching ---- */

/* Runs that resume get their slots first. */
static bool is_open(const struct environment *env)
{
    return !engine_is_retired(env) && !engine_is_at_quota(env) &&
           !queues_next(&env->queues, AUDIENCE_RESUMED);
}

static bool has_work(const struct environment *env, uint32_t audience)
{
    return is_open(env) && queues_next(&env->queues, audience);
}

static bool has_room_for(const struct dequeue_terms *terms, const struct queue_item *item)
{
    enum machine machine = container_of(item, const struct tracked, item)->run.machine;
    return !terms->has_room || (machine_cpu(machine) <= terms->cores &&
                                machine_memory_gb(machine) <= terms->gigabytes);
}

/* Outside dev: returns the environment's run that the dequeue gets next; NULL: none. */
static struct queue_item *next_for(const struct dequeue *dequeue,
                                   const struct environment *env)
{
    const struct dequeue_terms *terms = &dequeue->terms;
    struct queue_item *plain =
        terms->deployed_only ? NULL : queues_next(&env->queues, AUDIENCE_PLAIN);
    struct queue_item *item = queues_next(&env->queues, AUDIENCE_NOBODY);
    if (plain && (!item || plain->position < item->position))
        item = plain;
    return item && is_open(env) && has_room_for(terms, item) ? item : NULL;
}

/* When a worker last got a run from any environment of a project, or from any preview
 * branch of a project. */
struct project_turn {
    uint64_t share;  /* the project's (quota_share_of), or its branches' */
    uint64_t served; /* value of engine::served */
};

static struct slice key_of(const uint64_t *share)
{
    return (struct slice){ (const char *)share, sizeof(*share) };
}

static struct slice turn_key(const void *value)
{
    return key_of(&((const struct project_turn *)value)->share);
}

void dequeues_init(struct engine *engine)
{
    table_init(&engine->project_turns, turn_key);
}

void dequeues_finish(struct engine *engine)
{
    size_t at = 0;
    for (void *turn; (turn = table_next(&engine->project_turns, &at));)
        free(turn);
    table_finish(&engine->project_turns);
}

static uint64_t turn_served(const struct engine *engine, uint64_t share)
{
    const struct project_turn *turn = table_find(&engine->project_turns, key_of(&share));
    return turn ? turn->served : 0;
}

static uint64_t project_served(const struct environment *env)
{
    return turn_served(env->engine, quota_share_of(env->engine, env->number));
}

/* Returns a number for the preview branches of a project, the same for all of them. */
static uint64_t branches_share(const struct environment *env)
{
    return (uintptr_t)env->project_unfinished;
}

/* The preview branches of a project count as one environment. */
static uint64_t environment_served(const struct environment *env)
{
    return environment_is_branch(env) ? turn_served(env->engine, branches_share(env))
                                      : engine_share_of(env)->served;
}

static void note_turn(struct engine *engine, uint64_t share)
{
    struct project_turn *turn = table_find(&engine->project_turns, key_of(&share));
    if (!turn) {
        turn = mem_new(struct project_turn);
        turn->share = share;
        table_insert(&engine->project_turns, turn);
    }
    turn->served = engine->served;
}

static void note_served(struct environment *env)
{
    struct engine *engine = env->engine;
    engine_share_of(env)->served = ++engine->served;
    note_turn(engine, quota_share_of(engine, env->number));
    if (environment_is_branch(env))
        note_turn(engine, branches_share(env));
}

/* Returns true if env is next. Projects take turns, and so do the environments of each, and
 * its preview branches in their one turn. */
static bool is_served_before(const struct environment *env, const struct environment *other)
{
    uint64_t one = project_served(env), two = project_served(other);
    if (one == two) {
        one = environment_served(env);
        two = environment_served(other);
    }
    return one != two ? one < two
                      : engine_share_of(env)->served < engine_share_of(other)->served;
}

/* Returns the environment from which the dequeue gets a run. Those with ready runs take
 * turns. */
static struct environment *best_environment(const struct dequeue *dequeue)
{
    struct environment *best = NULL;
    for (size_t i = 0; i < dequeue->seat_count; i++) {
        struct environment *env = dequeue->seats[i].env;
        if (next_for(dequeue, env) && (!best || is_served_before(env, best)))
            best = env;
    }
    return best;
}

/* Leases the next run to the dequeue. In dev, sessions may have changed since the run was
 * queued; then it is placed again instead. */
static void lease(struct dequeue_seat *seat, struct environment *env)
{
    struct dequeue *dequeue = seat->dequeue;
    struct engine *engine = dequeue->command.engine;
    struct queue_item *item = env->is_dev
                                  ? queues_next(&env->queues, seat->session->audience)
                                  : next_for(dequeue, env);
    struct tracked *run = container_of(item, struct tracked, item);
    if (env->is_dev && dev_sessions_of_run(env, &run->run) != seat->session) {
        engine_place(engine, run);
        return;
    }
    if (seat->session)
        seat->session->served = engine->served + 1;
    leave_line(dequeue);
    dequeue->holding = true;
    note_served(env);
    timers_clear(loop_timers(engine->loop), &run->timer);
    queues_run(&env->queues, item, engine_seat_of(&run->run));
    dequeue->rates = rates_take(engine, env, item);
    command_begin(engine, env, slice_of(run->run.id), &dequeue->command, decide_dequeue,
                  on_leased);
    if (dequeue->rates)
        command_claim(&dequeue->command, dequeue->rates->claims, dequeue->rates->count);
}

/* Returns the session that was served longest ago, of those that have a ready run and a
 * waiting dequeue. */
static struct session *best_session(const struct environment *env)
{
    struct session *best = NULL, *session = NULL;
    while ((session = dev_sessions_next(env, session)))
        if (!list_empty(&session->dequeues) && has_work(env, session->audience) &&
            (!best || session->served < best->served))
            best = session;
    return best;
}

static struct dequeue_seat *first_of(const struct list *line)
{
    return container_of(line->next, struct dequeue_seat, link);
}

/* Outside dev: returns the first in line for which there is a run, and its environment.
 * NULL: none. */
static struct dequeue_seat *next_served(const struct environment *env,
                                        struct environment **from)
{
    if (!has_work(env, AUDIENCE_NOBODY) && !has_work(env, AUDIENCE_PLAIN))
        return NULL;
    list_each (link, &env->fleet->line) {
        struct dequeue_seat *seat = container_of(link, struct dequeue_seat, link);
        if ((*from = best_environment(seat->dequeue)))
            return seat;
    }
    return NULL;
}

static void match(struct environment *env)
{
    waits_resume(env->engine, env);
    engine_refill(env->engine, env);
    for (struct session *session; (session = best_session(env));)
        lease(first_of(&session->dequeues), env);
    struct environment *from;
    for (struct dequeue_seat *seat; (seat = next_served(env, &from));)
        lease(seat, from);
}

/* Slots may be kept for a run that no worker takes now, because those that could are busy or
 * gone. They are freed as soon as a run that resumes, or a dequeue, gets nothing. */
void engine_match_now(struct deferred *matching)
{
    struct environment *env = container_of(matching, struct engine_share, matching)->env;
    bool again;
    do {
        match(env);
        bool waits = env->fleet->seated > 0 ||
                     queues_waiting_for(&env->queues, AUDIENCE_RESUMED) > 0;
        again = waits && queues_free_untaken(&env->queues);
    } while (again);
}

void dequeue_timed_out(struct timer *timer)
{
    struct dequeue *dequeue = container_of(timer, struct dequeue, timer);
    for (size_t i = 0; i < dequeue->seat_count && !dequeue->holding; i++)
        engine_match_now(
            &engine_share_of(dequeue->seats[i].env)
                 ->matching); /* matching was not due before the end of its turn */
    if (dequeue->holding)
        return; /* the lease is being committed: wait for it */
    finish_dequeue(dequeue, ERR_NOT_FOUND);
}

static enum err dequeue_begin_among(struct engine *engine,
                                    struct environment *const *environments, size_t count,
                                    const struct dequeue_terms *terms,
                                    struct dequeue *dequeue,
                                    void (*done)(struct dequeue *dequeue, enum err status))
{
    if (engine->draining)
        return ERR_DRAINING;
    *dequeue = (struct dequeue){ .done = done, .terms = *terms, .seat_count = count };
    dequeue->command.engine = engine;
    list_init(&dequeue->deferred.link);
    dequeue->seats = mem_new_array(struct dequeue_seat, count);
    for (size_t i = 0; i < count; i++) {
        dequeue->seats[i] = (struct dequeue_seat){ .dequeue = dequeue,
                                                   .env = environments[i],
                                                   .deployed_only = terms->deployed_only,
                                                   .shorten_wait = shorten_wait };
        environment_hold(environments[i]);
        list_init(&dequeue->seats[i].link);
    }
    return OK;
}

enum err dequeue_begin_for(struct engine *engine, struct environment *env,
                           struct slice worker, struct dequeue *dequeue, int64_t wait_ms,
                           void (*done)(struct dequeue *dequeue, enum err status))
{
    if (env->is_dev && !engine->draining)
        wait_ms = dev_sessions_hold_ms(env, dev_sessions_ask(env, worker), wait_ms);
    static const struct dequeue_terms any;
    if (worker.len >= sizeof(dequeue->worker))
        worker = SLICE("-"); /* matches no version */
    enum err refused = dequeue_begin_among(engine, &env, 1, &any, dequeue, done);
    if (refused)
        return refused;
    snprintf(dequeue->worker, sizeof(dequeue->worker), "%.*s", SLICE_ARG(worker));
    loop_set_timer(engine->loop, &dequeue->timer, engine->wait_kind, wait_ms);
    stand_in_line(dequeue);
    return OK;
}

enum err dequeue_begin(struct engine *engine, struct environment *const *environments,
                       size_t count, const struct dequeue_terms *terms,
                       struct dequeue *dequeue, int64_t wait_ms,
                       void (*done)(struct dequeue *dequeue, enum err status))
{
    if (count == 1 && environments[0]->is_dev)
        return dequeue_begin_for(engine, environments[0], (struct slice){ 0 }, dequeue,
                                 wait_ms, done);
    enum err refused =
        dequeue_begin_among(engine, environments, count, terms, dequeue, done);
    if (refused)
        return refused;
    loop_set_timer(engine->loop, &dequeue->timer, engine->wait_kind, wait_ms);
    stand_in_line(dequeue);
    return OK;
}

static enum decision decide_again(struct command *command, const struct run *now,
                                  struct run *next, unsigned *marks)
{
    (void)command, (void)now, (void)next, (void)marks;
    return DECISION_NOTHING;
}

void dequeue_name_request(struct dequeue *dequeue, struct slice request_id)
{
    struct engine *engine = dequeue->command.engine;
    const struct tracked *run = NULL;
    dequeue->request_id = request_id;
    if (request_id.ptr && dequeue->seat_count && !dequeue->seats[0].env->is_dev) {
        struct dequeue_seat *earlier = line_name(&dequeue->seats[0], request_id);
        if (earlier)
            dequeue_cancel(earlier->dequeue);
    }
    for (size_t i = 0; request_id.ptr && !run && i < dequeue->seat_count; i++)
        run = leases_find(dequeue->seats[i].env, request_id);
    if (!run)
        return;
    leave_line(dequeue);
    dequeue->holding = true;
    command_begin(engine, run->env, slice_of(run->run.id), &dequeue->command, decide_again,
                  on_leased);
}

static void on_canceled(struct deferred *deferred)
{
    finish_dequeue(container_of(deferred, struct dequeue, deferred), ERR_CANCELED);
}

void dequeue_cancel(struct dequeue *dequeue)
{
    struct engine *engine = dequeue->command.engine;
    dequeue->canceled = true;
    if (dequeue->holding)
        return; /* on_leased gives the run back */
    leave_line(dequeue);
    timers_clear(loop_timers(engine->loop), &dequeue->timer);
    dequeue->deferred.fn = on_canceled;
    loop_defer(engine->loop, &dequeue->deferred);
}
