/* versions.c - checks a run against the current versions and sessions. */
#include "core/fleet/versions.h"

#include <string.h>

#include "base/buf.h"
#include "base/json/scan.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/worker_versions.h"

/* Returns true if the run got its queue by default: its trigger named none, and no version
 * had its task then. */
static bool is_default_queue(const struct run *run)
{
    const struct slice prefix = SLICE("task/"), queue = bytes_slice(run->queue);
    return slice_starts(queue, prefix.ptr) &&
           slice_equal(slice_from(queue, prefix.len), bytes_slice(run->task));
}

/* A queue that any version declares counts, so that a run keeps its place when a newer
 * version renames the queue of its task. The default queue always counts, even if the task
 * names another: a run that waited for its task must not then wait for a queue that its
 * trigger did not name. */
static enum version_verdict check_queue(const struct environment *env,
                                        const struct run *run, const struct worker *worker)
{
    const struct slice queue = bytes_slice(run->queue);
    return is_default_queue(run) || worker_has_queue(worker, queue) ||
                   queues_is_registered(&env->queues, queue)
               ? VERSION_IS_THERE
               : VERSION_LACKS_QUEUE;
}

static enum version_verdict check_sessions(const struct environment *env,
                                           const struct run *run)
{
    const struct workers *workers = env->fleet->workers;
    const struct session *session = dev_sessions_of_run(env, run);
    if (session)
        return check_queue(
            env, run, run->worker_version ? workers_for(workers, run) : session->current);
    if (dev_sessions_may_return(env) || !dev_sessions_next(env, NULL))
        return VERSION_UNDECIDED;
    return run->worker_version ? VERSION_NONE : VERSION_LACKS_TASK;
}

enum version_verdict versions_check(const struct environment *env, const struct run *run)
{
    if (env->is_dev)
        return check_sessions(env, run);
    const struct worker *worker = workers_for(env->fleet->workers, run);
    if (worker_task(worker, bytes_slice(run->task)))
        return check_queue(env, run, worker);
    return worker ? VERSION_LACKS_TASK : VERSION_NONE;
}

bool versions_lack(const struct environment *env, const struct run *run)
{
    return versions_check(env, run) > VERSION_UNDECIDED;
}

bool versions_is_plain(const struct environment *env, const struct run *run)
{
    const struct worker *worker =
        env->is_dev ? NULL : workers_for(env->fleet->workers, run);
    return worker && !worker->deployment[0];
}

/* Only the name of a task's own limit has a slash. */
static bool has_own_limit(const struct bytes *limits)
{
    return memchr(limits->data, '/', limits->len);
}

/* Returns the names in the text, a JSON array, after the name of the task's own limit. */
static struct bytes *with_own_limit(const struct worker_task *task, struct slice text)
{
    struct buf all = { 0 };
    struct slice element;
    struct scan_members own = scan_members(bytes_slice(task->limits));
    scan_next_element(&own, &element);
    buf_add_char(&all, '[');
    buf_add(&all, element);
    buf_add_text(&all, text.len > 2 ? "," : "");
    buf_add(&all, slice_from(text, 1));
    struct bytes *limits = bytes_create_shared(buf_slice(&all));
    buf_finish(&all);
    return limits;
}

bool versions_has_limits_for(const struct run *run, const struct worker_task *task)
{
    const struct bytes *named = run_rare(run)->limits;
    return task && task->limits && (!named || (task->has_inline && !has_own_limit(named)));
}

void versions_take_limits(struct run *run, const struct worker_task *task)
{
    const struct bytes *named = run_rare(run)->limits;
    if (!versions_has_limits_for(run, task))
        return;
    struct bytes *limits =
        named ? with_own_limit(task, bytes_slice(named)) : bytes_ref(task->limits);
    struct run_rare *rare = run_rare_edit(run);
    bytes_unref(rare->limits);
    rare->limits = limits;
}

void versions_lock(const struct environment *env, struct run *run)
{
    if (!run_rare(run)->external_deployment || run->worker_version)
        return;
    const struct worker *worker = workers_for(env->fleet->workers, run);
    if (worker_task(worker, bytes_slice(run->task)))
        run->worker_version = bytes_create_shared(slice_of(worker->version));
}

void versions_deployed(struct environment *env, struct worker *worker)
{
    worker->is_deployed = true;
    if (worker->external_id[0])
        fleet_changed(env);
}
