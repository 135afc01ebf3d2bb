/* waiting_log.c - logs runs that wait for a worker, a version or their storage quota.
 *
 *   a run is placed ─► 10 s ─► it still waits ─► one line for it; others wait their turn
 *
 * Each environment remembers two runs, the first that was placed and the newest. While the
 * first waits, no other has to be checked. When it has left, the newest is the one most
 * likely to wait, if any does. */
#include "core/fleet/waiting_log.h"

#include "base/log.h"
#include "core/fleet/waiting.h"

enum { LOG_AFTER_MS = 10 * 1000 };

static int64_t wall_of(const struct tracked *run)
{
    return loop_wall_ms(run->env->loop);
}

static void log_waiting(const struct tracked *run, const struct waiting *waiting)
{
    struct buf text = { 0 };
    waiting_explain(run, waiting, &text);
    buf_add_char(&text, '\0');
    log_warn("a run waits", "reason", waiting_name(waiting->reason), "run", run->run.id,
             "task", log_slice(bytes_slice(run->run.task)), "environment", run->env->id,
             "message", text.ptr, NULL);
    buf_finish(&text);
}

static void set_timer(struct environment *env, int64_t in_ms)
{
    struct fleet *fleet = env->fleet;
    loop_set_timer(env->loop, &fleet->waiting_log.timer, fleet->shared->waiting_log_kind,
                   in_ms);
}

void waiting_log_note(struct tracked *run)
{
    struct waiting_log *waiting_log = &run->env->fleet->waiting_log;
    if ((!run->item.place && run->run.execution != EXECUTION_CREATED) ||
        !strcmp(waiting_log->first, run->run.id))
        return;
    memcpy(waiting_log->newest, run->run.id, sizeof(waiting_log->newest));
    if (waiting_log->first[0])
        return;
    memcpy(waiting_log->first, run->run.id, sizeof(waiting_log->first));
    waiting_log->is_logged = false;
    set_timer(run->env, LOG_AFTER_MS);
}

/* Returns true if the run waits for something that an operator or developer must
 * provide. */
static bool is_worth_a_line(enum waiting_reason reason)
{
    return reason == WAITING_NO_WORKER || reason == WAITING_ROOM ||
           reason == WAITING_VERSION || reason == WAITING_STORAGE_QUOTA;
}

enum look { LOOK_GONE, LOOK_WAITS_ELSE, LOOK_WAITS };

/* Logs the first run if it is due. Returns LOOK_WAITS_ELSE if it is in its queue but waits
 * for nothing that is logged. */
static enum look look_at_first(struct environment *env)
{
    struct waiting_log *waiting_log = &env->fleet->waiting_log;
    const struct tracked *run = environment_find(env, slice_of(waiting_log->first));
    struct waiting waiting;
    if (!run)
        return LOOK_GONE;
    waiting_look(run, env->fleet->shared->full_quota(env), &waiting);
    if (!is_worth_a_line(waiting.reason))
        return waiting.is_in_line ? LOOK_WAITS_ELSE : LOOK_GONE;
    int64_t left = waiting.since + LOG_AFTER_MS - wall_of(run);
    left = waiting.returns_ms > left ? waiting.returns_ms : left;
    if (left <= 0 && !waiting_log->is_logged) {
        log_waiting(run, &waiting);
        waiting_log->is_logged = true;
    }
    set_timer(env, left > 0 && left < LOG_AFTER_MS ? left : LOG_AFTER_MS);
    return LOOK_WAITS;
}

void waiting_log_on_time(struct timer *timer)
{
    struct waiting_log *waiting_log = container_of(timer, struct waiting_log, timer);
    struct environment *env = waiting_log->env;
    if (env->fleet->shared->is_draining || look_at_first(env) == LOOK_WAITS)
        return;
    waiting_log->is_logged = false;
    memcpy(waiting_log->first, waiting_log->newest, sizeof(waiting_log->first));
    switch (look_at_first(env)) {
    case LOOK_WAITS: break;
    case LOOK_WAITS_ELSE: set_timer(env, LOG_AFTER_MS); break;
    case LOOK_GONE: waiting_log->first[0] = '\0';
    }
}
