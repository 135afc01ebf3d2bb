/* deployment_commands.c - decides commands on deployments in order, and writes the results.
 *
 * A rotation of the vault's key rewrites the document of a build's variables. A commit that
 * conflicts with that reads the document's current version, and is retried. */
#include "api/deployments/deployment_commands.h"

#include "accounts/accounts.h"
#include "api/artifacts/kept_files.h"
#include "api/deployments/build_variables.h"
#include "api/registration/registration.h"
#include "api/request/call.h"
#include "base/mem.h"
#include "base/vault/vault.h"
#include "core/fleet/fleet.h"

/* ---- sets ---- */

static struct slice key_of(const struct project *const *project)
{
    return (struct slice){ (const char *)project, sizeof(struct project *) };
}

static struct slice turns_key(const void *value)
{
    return key_of(&((const struct build_turns *)value)->project);
}

void deployments_init_turns(struct deployments *all)
{
    table_init(&all->turns, turns_key);
}

void deployments_finish_turns(struct deployments *all)
{
    size_t at = 0;
    for (void *turns; (turns = table_next(&all->turns, &at));)
        free(turns);
    table_finish(&all->turns);
}

static struct build_turns *turns_of(struct deployments *all, uint32_t env)
{
    const struct account *account = accounts_by_number(all->accounts, env);
    const struct project *project = account ? account->project : NULL;
    struct build_turns *turns = table_find(&all->turns, key_of(&project));
    if (!turns) {
        turns = mem_new(struct build_turns);
        turns->project = project;
        table_insert(&all->turns, turns);
    }
    return turns;
}

struct deployment_set *deployments_of(struct deployments *all, uint32_t env)
{
    void **place = slots_at(&all->sets, env);
    if (!*place) {
        struct deployment_set *set = mem_new(struct deployment_set);
        set->all_sets = all;
        set->env = env;
        set->turns = turns_of(all, env);
        list_init(&set->all);
        *place = set;
    }
    return *place;
}

struct deployment *deployments_find(struct deployments *all, uint32_t env, struct slice id)
{
    list_each (link, &deployments_of(all, env)->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment->document && slice_is(id, deployment->row.id))
            return deployment;
    }
    return NULL;
}

struct deployment *deployments_by_version(struct deployments *all, uint32_t env,
                                          struct slice version)
{
    list_each (link, &deployments_of(all, env)->all) {
        struct deployment *deployment = container_of(link, struct deployment, link);
        if (deployment->document && slice_is(version, deployment->row.version))
            return deployment;
    }
    return NULL;
}

/* ---- one deployment ---- */

static void on_turn(struct deferred *turn);

/* Inserts by id. Ids are in the order in which deployments were created. */
static void insert(struct deployment_set *set, struct deployment *deployment)
{
    struct list *place = set->all.next;
    while (place != &set->all &&
           strcmp(container_of(place, struct deployment, link)->row.id,
                  deployment->row.id) > 0)
        place = place->next;
    list_append(place, &deployment->link);
}

static void insert_active(struct deployments *all, struct deployment *deployment)
{
    struct list *place = all->active.prev;
    list_init(&deployment->active);
    if (deployment_is_final(deployment->row.status))
        return;
    while (place != &all->active &&
           strcmp(container_of(place, struct deployment, active)->row.id,
                  deployment->row.id) > 0)
        place = place->prev;
    list_append(place->next, &deployment->active);
}

struct deployment *deployments_add(struct deployments *all, uint32_t env,
                                   struct deployment_row *row, struct bytes *variables)
{
    struct deployment *deployment = mem_new(struct deployment);
    deployment->row = *row;
    *row = (struct deployment_row){ 0 };
    deployment->all = all;
    deployment->env = env;
    deployment->variables = variables;
    list_init(&deployment->commands);
    list_init(&deployment->watchers);
    list_init(&deployment->turn.link);
    list_init(&deployment->vault.link);
    deployment->turn.fn = on_turn;
    deployment->due_since_ms = loop_now_ms(all->loop);
    insert(deployments_of(all, env), deployment);
    insert_active(all, deployment);
    return deployment;
}

static void forget_variables(struct deployment *deployment)
{
    build_variables_forget(&deployment->variables);
    deployment->variables_document = 0;
}

void deployment_drop_due(struct due_command *due)
{
    if (!due)
        return;
    bytes_unref(due->error);
    bytes_unref(due->reason);
    free(due);
}

void deployment_free(struct deployment *deployment)
{
    timers_clear(loop_timers(deployment->all->loop), &deployment->timer);
    loop_cancel_deferred(&deployment->turn);
    vault_wait_no_more(&deployment->vault);
    deployment_drop_due(deployment->unwritten);
    list_remove(&deployment->link);
    list_remove(&deployment->active);
    forget_variables(deployment);
    deployment_row_finish(&deployment->row);
    free(deployment);
}

void deployment_watch(struct deployment *deployment, struct deployment_watcher *watcher)
{
    list_append(&deployment->watchers, &watcher->link);
}

static void notify_watchers(struct deployment *deployment)
{
    list_each (link, &deployment->watchers) {
        struct deployment_watcher *watcher =
            container_of(link, struct deployment_watcher, link);
        watcher->changed(watcher, deployment);
    }
}

void deployment_forget_worker(struct deployment *deployment)
{
    struct environment *env = engine_environment(deployment->all->engine, deployment->env);
    struct slice id = slice_of(deployment->row.id);
    struct worker *worker = env ? workers_by_deployment(env->fleet->workers, id) : NULL;
    if (worker && deployment_is_final(deployment->row.status) &&
        deployment->row.status != DEPLOYMENT_DEPLOYED)
        registration_forget(deployment->all->engine, env, worker);
}

/* ---- writing ---- */

static struct change change_of(const struct deployment *deployment, enum document_kind kind,
                               struct bytes *body, uint32_t expected)
{
    return (struct change){
        .kind = CHANGE_DOCUMENT,
        .env = deployment->env,
        .expected = expected,
        .document = { .kind = kind,
                      .env = deployment->env,
                      .name = bytes_create(slice_of(deployment->row.id)),
                      .body = body },
    };
}

/* Variables are stored with the row, and removed with the build. A row that is final from
 * the start has none. */
static bool writes_variables(const struct deployment *deployment)
{
    bool ends = deployment_is_final(deployment->next.status);
    return deployment->document ? deployment->variables_document && ends
                                : deployment->variables && !ends;
}

static struct vault *vault_of(const struct deployment *deployment)
{
    return accounts_vault(deployment->all->accounts);
}

static void on_written(struct document_write *write, enum err status);

static void write_changes(struct deployment *deployment)
{
    size_t count = 1;
    deployment->changes[0] =
        change_of(deployment, DOC_DEPLOYMENT, deployment_write(&deployment->next),
                  deployment->document);
    if (writes_variables(deployment))
        deployment->changes[count++] = change_of(
            deployment, DOC_BUILD_VARIABLES,
            deployment->document
                ? NULL
                : build_variables_seal(vault_of(deployment), slice_of(deployment->row.id),
                                       deployment->variables),
            deployment->variables_document);
    deployment->write = (struct document_write){ 0 };
    documents_write_begin(deployment->all->engine, deployment->changes, count,
                          &deployment->write, on_written);
}

static void end_command(struct deployment *deployment, enum err status)
{
    struct deployments *all = deployment->all;
    struct deployment_command *command =
        container_of(list_take(&deployment->commands), struct deployment_command, link);
    deployment->writing = false;
    if (!list_empty(&deployment->commands))
        loop_defer(all->loop, &deployment->turn);
    all->busy--;
    command->done(command, deployment, status);
}

void deployment_lose(struct deployment *deployment, const struct failure *why)
{
    deployment->lost = *why;
    while (!list_empty(&deployment->commands))
        end_command(deployment, why->code);
    notify_watchers(deployment);
    deployment_free(deployment);
}

void deployment_cancel_taking(struct deployment *deployment)
{
    if (deployment->taking)
        kept_taking_cancel(deployment->taking);
}

static void take_written(struct deployment *deployment)
{
    enum deployment_status before = deployment->row.status;
    if (!deployment->document && deployment->variables)
        deployment->variables_document = 1;
    build_variables_forget(&deployment->variables);
    deployment->document++;
    deployment_row_finish(&deployment->row);
    deployment->row = deployment->next;
    deployment->next = (struct deployment_row){ 0 };
    if (deployment_is_final(deployment->row.status)) {
        deployment_cancel_taking(deployment);
        forget_variables(deployment);
        list_remove(&deployment->active);
    }
    deployment->all->on_change(deployment, before);
    notify_watchers(deployment);
}

static void write_next(struct deployment *deployment);
static void fail_write(struct deployment *deployment, enum err status);

static void on_version(struct store_read *read, enum store_status status)
{
    struct deployment *deployment = container_of(read, struct deployment, load.read);
    bytes_unref(deployment->load.name);
    if (status == STORE_OK) {
        deployment->variables_document = deployment->load.document.version;
        document_finish(&deployment->load.document);
        write_next(deployment);
    } else if (status == STORE_MISSING) {
        deployment->variables_document = 0;
        write_next(deployment);
    } else {
        fail_write(deployment, err_of_store(status));
    }
}

static void ask_for_version(struct deployment *deployment)
{
    struct store *store = engine_store(deployment->all->engine);
    deployment->load =
        (struct store_load){ .read = { READ_LOAD, deployment->env, on_version },
                             .is_document = true,
                             .kind = DOC_BUILD_VARIABLES,
                             .name = bytes_create(slice_of(deployment->row.id)) };
    store->ops->read(store, &deployment->load.read);
}

static void on_written(struct document_write *write, enum err status)
{
    struct deployment *deployment = container_of(write, struct deployment, write);
    if (deployment->holds_vault)
        vault_release(vault_of(deployment));
    deployment->holds_vault = false;
    if (status == ERR_CONFLICT && deployment->document && writes_variables(deployment)) {
        ask_for_version(deployment);
    } else if (!status) {
        take_written(deployment);
        end_command(deployment, OK);
    } else {
        fail_write(deployment, status);
    }
}

static void fail_write(struct deployment *deployment, enum err status)
{
    struct failure why = { .code = status };
    deployment_row_finish(&deployment->next);
    if (deployment->document)
        end_command(deployment, status);
    else
        deployment_lose(deployment, &why);
}

static void on_rotated(struct vault_waiter *waiter)
{
    write_next(container_of(waiter, struct deployment, vault));
}

/* Writes what was decided. Sealing holds the vault until it is written. */
static void write_next(struct deployment *deployment)
{
    bool seals = !deployment->document && deployment->variables;
    enum vault_gate gate = seals ? vault_hold(vault_of(deployment)) : VAULT_HELD;
    deployment->holds_vault = seals && gate == VAULT_HELD;
    if (gate == VAULT_WAIT) {
        deployment->vault.fn = on_rotated;
        vault_wait(vault_of(deployment), &deployment->vault);
    } else if (gate == VAULT_SHUT) {
        fail_write(deployment, ERR_STORE);
    } else {
        write_changes(deployment);
    }
}

/* ---- deciding ---- */

static void on_turn(struct deferred *turn)
{
    struct deployment *deployment = container_of(turn, struct deployment, turn);
    if (deployment->writing || list_empty(&deployment->commands))
        return;
    struct deployment_command *command =
        container_of(deployment->commands.next, struct deployment_command, link);
    deployment->writing = true;
    deployment_row_copy(&deployment->next, &deployment->row);
    enum err refused = command->decide(command, deployment, &deployment->next);
    if (!refused && !command->nothing) {
        write_next(deployment);
        return;
    }
    deployment_row_finish(&deployment->next);
    end_command(deployment, refused);
}

void deployment_command_begin(struct deployment *deployment,
                              struct deployment_command *command)
{
    deployment->all->busy++;
    list_append(&deployment->commands, &command->link);
    loop_defer(deployment->all->loop, &deployment->turn);
}

void deployment_cancel_commands(struct deployment *deployment)
{
    struct list *first = deployment->commands.next;
    loop_cancel_deferred(&deployment->turn);
    while (!list_empty(&deployment->commands)) {
        struct list *link = deployment->writing ? first->next : deployment->commands.next;
        if (link == &deployment->commands)
            return;
        struct deployment_command *command =
            container_of(link, struct deployment_command, link);
        list_remove(link);
        deployment->all->busy--;
        command->done(command, deployment, ERR_CANCELED);
    }
}
