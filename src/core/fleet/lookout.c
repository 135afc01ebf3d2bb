/* lookout.c - logs runs that wait for a worker, a version or their storage quota.
 *
 *   a run is placed ─► 10 s ─► it still waits ─► one line for it; others wait their turn
 *
 * Each environment remembers two runs, the first that was placed and the newest. While the
 * first waits, no other has to be checked. When it has gone, the newest is the one most
 * likely to wait, if any does. */
#include "core/fleet/lookout.h"

#include "base/log.h"
#include "core/fleet/waiting.h"

enum { TOLD_AFTER_MS = 10 * 1000 };

static int64_t wall_of(const struct tracked *run)
{
    return loop_wall_ms(run->env->loop);
}

static void tell(const struct tracked *run, const struct waiting *waiting)
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
    loop_set_timer(env->loop, &fleet->lookout.timer, fleet->shared->lookout_kind, in_ms);
}

void lookout_note(struct tracked *run)
{
    struct lookout *lookout = &run->env->fleet->lookout;
    if ((!run->item.place && run->run.execution != EXECUTION_CREATED) ||
        !strcmp(lookout->first, run->run.id))
        return;
    memcpy(lookout->newest, run->run.id, sizeof(lookout->newest));
    if (lookout->first[0])
        return;
    memcpy(lookout->first, run->run.id, sizeof(lookout->first));
    lookout->is_told = false;
    set_timer(run->env, TOLD_AFTER_MS);
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
    struct lookout *lookout = &env->fleet->lookout;
    const struct tracked *run = environment_find(env, slice_of(lookout->first));
    struct waiting waiting;
    if (!run)
        return LOOK_GONE;
    waiting_look(run, env->fleet->shared->full_room(env), &waiting);
    if (!is_worth_a_line(waiting.reason))
        return waiting.is_in_line ? LOOK_WAITS_ELSE : LOOK_GONE;
    int64_t left = waiting.since + TOLD_AFTER_MS - wall_of(run);
    left = waiting.returns_ms > left ? waiting.returns_ms : left;
    if (left <= 0 && !lookout->is_told) {
        tell(run, &waiting);
        lookout->is_told = true;
    }
    set_timer(env, left > 0 && left < TOLD_AFTER_MS ? left : TOLD_AFTER_MS);
    return LOOK_WAITS;
}

void lookout_on_time(struct timer *timer)
{
    struct lookout *lookout = container_of(timer, struct lookout, timer);
    struct environment *env = lookout->env;
    if (env->fleet->shared->is_draining || look_at_first(env) == LOOK_WAITS)
        return;
    lookout->is_told = false;
    memcpy(lookout->first, lookout->newest, sizeof(lookout->first));
    switch (look_at_first(env)) {
    case LOOK_WAITS: break;
    case LOOK_WAITS_ELSE: set_timer(env, TOLD_AFTER_MS); break;
    case LOOK_GONE: lookout->first[0] = '\0';
    }
}
