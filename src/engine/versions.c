/* versions.c - a run that no version has waits; a run that waits is queued when one comes. */
#include "engine/versions.h"

#include "engine/sessions.h"
#include "engine/state.h"

static enum version_verdict judge_sessions(const struct environment *env,
                                           const struct run *run)
{
    if (sessions_of_run(env, run))
        return VERSION_IS_THERE;
    if (sessions_may_return(env) || !sessions_next(env, NULL))
        return VERSION_UNDECIDED;
    return run->worker_version ? VERSION_NONE : VERSION_LACKS_TASK;
}

enum version_verdict versions_judge(const struct environment *env, const struct run *run)
{
    if (env->is_dev)
        return judge_sessions(env, run);
    const struct worker *worker = workers_for(env->workers, run);
    if (worker_task(worker, bytes_slice(run->task)))
        return VERSION_IS_THERE;
    return worker ? VERSION_LACKS_TASK : VERSION_NONE;
}

bool versions_lack(const struct environment *env, const struct run *run)
{
    return versions_judge(env, run) > VERSION_UNDECIDED;
}

static enum decision advance(const struct command *command, struct run *next,
                             enum run_event event)
{
    return run_advance(next, event, loop_wall_ms(command->engine->loop)) ? DECISION_NOTHING
                                                                         : DECISION_COMMIT;
}

/* Its ttl or pause goes on, and so does its place in the queue. A retry is judged when it is
 * dequeued. */
static enum decision decide(struct command *command, const struct run *now,
                            struct run *next, unsigned *marks)
{
    enum version_verdict verdict = versions_judge(command->env, now);
    (void)marks;
    if (now->status == RUN_PENDING_VERSION && verdict == VERSION_IS_THERE)
        return advance(command, next, EVENT_VERSION_CAME);
    if (now->status == RUN_QUEUED && verdict > VERSION_UNDECIDED)
        return advance(command, next, EVENT_NO_VERSION);
    return DECISION_NOTHING;
}

void versions_follow(struct engine *engine, struct tracked *run)
{
    enum version_verdict verdict;
    if (run->run.status != RUN_PENDING_VERSION && run->run.status != RUN_QUEUED)
        return;
    verdict = versions_judge(run->env, &run->run);
    if (run->run.status == RUN_QUEUED ? verdict > VERSION_UNDECIDED
                                      : verdict == VERSION_IS_THERE)
        command_begin_alone(engine, run->env, slice_of(run->run.id), decide);
}
