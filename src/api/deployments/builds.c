/* builds.c - assigns deployments to builders.
 *
 * The assignment is written first. So a builder that gets a response has the deployment,
 * and one that gets none has nothing. */
#include "api/deployments/builds.h"

#include <string.h>

#include "accounts/auth/auth.h"
#include "accounts/variables.h"
#include "api/artifacts/kept_files.h"
#include "api/deployments/build_variables.h"
#include "api/deployments/deployment_due.h"
#include "api/request/call.h"
#include "base/mem.h"
#include "base/vault/secret.h"

enum { KEY_RANDOM_LEN = 24, LOG_SLACK = BUILD_LOG_MAX / 4 };

static const char *const prefixes[ENVIRONMENT_TYPES] = {
    [ENVIRONMENT_DEV] = "tr_dev_",
    [ENVIRONMENT_STAGING] = "tr_stg_",
    [ENVIRONMENT_PROD] = "tr_prod_",
    [ENVIRONMENT_PREVIEW] = "tr_preview_",
};

/* ---- the log of a build ---- */

struct slice build_log_text(const struct build_log *log)
{
    struct slice text = buf_slice(&log->text);
    if (text.len <= BUILD_LOG_MAX)
        return text;
    text = slice_from(text, text.len - BUILD_LOG_MAX);
    const char *line = memchr(text.ptr, '\n', text.len);
    return line ? slice_from(text, (size_t)(line - text.ptr) + 1) : text;
}

static void cut_log(struct build_log *log)
{
    buf_drop(&log->text, log->text.len - build_log_text(log).len);
}

void build_log_add(struct build_log *log, const struct secret_filter *filter,
                   struct slice piece)
{
    secret_scan_add(&log->scan, filter, piece, &log->text);
    if (log->text.len > BUILD_LOG_MAX + LOG_SLACK) /* not after each piece */
        cut_log(log);
}

void build_log_end(struct build_log *log)
{
    secret_scan_end(&log->scan, &log->text);
    cut_log(log);
}

void build_log_finish(struct build_log *log)
{
    buf_finish(&log->text);
}

/* ---- builders ---- */

static struct builder *builder_of(struct deployments *all, const struct secret *secret)
{
    list_each (link, &all->builders) {
        struct builder *builder = container_of(link, struct builder, link);
        if (builder->secret == secret)
            return builder;
    }
    struct builder *builder = mem_new(struct builder);
    builder->secret = secret;
    list_append(&all->builders, &builder->link);
    return builder;
}

void builds_forget_builders(struct deployments *all)
{
    while (!list_empty(&all->builders))
        free(container_of(list_take(&all->builders), struct builder, link));
}

static bool is_there(const struct deployments *all, const struct builder *builder)
{
    return secret_is_valid(builder->secret, loop_wall_ms(all->loop)) &&
           (builder->waiting ||
            loop_now_ms(all->loop) - builder->last_request_ms < BUILDER_LOST_MS);
}

static const struct builder *builder_for(const struct deployments *all,
                                         const struct account *account)
{
    list_each (link, &all->builders) {
        const struct builder *builder = container_of(link, struct builder, link);
        if (is_there(all, builder) && secret_serves(builder->secret, account))
            return builder;
    }
    return NULL;
}

/* A builder that is silent for less than BUILDER_LOST_MS is not lost. So if one has built
 * before, it is expected for that long after a start. */
static bool is_expected(const struct deployments *all, const struct account *account)
{
    const struct deployment_set *set = slots_get(&all->sets, account->number);
    return set && !list_empty(&set->all) &&
           loop_now_ms(all->loop) - all->created_ms < BUILDER_LOST_MS;
}

bool builds_are_served(const struct deployments *all, const struct account *account)
{
    return builder_for(all, account) || is_expected(all, account);
}

const char *builds_platform(const struct deployments *all, const struct account *account)
{
    const struct builder *builder = builder_for(all, account);
    bool is_arm = builder && !strcmp(builder->architecture, "arm64");
    return is_arm ? "linux/arm64" : "linux/amd64";
}

int64_t builds_expected_in_ms(const struct deployments *all)
{
    int64_t left = all->started_ms + BUILDER_FIRST_MS - loop_now_ms(all->loop);
    return all->options.executes && all->started && left > 0 ? left : 0;
}

void builder_watch_begin(struct deployments *all, struct builder_watch *watch)
{
    list_append(&all->awaited, &watch->link);
}

static void end_awaited(struct deployments *all)
{
    list_each (link, &all->awaited) {
        struct builder_watch *watch = container_of(link, struct builder_watch, link);
        if (builder_for(all, watch->account)) {
            list_remove(link);
            watch->arrived(watch);
        }
    }
}

/* ---- pending deployments ---- */

static const struct account *account_of(const struct deployment *deployment)
{
    return accounts_by_number(deployment->all->accounts, deployment->env);
}

static struct build_turns *turns_of(const struct deployment *deployment)
{
    const struct deployment_set *set = slots_get(&deployment->all->sets, deployment->env);
    return set->turns;
}

/* Marks the projects that have a build in progress. Returns the mark. */
static uint64_t mark_busy(struct deployments *all)
{
    uint64_t mark = ++all->build_marks;
    list_each (link, &all->active) {
        const struct deployment *deployment = container_of(link, struct deployment, active);
        if (deployment->handing || deployment_is_being_built(deployment->row.status))
            turns_of(deployment)->busy = mark;
    }
    return mark;
}

static bool may_be_built(const struct deployment *deployment, uint64_t busy)
{
    return deployment->document && !deployment->handing &&
           deployment->row.status == DEPLOYMENT_PENDING &&
           turns_of(deployment)->busy != busy;
}

/* Returns the oldest deployment of the project whose turn it is. */
static struct deployment *next_for(struct deployments *all, const struct build_wait *wait)
{
    struct deployment *next = NULL;
    uint64_t busy = mark_busy(all);
    list_each (link, &all->active) {
        struct deployment *deployment = container_of(link, struct deployment, active);
        if (may_be_built(deployment, busy) &&
            (!next || turns_of(deployment)->last < turns_of(next)->last) &&
            secret_serves(wait->secret, account_of(deployment)))
            next = deployment;
    }
    return next;
}

/* ---- handing out ---- */

static void add_secrets(struct secret_filter *filter, const struct deployment *deployment,
                        const struct bytes *variables)
{
    struct variable_walk walk = { 0 };
    const struct variable *variable;
    while ((variable = variables_next(account_of(deployment), &walk)))
        if (variable->is_secret)
            secret_filter_add(filter, variable->value);
    if (variables)
        secret_filter_add_all(filter, bytes_slice(variables));
}

static void on_prepare(struct deferred *turn);

static void begin_build(struct deployment *deployment, struct build_wait *wait)
{
    struct deployments *all = deployment->all;
    struct account *account = accounts_by_number(all->accounts, deployment->env);
    struct build *build = mem_new(struct build);
    char random[KEY_RANDOM_LEN + 1] = "";
    text_random(random, KEY_RANDOM_LEN,
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    snprintf(wait->key, BUILD_KEY_MAX, "%s%s", prefixes[account->type], random);
    secret_wipe(random, sizeof(random));
    vault_hash(slice_of(wait->key), build->hash);
    auth_admit_build(api_auth(all->api), build->hash, account, deployment->row.id);
    build->secret = wait->secret;
    build->last_request_ms = loop_now_ms(all->loop);
    build->deadline_ms = build->last_request_ms + all->options.timeout_ms;
    add_secrets(&build->filter, deployment, wait->variables);
    build->wait = wait;
    deployment->build = build;
    wait->turn.fn = on_prepare;
    loop_defer(all->loop, &wait->turn);
}

static enum err decide_hand_out(struct deployment_command *command,
                                const struct deployment *deployment,
                                struct deployment_row *next)
{
    struct build_wait *wait = container_of(command, struct build_wait, command);
    if (deployment->row.status != DEPLOYMENT_PENDING)
        return explain(&command->why, ERR_CONFLICT, "it is no longer pending");
    next->status = DEPLOYMENT_INSTALLING;
    next->builds++;
    next->started_at = loop_wall_ms(deployment->all->loop);
    memcpy(next->architecture, wait->architecture, sizeof(next->architecture));
    memcpy(next->libc, wait->libc, sizeof(next->libc));
    return OK;
}

static void end_wait(struct build_wait *wait, struct deployment *deployment)
{
    struct builder *builder = builder_of(wait->all, wait->secret);
    struct bytes *variables = wait->variables;
    char key[BUILD_KEY_MAX];
    builder->waiting--;
    builder->last_request_ms = loop_now_ms(wait->all->loop);
    memcpy(key, wait->key, sizeof(key));
    secret_wipe(wait->key, sizeof(wait->key));
    wait->ready(wait, deployment, key);
    secret_wipe(key, sizeof(key));
    build_variables_forget(&variables);
}

static void on_prepare(struct deferred *turn)
{
    struct build_wait *wait = container_of(turn, struct build_wait, turn);
    struct deployment *deployment = wait->deployment;
    struct timeslice timeslice = loop_timeslice(wait->all->loop);
    if (!secret_filter_prepare(&deployment->build->filter, &timeslice)) {
        loop_defer(wait->all->loop, turn);
        return;
    }
    deployment->build->wait = NULL;
    build_touch(deployment);
    end_wait(wait, deployment);
}

/* Takes the deployment back from a builder, which then waits for another one unless its
 * wait was canceled. */
static void let_go(struct build_wait *wait)
{
    wait->deployment->handing = false;
    wait->deployment = NULL;
    build_variables_forget(&wait->variables);
    if (wait->canceled || wait->all->stopped) {
        end_wait(wait, NULL);
        return;
    }
    list_append(&wait->all->lines, &wait->link);
}

static void on_handed_out(struct deployment_command *command, struct deployment *deployment,
                          enum err status)
{
    struct build_wait *wait = container_of(command, struct build_wait, command);
    struct deployments *all = wait->all;
    if (status || all->stopped) {
        let_go(wait);
        builds_match(all);
        return;
    }
    deployment->handing = false;
    begin_build(deployment, wait);
    deployment_set_timer(deployment);
}

static void write_hand_out(struct build_wait *wait)
{
    wait->command =
        (struct deployment_command){ .decide = decide_hand_out, .done = on_handed_out };
    deployment_command_begin(wait->deployment, &wait->command);
}

/* Fails a deployment that cannot be built. */
static void fail_unreadable(struct deployment *deployment, const struct failure *why)
{
    struct deployment_error error = { .name = SLICE("BuildError"),
                                      .message = slice_of(why->text) };
    deployment_end(deployment, DEPLOYMENT_FAILED, deployment_error_write(&error), NULL);
}

static void on_variables(struct store_read *read, enum store_status status)
{
    struct build_wait *wait = container_of(read, struct build_wait, load.read);
    struct deployments *all = wait->all;
    struct deployment *deployment = wait->deployment;
    struct failure why = { 0 };
    enum err err = err_of_store(status);
    all->busy--;
    bytes_unref(wait->load.name);
    if (!err)
        err = build_variables_unseal(
            accounts_vault(all->accounts), slice_of(deployment->row.id),
            bytes_slice(wait->load.document.body), &wait->variables, &why);
    if (status == STORE_OK)
        document_finish(&wait->load.document);
    if (!err && !all->stopped) {
        write_hand_out(wait);
        return;
    }
    if (status == STORE_OK && err)
        fail_unreadable(deployment, &why);
    bool has_ended = deployment_is_final(deployment->row.status);
    let_go(wait); /* a store that fails is not read again at once */
    if (has_ended)
        builds_match(all);
}

static void load_variables(struct build_wait *wait)
{
    struct store *store = engine_store(wait->all->engine);
    wait->load =
        (struct store_load){ .read = { READ_LOAD, wait->deployment->env, on_variables },
                             .is_document = true,
                             .kind = DOC_BUILD_VARIABLES,
                             .name = bytes_create(slice_of(wait->deployment->row.id)) };
    wait->all->busy++;
    store->ops->read(store, &wait->load.read);
}

static void hand_out(struct build_wait *wait, struct deployment *deployment)
{
    list_remove(&wait->link);
    deployment->handing = true;
    wait->deployment = deployment;
    turns_of(deployment)->last = ++wait->all->build_turns;
    if (deployment->variables_document)
        load_variables(wait);
    else
        write_hand_out(wait);
}

void builds_match(struct deployments *all)
{
    if (all->stopped || !all->started || engine_draining(all->engine))
        return;
    list_each (link, &all->lines) {
        struct build_wait *wait = container_of(link, struct build_wait, link);
        struct deployment *deployment = next_for(all, wait);
        if (deployment)
            hand_out(wait, deployment);
    }
}

void build_wait_begin(struct deployments *all, struct build_wait *wait)
{
    struct builder *builder = builder_of(all, wait->secret);
    builder->waiting++;
    builder->last_request_ms = loop_now_ms(all->loop);
    memcpy(builder->architecture, wait->architecture, sizeof(builder->architecture));
    memcpy(builder->libc, wait->libc, sizeof(builder->libc));
    wait->all = all;
    list_append(&all->lines, &wait->link);
    end_awaited(all);
    builds_match(all);
}

void build_wait_cancel(struct build_wait *wait)
{
    wait->canceled = true;
    if (list_empty(&wait->link))
        return; /* a deployment is being handed to it */
    list_remove(&wait->link);
    end_wait(wait, NULL);
}

/* ---- giving back ---- */

struct build_return {
    struct deployment_command command;
    unsigned build; /* the one that is given back */
};

static enum err decide_return(struct deployment_command *command,
                              const struct deployment *deployment,
                              struct deployment_row *next)
{
    const struct build_return *op = container_of(command, struct build_return, command);
    if (!deployment_is_being_built(deployment->row.status) ||
        deployment->row.builds != op->build)
        return ERR_CONFLICT;
    next->status = DEPLOYMENT_PENDING;
    next->builds--;
    return OK;
}

/* If this could not be written, the builder's silence reveals it. */
static void on_returned(struct deployment_command *command, struct deployment *deployment,
                        enum err status)
{
    (void)deployment;
    (void)status;
    free(container_of(command, struct build_return, command));
}

void build_give_back(struct deployment *deployment)
{
    struct build_return *op = mem_new(struct build_return);
    op->command.decide = decide_return;
    op->command.done = on_returned;
    op->build = deployment->row.builds;
    deployment_command_begin(deployment, &op->command);
}

/* ---- a build ---- */

void build_touch(struct deployment *deployment)
{
    struct build *build = deployment->build;
    int64_t now = loop_now_ms(deployment->all->loop);
    build->last_request_ms = now;
    builder_of(deployment->all, build->secret)->last_request_ms = now;
    deployment_set_timer(deployment);
}

void build_end(struct deployment *deployment)
{
    struct deployments *all = deployment->all;
    struct build *build = deployment->build;
    if (!build)
        return;
    deployment->build = NULL;
    auth_dismiss_build(api_auth(all->api), build->hash);
    if (build->wait) {
        loop_cancel_deferred(&build->wait->turn);
        end_wait(build->wait, NULL);
    }
    build_log_end(&build->log);
    if (build->log.text.len && !all->stopped) {
        struct bytes *text = buf_take(&build->log.text);
        kept_files_write(all->files,
                         kept_file_name(deployment->env, deployment->row.id, ".log"), text);
        bytes_unref(text);
    }
    build_log_finish(&build->log);
    secret_filter_finish(&build->filter);
    free(build);
}
