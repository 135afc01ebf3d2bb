/* give_back.c - a leased run that its worker does not have goes back to its queue.
 *
 *   the answer is lost ────────────────────────────────────► back at once
 *   it may be lost ─► DOUBT_MS ─┬─► not started by anybody ─► back
 *                               └─► started, or ended: nothing
 *
 * A run that goes back too early is worse than one that waits: a worker that has it is told twice
 * of the same run, and the start that it was about to send is refused. */
#include "base/log.h"
#include "base/mem.h"
#include "engine/attempts.h"
#include "engine/state.h"

enum { DOUBT_MS = 3000 };

struct giving_back {
    struct command command;
    uint32_t snapshot; /* in which its worker does not have it */
    bool pinned;       /* by the lease that it goes back from */
};

/* No worker has seen the run that goes back: any version will do, as before. What it was
 * given of the task's settings stays, for whether its trigger had named them is not known
 * any more. */
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
                 "its worker had gone when it was leased", NULL);
    if (op->pinned && !next->attempt)
        bytes_clear(&next->worker_version);
    return DECISION_COMMIT;
}

static void on_given_back(struct command *command, enum err status)
{
    (void)status; /* not given back, its lease ends */
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
    uint32_t env;     /* by number: it does not hold it */
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

/* What is left goes back when its lease is over. */
void doubts_finish(struct engine *engine)
{
    while (!list_empty(&engine->doubts))
        doubt_destroy(container_of(engine->doubts.next, struct doubt, link));
}
