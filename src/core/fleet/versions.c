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

/* ---- limits and gates ---- */

/* Which parts the text of a run or task decides. */
struct needs_text {
    bool has_limits, has_own, has_gates;
};

static bool is_own_name(struct slice element)
{
    return memchr(element.ptr, '/', element.len);
}

/* Reads an element, and appends it to the one that it belongs to; NULL: to neither. */
static void read_need(struct needs_text *text, struct slice element, bool is_first,
                      struct buf *limits, struct buf *gates)
{
    enum scan_type type = scan_type(element);
    struct buf *out = type == SCAN_OBJECT ? gates : limits;
    if (type == SCAN_NULL) {
        text->has_limits = false;
        return;
    }
    text->has_gates |= type == SCAN_OBJECT;
    text->has_own |= type == SCAN_STRING && is_first && is_own_name(element);
    if (!out || element.len <= sizeof("{}") - 1)
        return;
    buf_add_text(out, out->len ? "," : "");
    buf_add(out, element);
}

/* The first limit may be that of the task. */
static struct needs_text read_needs(const struct bytes *bytes, struct buf *limits,
                                    struct buf *gates)
{
    struct scan_members elements = scan_members(bytes_slice(bytes));
    struct needs_text text = { .has_limits = bytes };
    struct slice element;
    for (bool first = true; scan_next_element(&elements, &element); first = false)
        read_need(&text, element, first, limits, gates);
    return text;
}

struct bytes *versions_needs_text(const struct buf *limits, const struct buf *gates)
{
    struct buf text = { 0 };
    buf_add_text(&text, limits ? "[" : "[null");
    buf_add(&text, limits ? buf_slice(limits) : SLICE(""));
    if (gates) {
        buf_add_text(&text, text.len > 1 ? "," : "");
        buf_add(&text, gates->len ? buf_slice(gates) : SLICE("{}"));
    }
    buf_add_char(&text, ']');
    struct bytes *bytes = bytes_create_shared(buf_slice(&text));
    buf_finish(&text);
    return bytes;
}

bool versions_has_limits_for(const struct run *run, const struct worker_task *task)
{
    if (!task || !task->limits)
        return false;
    struct needs_text has = read_needs(run_rare(run)->limits, NULL, NULL),
                      needs = read_needs(task->limits, NULL, NULL);
    return (!has.has_limits && needs.has_limits) || (task->has_inline && !has.has_own) ||
           (!has.has_gates && needs.has_gates);
}

/* Puts the task's own limit before the others. */
static void add_own_limit(struct buf *limits, const struct worker_task *task)
{
    struct scan_members elements = scan_members(bytes_slice(task->limits));
    struct slice own;
    struct buf all = { 0 };
    scan_next_element(&elements, &own);
    buf_add(&all, own);
    buf_add_text(&all, limits->len ? "," : "");
    buf_add(&all, buf_slice(limits));
    buf_finish(limits);
    *limits = all;
}

static struct bytes *merge_needs(const struct bytes *of_run, const struct worker_task *task)
{
    struct buf limits = { 0 }, gates = { 0 };
    struct needs_text has = read_needs(of_run, &limits, &gates);
    struct needs_text adds = read_needs(task->limits, has.has_limits ? NULL : &limits,
                                        has.has_gates ? NULL : &gates);
    if (has.has_limits && task->has_inline && !has.has_own)
        add_own_limit(&limits, task);
    struct bytes *text =
        versions_needs_text(has.has_limits || adds.has_limits ? &limits : NULL,
                            has.has_gates || adds.has_gates ? &gates : NULL);
    buf_finish(&limits);
    buf_finish(&gates);
    return text;
}

void versions_take_limits(struct run *run, const struct worker_task *task)
{
    const struct bytes *now = run_rare(run)->limits;
    if (!versions_has_limits_for(run, task))
        return;
    struct bytes *limits = now ? merge_needs(now, task) : bytes_ref(task->limits);
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
