/* deployments.c - the service of deployments: start, stop, and the effects of a change.
 *
 *   a row has changed ─┬─► no builder has it: its key is dismissed
 *                      ├─► DEPLOYED: runs may have its version ─► promoted, unless skipped
 *                      ├─► ended otherwise: its version and its files are removed
 *                      └─► the next pending one is assigned */
#include "api/deployments/deployments.h"

#include "api/artifacts/kept_files.h"
#include "api/deployments/build_variables.h"
#include "api/deployments/builds.h"
#include "api/deployments/deployment_due.h"
#include "api/deployments/version_retention.h"
#include "api/registration/promotion.h"
#include "api/registration/registration.h"
#include "api/request/call.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/fleet/versions.h"

enum { RESTORED_TRIES = 4 };

static const char *const endings[] = { ".tar.gz", ".index.json", ".log" };

enum { ENDINGS = sizeof(endings) / sizeof(endings[0]), LOG = ENDINGS - 1 };

/* ---- creation and end ---- */

static void on_change(struct deployment *deployment, enum deployment_status before);
static void promote(struct deployment *deployment);

struct deployments *deployments_create(struct api *api,
                                       const struct deployment_options *options)
{
    struct deployments *all = mem_new(struct deployments);
    all->api = api;
    all->engine = api_engine(api);
    all->accounts = api_accounts(api);
    all->loop = engine_loop(all->engine);
    all->options = *options;
    all->files = kept_files_create(all->loop, engine_store(all->engine), options->data);
    deployments_init_turns(all);
    list_init(&all->active);
    list_init(&all->lines);
    list_init(&all->builders);
    list_init(&all->awaited);
    all->created_ms = loop_now_ms(all->loop);
    all->on_change = on_change;
    all->promote = promote;
    all->retention = version_retention_create(all);
    return all;
}

static void free_set(struct deployments *all, uint32_t env)
{
    struct deployment_set *set = slots_get(&all->sets, env);
    while (!list_empty(&set->all)) {
        struct deployment *deployment =
            container_of(set->all.next, struct deployment, link);
        build_end(deployment);
        deployment_free(deployment);
    }
    free(set);
    *slots_at(&all->sets, env) = NULL;
}

bool deployments_stop(struct deployments *all)
{
    uint32_t at = 0;
    all->stopped = true;
    version_retention_stop(all->retention);
    for (struct deployment_set *set; (set = slots_next(&all->sets, &at));)
        list_each (link, &set->all) {
            struct deployment *deployment = container_of(link, struct deployment, link);
            timers_clear(loop_timers(all->loop), &deployment->timer);
            deployment_cancel_commands(deployment);
            deployment_cancel_taking(deployment);
        }
    return kept_files_stop(all->files) && !all->busy;
}

void deployments_destroy(struct deployments *all)
{
    uint32_t at = 0;
    if (!all)
        return;
    for (struct deployment_set *set; (set = slots_next(&all->sets, &at));)
        free_set(all, set->env);
    slots_finish(&all->sets);
    deployments_finish_turns(all);
    version_retention_destroy(all->retention);
    builds_forget_builders(all);
    kept_files_destroy(all->files);
    free(all);
}

/* ---- what follows from a change ---- */

static struct environment *environment_of(const struct deployment *deployment)
{
    return engine_environment(deployment->all->engine, deployment->env);
}

static struct worker *worker_of(const struct deployment *deployment)
{
    struct environment *env = environment_of(deployment);
    return env ? workers_by_deployment(env->fleet->workers, slice_of(deployment->row.id))
               : NULL;
}

/* Counts archive and version as stored by the project. */
static void count_stored(struct deployment *deployment)
{
    struct environment *env = environment_of(deployment);
    const struct deployment_row *row = &deployment->row;
    size_t now = (size_t)row->archive_bytes + (size_t)row->version_bytes;
    size_t before = deployment->held;
    if (!env)
        return;
    deployment->held = now;
    if (now > before)
        engine_hold_stored(env, now - before);
    else
        engine_release_stored(deployment->all->engine, env, before - now);
}

static void count_end(const struct deployment *deployment)
{
    static const enum metric counters[DEPLOYMENT_STATUSES] = {
        [DEPLOYMENT_DEPLOYED] = M_DEPLOYMENTS_DEPLOYED,
        [DEPLOYMENT_FAILED] = M_DEPLOYMENTS_FAILED,
        [DEPLOYMENT_CANCELED] = M_DEPLOYMENTS_CANCELED,
        [DEPLOYMENT_TIMED_OUT] = M_DEPLOYMENTS_TIMED_OUT,
    };
    const struct deployment_row *row = &deployment->row;
    int64_t now = loop_wall_ms(deployment->all->loop);
    metric_add(counters[row->status], 1);
    metric_observe_us(H_DEPLOY, now > row->created_at ? (now - row->created_at) * 1000 : 0);
    log_info("deployment ended", "id", row->id, "version", row->version, "status",
             deployment_status_name(row->status), NULL);
}

/* ---- promotion ---- */

struct promoting {
    struct promotion promotion;
    struct deployment_command command;
    struct deployment *deployment;
};

static enum err decide_promoted(struct deployment_command *command,
                                const struct deployment *deployment,
                                struct deployment_row *next)
{
    (void)command;
    (void)deployment;
    next->promotes = false;
    return OK;
}

static void on_noted(struct deployment_command *command, struct deployment *deployment,
                     enum err status)
{
    struct promoting *op = container_of(command, struct promoting, command);
    struct deployments *all = deployment->all;
    free(op);
    deployment->promoting = false;
    if (status && !all->stopped)
        deployment_set_timer(deployment); /* it is current: found and noted later */
    all->busy--;
}

static void on_promoted(struct promotion *promotion, enum err status)
{
    struct promoting *op = container_of(promotion, struct promoting, promotion);
    struct deployment *deployment = op->deployment;
    struct deployments *all = deployment->all;
    bool again = status && status != ERR_NOT_FOUND;
    if (all->stopped || again) { /* the next start promotes it, or the timer */
        free(op);
        deployment->promoting = false;
        if (!all->stopped)
            deployment_set_timer(deployment);
        all->busy--;
        return;
    }
    version_retention_check_soon(all->retention);
    op->command.decide = decide_promoted;
    op->command.done = on_noted;
    deployment_command_begin(deployment, &op->command);
}

/* Makes the version current, unless it is older than the current one. */
static void promote(struct deployment *deployment)
{
    struct deployments *all = deployment->all;
    struct account *account = accounts_by_number(all->accounts, deployment->env);
    if (deployment->promoting)
        return;
    struct promoting *op = mem_new(struct promoting);
    op->deployment = deployment;
    deployment->promoting = true;
    op->promotion.rule = PROMOTION_NEWER;
    all->busy++;
    promotion_begin(&op->promotion, all->api, account, slice_of(deployment->row.version),
                    on_promoted);
}

static void let_runs_have(struct deployment *deployment)
{
    struct worker *worker = worker_of(deployment);
    if (worker)
        versions_deployed(environment_of(deployment), worker);
    if (deployment->row.promotes)
        promote(deployment);
    else
        version_retention_check_soon(deployment->all->retention);
}

static void on_change(struct deployment *deployment, enum deployment_status before)
{
    enum deployment_status now = deployment->row.status;
    count_stored(deployment);
    if (!deployment_is_being_built(now))
        build_end(deployment);
    if (now == DEPLOYMENT_PENDING)
        deployment->due_since_ms = loop_now_ms(deployment->all->loop);
    deployment_set_timer(deployment);
    if (now != before && deployment_is_final(now)) {
        count_end(deployment);
        if (now == DEPLOYMENT_DEPLOYED)
            let_runs_have(deployment);
        else
            version_remove_files(deployment, false);
        deployment_forget_worker(deployment);
    }
    builds_match(deployment->all);
}

/* ---- restoring ---- */

/* Checks that the variables can be opened: a key that does not open them makes the start
 * fail. They stay in the store until a builder gets them. */
static enum err restore_variables(struct deployments *all, uint32_t env,
                                  const struct document *document, struct failure *why)
{
    struct deployment *deployment = deployments_find(all, env, bytes_slice(document->name));
    struct bytes *variables = NULL;
    if (!deployment || deployment_is_final(deployment->row.status))
        return OK;
    enum err err =
        build_variables_unseal(accounts_vault(all->accounts), bytes_slice(document->name),
                               bytes_slice(document->body), &variables, why);
    build_variables_forget(&variables);
    deployment->variables_document = document->version;
    return err;
}

enum err deployments_restore(struct deployments *all, struct environment *env,
                             const struct document *document, struct failure *why)
{
    struct deployment_row row;
    if (document->kind == DOC_BUILD_VARIABLES)
        return restore_variables(all, env->number, document, why);
    enum err err = deployment_read(bytes_slice(document->body), &row, why);
    if (err)
        return err;
    struct deployment *deployment = deployments_add(all, env->number, &row, NULL);
    struct worker *worker = worker_of(deployment);
    deployment->document = document->version;
    deployment->tries = RESTORED_TRIES; /* unknown; the next one may be the last */
    count_stored(deployment);
    workers_reserve_version(env->fleet->workers, slice_of(deployment->row.version));
    bool is_deployed = deployment->row.status == DEPLOYMENT_DEPLOYED;
    if (worker && is_deployed)
        versions_deployed(env, worker);
    else if (is_deployed)
        workers_note_gone(env->fleet->workers, slice_of(deployment->row.version));
    return OK;
}

/* ---- starting ---- */

/* Returns the id in the name of a file. which: index in endings. */
static struct slice id_of(const char *name, int *which)
{
    struct slice text = slice_of(name);
    for (*which = 0; *which < ENDINGS; ++*which) {
        size_t len = strlen(endings[*which]);
        if (text.len > len && !strcmp(name + text.len - len, endings[*which])) {
            text.len -= len;
            break;
        }
    }
    return text;
}

/* Also finds one that is not yet written: its archive may be written before it. */
static const struct deployment *find_any(const struct deployment_set *set, struct slice id)
{
    if (!set)
        return NULL;
    list_each (link, &set->all) {
        const struct deployment *deployment = container_of(link, struct deployment, link);
        if (slice_is(id, deployment->row.id))
            return deployment;
    }
    return NULL;
}

static const struct deployment *owner_of(const struct deployments *all, uint32_t env,
                                         struct slice id)
{
    const struct deployment *found = NULL;
    uint32_t at = 0;
    if (env != ENV_EVERY)
        return find_any(slots_get(&all->sets, env), id);
    for (struct deployment_set *set; !found && (set = slots_next(&all->sets, &at));)
        found = find_any(set, id);
    return found;
}

static bool is_needed(void *owner, const struct store_file_name *name)
{
    int which;
    struct slice id = id_of(name->text, &which);
    const struct deployment *deployment = owner_of(owner, name->env, id);
    return deployment &&
           (which == LOG || deployment->row.archive_bytes || !deployment->document);
}

static void go_on(struct deployment *deployment)
{
    bool is_deployed = deployment->row.status == DEPLOYMENT_DEPLOYED;
    if (is_deployed && deployment->row.archive_bytes && !worker_of(deployment))
        version_drop(deployment); /* finishes what a crash interrupted */
    else if (is_deployed && deployment->row.promotes)
        promote(deployment);
    else
        deployment_set_timer(deployment);
    deployment_forget_worker(deployment);
}

enum err deployments_start(struct deployments *all, struct failure *why)
{
    uint32_t at = 0;
    enum err err = kept_files_sweep(all->files, is_needed, all, why);
    if (err)
        return err;
    all->started = true;
    all->started_ms = loop_now_ms(all->loop);
    for (struct deployment_set *set; (set = slots_next(&all->sets, &at));)
        list_each (link, &set->all)
            go_on(container_of(link, struct deployment, link));
    builds_match(all);
    version_retention_check_soon(all->retention);
    return OK;
}

/* ---- environments that end ---- */

void deployments_retire(struct deployments *all, const struct environment *env)
{
    struct deployment_set *set = slots_get(&all->sets, env->number);
    if (!set || all->stopped)
        return;
    list_each (link, &set->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (!deployment_is_final(deployment->row.status))
            deployment_end(deployment, DEPLOYMENT_CANCELED, NULL,
                           bytes_create(SLICE("its environment was archived")));
    }
}

bool deployments_forget(struct deployments *all, const struct environment *env)
{
    struct deployment_set *set = slots_get(&all->sets, env->number);
    if (!set)
        return true;
    list_each (link, &set->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (!list_empty(&deployment->commands) || !list_empty(&deployment->watchers) ||
            deployment->promoting || deployment->handing || !deployment->document)
            return false;
    }
    list_each (link, &set->all)
        version_remove_files(container_of(link, struct deployment, link), true);
    free_set(all, env->number);
    return true;
}
