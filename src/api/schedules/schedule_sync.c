/* schedule_sync.c - creates, changes and removes the schedules that code declares. */
#include "api/schedules/schedule_sync.h"

#include "api/schedules/schedule_body.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/fleet/dev_sessions.h"

enum { AT_ONCE = 16 }; /* commands in progress at a time: a turn has 5 ms */

/* ---- declared schedules ---- */

/* Returns the task if it declares a schedule for this environment; otherwise NULL. */
static const struct worker_task *wanted_task(const struct schedule_sync *sync,
                                             struct slice name)
{
    const struct environment *env = sync->env;
    const struct worker_task *task =
        env->is_dev ? dev_sessions_task(env, name)
                    : worker_task(workers_current(env->fleet->workers), name);
    bool wanted =
        task && task->cron && task->schedule_in & 1u << (unsigned)sync->account->type;
    return wanted ? task : NULL;
}

/* Returns true if undeclared schedules stay: in dev, while no session is connected or a
 * session may return. */
static bool keeps_unwanted(const struct schedule_sync *sync)
{
    const struct environment *env = sync->env;
    return env->is_dev && (dev_sessions_may_return(env) || !dev_sessions_next(env, NULL));
}

static bool same_text(const struct bytes *a, const struct bytes *b)
{
    return !a == !b && slice_equal(bytes_slice(a), bytes_slice(b));
}

static bool is_as_wanted(const struct schedule *now, const struct worker_task *task)
{
    return now && same_text(now->facts.cron, task->cron) &&
           same_text(now->facts.timezone, task->timezone) &&
           same_text(now->facts.window, task->window);
}

enum err schedule_sync_check(struct api *api, const struct worker_task *task, bool is_new,
                             struct failure *why)
{
    struct slice text = bytes_slice(task->cron);
    struct failure reason;
    struct cron cron;
    if (!task->cron)
        return OK;
    if (is_new ? cron_read_new(text, &cron, &reason) : cron_read(text, &cron, &reason))
        return explain(why, ERR_INVALID, "metadata.tasks: the schedule of '%.80s': %s",
                       task->id->data, reason.text);
    if (!schedules_zone(api_schedules(api), bytes_slice(task->timezone)))
        return explain(why, ERR_INVALID,
                       "metadata.tasks: the schedule of '%.80s': Invalid IANA timezone: "
                       "'%.80s'",
                       task->id->data, task->timezone->data);
    if (!schedule_window_is_valid(bytes_slice(task->window)))
        return explain(why, ERR_INVALID,
                       "metadata.tasks: the schedule of '%.80s': Invalid window: '%.80s'",
                       task->id->data, task->window->data);
    return OK;
}

/* ---- one task ---- */

struct sync_task {
    struct schedule_sync *sync;
    struct bytes *task;
    struct schedule_command command;
};

static struct sync_task *task_of(struct schedule_command *command)
{
    return container_of(command, struct sync_task, command);
}

static struct schedule *find(struct schedule_command *command)
{
    return schedules_of_task(command->all, command->env,
                             bytes_slice(task_of(command)->task));
}

static enum decision decide(struct schedule_command *command, const struct schedule *now,
                            struct schedule_facts *next)
{
    const struct sync_task *one = task_of(command);
    const struct worker_task *task = wanted_task(one->sync, bytes_slice(one->task));
    struct failure why;

    if (!task && keeps_unwanted(one->sync))
        return DECISION_NOTHING;
    if (!task) {
        command->removes = now != NULL;
        return now ? DECISION_COMMIT : DECISION_NOTHING;
    }
    if (is_as_wanted(now, task))
        return DECISION_NOTHING;
    if (schedule_sync_check(one->sync->api, task, false, &why)) {
        log_warn("declared schedule skipped", "reason", why.text, NULL);
        return DECISION_NOTHING;
    }
    schedule_facts_set_times(next, task->cron, task->timezone,
                             loop_wall_ms(engine_loop(api_engine(one->sync->api))));
    if (!now) {
        next->created_at = next->since;
        next->is_active = next->is_declarative = true;
    }
    bytes_set(&next->task, task->id);
    bytes_set(&next->window, task->window);
    return DECISION_COMMIT;
}

static void go_on(struct schedule_sync *sync);

static void on_done(struct schedule_command *command, enum err status)
{
    struct sync_task *one = task_of(command);
    struct schedule_sync *sync = one->sync;
    bytes_unref(one->task);
    free(one);
    sync->pending--;
    if (status && !sync->status)
        sync->status = status;
    go_on(sync);
}

/* ---- all of an environment ---- */

static void go_on(struct schedule_sync *sync)
{
    while (sync->pending < AT_ONCE && sync->next < sync->count) {
        struct sync_task *one = mem_new(struct sync_task);
        one->sync = sync;
        one->task = sync->tasks[sync->next++];
        sync->pending++;
        schedule_command_begin(api_schedules(sync->api), sync->env, &one->command, find,
                               decide, on_done);
    }
    if (sync->pending)
        return;
    free(sync->tasks);
    environment_release(sync->env);
    sync->done(sync, sync->status);
}

static void on_begun(struct deferred *deferred)
{
    go_on(container_of(deferred, struct schedule_sync, deferred));
}

static void collect_of(struct schedule_sync *sync, const struct worker *worker)
{
    struct schedules *all = api_schedules(sync->api);
    for (size_t i = 0; worker && i < worker->task_count; i++) {
        struct bytes *task = worker->tasks[i].id;
        if (worker->tasks[i].cron && !schedules_of_task(all, sync->env, bytes_slice(task)))
            sync->tasks[sync->count++] = bytes_ref(task);
    }
}

static size_t count_tasks(const struct environment *env)
{
    const struct worker *worker = workers_current(env->fleet->workers);
    size_t count = worker && !env->is_dev ? worker->task_count : 0;
    for (struct session *s = NULL; (s = dev_sessions_next(env, s));)
        count += s->current->task_count;
    return count;
}

/* Collects the tasks that have a declared schedule or should have one. */
static void collect(struct schedule_sync *sync)
{
    struct schedules *all = api_schedules(sync->api);
    const struct environment *env = sync->env;
    size_t most = schedules_count(all, sync->env) + count_tasks(env);

    sync->tasks = mem_new_array(struct bytes *, most);
    for (struct schedule *s = NULL; (s = schedules_next(all, sync->env, s));)
        if (s->facts.is_declarative)
            sync->tasks[sync->count++] = bytes_ref(s->facts.task);
    if (!env->is_dev)
        collect_of(sync, workers_current(env->fleet->workers));
    for (struct session *session = NULL; (session = dev_sessions_next(env, session));)
        collect_of(sync, session->current);
}

void schedule_sync_begin(struct api *api, struct account *account,
                         struct schedule_sync *sync,
                         void (*done)(struct schedule_sync *sync, enum err status))
{
    struct engine *engine = api_engine(api);
    *sync = (struct schedule_sync){ .api = api,
                                    .account = account,
                                    .env = engine_environment(engine, account->number),
                                    .done = done };
    environment_hold(sync->env);
    collect(sync);
    list_init(&sync->deferred.link);
    sync->deferred.fn = on_begun;
    loop_defer(engine_loop(engine), &sync->deferred);
}

static void on_alone(struct schedule_sync *sync, enum err status)
{
    if (status)
        log_warn("declared schedules not written", "reason", errors[status].text, NULL);
    free(sync);
}

static void on_sessions(void *owner, struct environment *env)
{
    struct api *api = owner;
    struct account *account = accounts_by_number(api_accounts(api), env->number);
    if (account && !account->archived)
        schedule_sync_begin(api, account, mem_new(struct schedule_sync), on_alone);
}

void schedule_sync_all(struct api *api)
{
    engine_on_sessions(api_engine(api), on_sessions, api);
    for (struct account *a = NULL; (a = accounts_next(api_accounts(api), a));) {
        if (!a->archived)
            schedule_sync_begin(api, a, mem_new(struct schedule_sync), on_alone);
    }
}
