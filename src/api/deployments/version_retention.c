/* version_retention.c - drops versions that no run needs, one environment after another.
 *
 *   candidates, oldest first ─► every run in memory is checked, in time slices
 *         ▲                                                └─► not needed: its version is
 *         └── a minute later, or when something was deployed ◄─ dropped, then row and files
 *
 * Unfinished runs are always in memory. One that changes during the check moves to the end
 * of their order, and is checked again. */
#include "api/deployments/version_retention.h"

#include "api/artifacts/kept_files.h"
#include "api/deployments/builds.h"
#include "api/registration/registration.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/fleet/fleet.h"

enum {
    EVERY_MS = 60 * 1000,
    SOON_MS = 200,
    AT_ONCE = 16, /* candidates */
    LOOKED_AT_ONCE = 256,
};

struct version_retention {
    struct deployments *all;
    struct timer timer;
    uint32_t kind;
    uint32_t next; /* place among the sets */
    struct deferred turn;

    /* The environment that is being checked. */
    uint32_t env;
    uint64_t at; /* rev up to which its runs were checked */
    struct {
        char id[ID_MAX], version[WORKER_VERSION_MAX];
        bool is_needed;
    } candidates[AT_ONCE];
    size_t count;
};

static void on_time(struct timer *timer);
static void on_turn(struct deferred *turn);

struct version_retention *version_retention_create(struct deployments *all)
{
    struct version_retention *retention = mem_new(struct version_retention);
    retention->all = all;
    retention->kind = timers_kind(loop_timers(all->loop), on_time);
    retention->turn.fn = on_turn;
    list_init(&retention->turn.link);
    return retention;
}

void version_retention_stop(struct version_retention *retention)
{
    timers_clear(loop_timers(retention->all->loop), &retention->timer);
    loop_cancel_deferred(&retention->turn);
}

void version_retention_destroy(struct version_retention *retention)
{
    if (!retention)
        return;
    version_retention_stop(retention);
    free(retention);
}

void version_retention_check_soon(struct version_retention *retention)
{
    bool is_looking = !list_empty(&retention->turn.link);
    if (!is_looking && !retention->all->stopped)
        loop_set_timer(retention->all->loop, &retention->timer, retention->kind, SOON_MS);
}

void version_remove_files(const struct deployment *deployment, bool log_too)
{
    static const char *const endings[] = { ".tar.gz", ".index.json", ".log" };
    for (int i = 0; i < (log_too ? 3 : 2); i++)
        kept_files_remove(deployment->all->files,
                          kept_file_name(deployment->env, deployment->row.id, endings[i]));
}

/* ---- dropping one ---- */

static enum err decide_drop(struct deployment_command *command,
                            const struct deployment *deployment,
                            struct deployment_row *next)
{
    (void)deployment;
    (void)command;
    next->archive_bytes = next->version_bytes = 0;
    next->has_index = false;
    next->promotes = false;
    return OK;
}

/* A row that could not be written is found at the next start: it has no version. */
static void on_dropped(struct deployment_command *command, struct deployment *deployment,
                       enum err status)
{
    if (!status) {
        version_remove_files(deployment, false);
        log_info("version no longer kept", "id", deployment->row.id, "version",
                 deployment->row.version, NULL);
    }
    free(command);
}

void version_drop(struct deployment *deployment)
{
    struct deployment_command *command = mem_new(struct deployment_command);
    command->decide = decide_drop;
    command->done = on_dropped;
    deployment_command_begin(deployment, command);
}

/* Drops a version. Calls that name it from now on learn that it is no longer kept. */
static void let_go(struct version_retention *retention, struct environment *env,
                   struct slice id)
{
    struct deployment *deployment = deployments_find(retention->all, env->number, id);
    struct worker *worker =
        deployment ? workers_by_deployment(env->fleet->workers, id) : NULL;
    if (!worker || !registration_forget(retention->all->engine, env, worker))
        return;
    workers_note_gone(env->fleet->workers, slice_of(deployment->row.version));
    version_drop(deployment);
}

static void on_forgotten(struct document_write *write, enum err status)
{
    (void)status; /* the rest is forgotten after the next start */
    free(write);
}

static void forget(struct deployment *deployment)
{
    struct bytes *name = bytes_create(slice_of(deployment->row.id));
    document_write_begin(deployment->all->engine, deployment->env, DOC_DEPLOYMENT, name,
                         NULL, deployment->document, mem_new(struct document_write),
                         on_forgotten);
    bytes_unref(name);
    version_remove_files(deployment, true);
    deployment_free(deployment);
}

static bool is_idle(const struct deployment *deployment)
{
    return list_empty(&deployment->commands) && list_empty(&deployment->watchers) &&
           !deployment->promoting && !deployment->handing && deployment->document;
}

/* Forgets the oldest rows that only record how a deployment ended. */
static void forget_oldest(struct deployment_set *set)
{
    size_t count = 0;
    list_each (link, &set->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment_is_settled(deployment) && !deployment->row.archive_bytes &&
            ++count > DEPLOYMENTS_REMEMBERED && is_idle(deployment))
            forget(deployment);
    }
}

/* ---- choosing ---- */

static void add_candidate(struct version_retention *retention,
                          const struct deployment *deployment)
{
    if (retention->count == AT_ONCE) { /* the newest one waits for the next time */
        memmove(&retention->candidates[0], &retention->candidates[1],
                (AT_ONCE - 1) * sizeof(retention->candidates[0]));
        retention->count--;
    }
    size_t at = retention->count++;
    memcpy(retention->candidates[at].id, deployment->row.id, ID_MAX);
    memcpy(retention->candidates[at].version, deployment->row.version, WORKER_VERSION_MAX);
    retention->candidates[at].is_needed = false;
}

/* Finds versions that are neither among the newest ones nor current. */
static void find_candidates(struct version_retention *retention,
                            const struct deployment_set *set, const struct environment *env)
{
    const struct worker *current = workers_current(env->fleet->workers);
    int64_t kept = 0;
    retention->count = 0;
    list_each (link, &set->all) {
        const struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment->row.status != DEPLOYMENT_DEPLOYED ||
            !deployment->row.archive_bytes || kept++ < retention->all->options.keep)
            continue;
        bool is_current = current && !strcmp(current->deployment, deployment->row.id);
        if (!is_current && is_idle(deployment) && deployment_is_settled(deployment))
            add_candidate(retention, deployment);
    }
}

static void note_run(struct version_retention *retention, const struct run *run)
{
    struct slice version = bytes_slice(run->worker_version);
    if (!version.ptr || run_is_settled(run))
        return;
    for (size_t i = 0; i < retention->count; i++)
        if (slice_is(version, retention->candidates[i].version))
            retention->candidates[i].is_needed = true;
}

/* Returns false if there are more runs than this turn has time for. */
static bool look_at_runs(struct version_retention *retention, const struct environment *env)
{
    const struct order *order = &env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(retention->all->loop);
    for (uint32_t i = order_after(order, retention->at); i < order->count; i++) {
        struct place place = order_place(order, i);
        if (!timeslice_left_every(&timeslice, LOOKED_AT_ONCE))
            return false;
        retention->at = place.rev;
        if (place.run)
            note_run(retention, &place.run->run);
    }
    return true;
}

/* Begins the next environment that has candidates. Returns false if there is none. */
static bool begin_next(struct version_retention *retention)
{
    struct deployments *all = retention->all;
    for (struct deployment_set *set; (set = slots_next(&all->sets, &retention->next));) {
        const struct environment *env = engine_environment(all->engine, set->env);
        if (!env || engine_is_retired(env))
            continue;
        forget_oldest(set);
        find_candidates(retention, set, env);
        retention->env = set->env;
        retention->at = 0;
        if (retention->count)
            return true;
    }
    retention->next = 0;
    return false;
}

static void on_turn(struct deferred *turn)
{
    struct version_retention *retention =
        container_of(turn, struct version_retention, turn);
    struct loop *loop = retention->all->loop;
    struct environment *env = engine_environment(retention->all->engine, retention->env);
    if (env && !look_at_runs(retention, env)) {
        loop_defer(loop, turn);
        return;
    }
    for (size_t i = 0; env && i < retention->count; i++)
        if (!retention->candidates[i].is_needed)
            let_go(retention, env, slice_of(retention->candidates[i].id));
    if (begin_next(retention))
        loop_defer(loop, turn);
    else
        loop_set_timer(loop, &retention->timer, retention->kind, EVERY_MS);
}

static void on_time(struct timer *timer)
{
    struct version_retention *retention =
        container_of(timer, struct version_retention, timer);
    retention->next = 0;
    if (begin_next(retention))
        loop_defer(retention->all->loop, &retention->turn);
    else
        loop_set_timer(retention->all->loop, timer, retention->kind, EVERY_MS);
}
