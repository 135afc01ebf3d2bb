/* waiting.c - finds out why a run waits, from memory alone; keeps no state for this. */
#include "core/fleet/waiting.h"

#include "core/fleet/dev_sessions.h"
#include "core/fleet/worker_versions.h"
#include "core/model/wait_list.h"

enum { WAITS_LOOKED_AT = 1000 };

static int64_t wall_of(const struct tracked *run)
{
    return loop_wall_ms(run->env->loop);
}

/* ---- in the queue ---- */

/* Outside of dev: returns true if a worker waits, has dequeued lately, or executes a
 * run. */
static bool has_worker(const struct environment *env)
{
    return env->fleet->seated || env->queues.running ||
           loop_now_ms(env->loop) < env->fleet->served_until;
}

/* The same for workers that take runs of plain registrations. If the current version is
 * one, executing runs are assumed to be its runs. */
static bool has_open_worker(const struct environment *env)
{
    const struct fleet *fleet = env->fleet;
    const struct worker *current = workers_current(fleet->workers);
    bool executes = env->queues.running && current && !current->deployment[0];
    return fleet->open_seats || executes || loop_now_ms(env->loop) < fleet->open_until;
}

/* Returns true if a worker that could execute the run is connected, busy or not. A session
 * outlives the connection of its CLI for a minute. */
static bool is_served(const struct tracked *run, int64_t *gone_ms)
{
    const struct environment *env = run->env;
    const struct session *session;
    if (!env->is_dev)
        return versions_is_plain(env, &run->run) ? has_open_worker(env) : has_worker(env);
    session = dev_sessions_of_run(env, &run->run);
    *gone_ms = session ? dev_sessions_gone_ms(env, session) : 0;
    return session && !*gone_ms;
}

/* Returns true if due_at may be a pause, after a failed attempt or a lease that was
 * returned. */
static bool may_pause(const struct run *run)
{
    return run->status == RUN_RETRYING || run->started_at;
}

/* Sets the reason if the limit leaves the run no slot. */
static void check_limit(struct waiting *waiting, enum waiting_reason reason, uint32_t limit,
                        uint32_t running, uint32_t reserved)
{
    if (waiting->reason != WAITING_FOR_NOTHING || running + reserved < limit)
        return;
    waiting->reason = reason;
    waiting->has_limit = true;
    waiting->limit = limit;
    waiting->running = running;
    waiting->reserved = running < limit ? reserved : 0;
}

static void set_named_limit(struct waiting *waiting, const struct limit_standing *standing)
{
    bool is_gate = standing->is_gate;
    waiting->limit_name = standing->name;
    waiting->is_limit_total = standing->is_total;
    if (standing->paused) {
        waiting->reason = is_gate ? WAITING_GATE_PAUSED : WAITING_LIMIT_PAUSED;
        return;
    }
    if (!standing->is_total)
        waiting->limit_key = standing->key;
    check_limit(waiting, is_gate ? WAITING_GATE : WAITING_LIMIT, standing->limit,
                standing->running, standing->reserved);
}

/* Sets the limit that leaves the run no slot. Returns false if there is a slot. */
static bool look_at_limits(const struct tracked *run, const struct queue_standing *standing,
                           struct waiting *waiting)
{
    const struct queues *queues = &run->env->queues;
    bool has_key = run_rare(&run->run)->concurrency_key != NULL;
    check_limit(waiting,
                has_key && standing->limit ? WAITING_CONCURRENCY_KEY : WAITING_QUEUE_LIMIT,
                standing->limit, standing->running, standing->reserved);
    check_limit(waiting, WAITING_QUEUE_TOTAL, standing->total, standing->total_running,
                standing->total_reserved);
    if (waiting->reason == WAITING_FOR_NOTHING && standing->of_limit.name.ptr)
        set_named_limit(waiting, &standing->of_limit);
    check_limit(waiting, WAITING_ENVIRONMENT_LIMIT, queues->limit, queues->running, 0);
    return waiting->reason != WAITING_FOR_NOTHING;
}

/* Sets the rate that keeps the run from starting. Returns false if no rate does. */
static bool look_at_rates(const struct tracked *run, struct waiting *waiting)
{
    int64_t opens_ms;
    if (!queues_lacks_token(&run->env->queues, &run->item, &waiting->rate, &opens_ms))
        return false;
    waiting->reason = WAITING_RATE;
    waiting->until = wall_of(run) + opens_ms - loop_now_ms(run->env->loop);
    if (waiting->rate.place.is_limit)
        waiting->limit_name = waiting->rate.place.name;
    return true;
}

static void look_in_line(const struct tracked *run, struct waiting *waiting)
{
    const struct queues *queues = &run->env->queues;
    struct queue_standing standing = queues_standing(queues, &run->item, WAITING_AHEAD_MAX);

    waiting->is_in_line = true;
    waiting->ahead = standing.ahead;
    waiting->is_singleton = standing.singleton;
    if (waiting->full)
        waiting->reason = WAITING_STORAGE_QUOTA;
    else if (!waiting->is_served)
        waiting->reason = WAITING_NO_WORKER;
    else if (standing.paused)
        waiting->reason = WAITING_QUEUE_PAUSED;
    else if (!look_at_limits(run, &standing, waiting) && !look_at_rates(run, waiting))
        waiting->reason = run->env->is_dev ? WAITING_NO_WORKER : WAITING_ROOM;
}

static void check_version(const struct tracked *run, struct waiting *waiting)
{
    waiting->verdict = versions_check(run->env, &run->run);
    if (waiting->verdict == VERSION_UNDECIDED)
        waiting->returns_ms = dev_sessions_return_ms(run->env);
}

static void look_in_queue(const struct tracked *run, struct waiting *waiting)
{
    if (may_pause(&run->run) && run->run.due_at > wall_of(run)) {
        waiting->reason = WAITING_RETRY;
        waiting->since = run->run.updated_at;
        waiting->until = run->run.due_at;
        return;
    }
    waiting->since = run_in_queue_since(&run->run);
    check_version(run, waiting);
    waiting->is_served = is_served(run, &waiting->gone_ms);
    waiting->is_plain = versions_is_plain(run->env, &run->run);
    if (waiting->verdict > VERSION_UNDECIDED)
        waiting->reason = WAITING_VERSION;
    else if (run->item.place)
        look_in_line(run, waiting);
}

/* ---- the others ---- */

/* Returns when the last of the run's waits expires by itself; 0: one of them never does. */
static int64_t last_end(const struct run *run)
{
    struct scan_members all = wait_list_of(run);
    struct wait wait;
    int64_t last = 0;
    for (int i = 0; i < WAITS_LOOKED_AT && wait_list_next(&all, &wait); i++) {
        if (wait.completed_at)
            continue;
        if (!wait.until)
            return 0;
        last = wait.until > last ? wait.until : last;
    }
    return last;
}

/* A run whose waits have ended but that has not resumed has no slot, or is about to
 * resume. */
static void look_at_waits(const struct tracked *run, struct waiting *waiting)
{
    if (!wait_list_has_ended(&run->run)) {
        waiting->reason = WAITING_WAITPOINT;
        waiting->until = last_end(&run->run);
        return;
    }
    if (!run->item.place)
        return;
    struct queue_standing standing = queues_standing(&run->env->queues, &run->item, 0);
    look_at_limits(run, &standing, waiting);
}

void waiting_look(const struct tracked *tracked, const struct quota *full,
                  struct waiting *waiting)
{
    const struct run *run = &tracked->run;
    *waiting =
        (struct waiting){ .since = run->updated_at, .until = run->due_at, .full = full };
    switch (run->execution) {
    case EXECUTION_DELAYED:
        waiting->reason = WAITING_DELAY;
        waiting->since = run->created_at;
        break;
    case EXECUTION_CREATED:
        *waiting = (struct waiting){ .reason = WAITING_VERSION, .since = run->queued_at };
        check_version(tracked, waiting);
        break;
    case EXECUTION_QUEUED:
        waiting->until = 0;
        look_in_queue(tracked, waiting);
        break;
    case EXECUTION_EXECUTING:
        if (run->status == RUN_RETRYING)
            waiting->reason = WAITING_RETRY;
        break;
    case EXECUTION_WITH_WAITPOINTS: look_at_waits(tracked, waiting); break;
    default: break;
    }
}

/* ---- of an environment ---- */

int64_t waiting_oldest(const struct environment *env)
{
    const struct queue_item *item = queues_oldest(&env->queues);
    return item ? run_in_queue_since(&container_of(item, const struct tracked, item)->run)
                : 0;
}

/* Sessions whose connection has closed count as unserved, because they may not return. */
static uint32_t unserved_in_dev(const struct environment *env)
{
    uint32_t count = queues_waiting_for(&env->queues, AUDIENCE_NOBODY);
    struct session *session = dev_sessions_next(env, NULL);
    if (!session)
        return env->queues.waiting;
    for (; session; session = dev_sessions_next(env, session))
        if (dev_sessions_gone_ms(env, session))
            count += queues_waiting_for(&env->queues, session->audience);
    return count;
}

uint32_t waiting_unserved(const struct environment *env)
{
    if (!env->queues.waiting)
        return 0;
    if (env->is_dev)
        return unserved_in_dev(env);
    if (!has_worker(env))
        return env->queues.waiting;
    return has_open_worker(env) ? 0 : queues_waiting_for(&env->queues, AUDIENCE_PLAIN);
}

bool waiting_is_unserved(const struct environment *env)
{
    bool is_there = env->is_dev ? dev_sessions_next(env, NULL) != NULL : has_worker(env);
    return env->queues.waiting && !is_there;
}
