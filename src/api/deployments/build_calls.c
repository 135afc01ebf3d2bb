/* build_calls.c - the calls of builders while they build: dequeue and heartbeat.
 *
 *   dequeue, held ─► [{deployment, archive, buildEnvVars, key, …}]
 *   heartbeat ─► ok, or 409: the builder no longer has the deployment
 *
 * A deployment in an environment that the token does not serve is 404. A builder may send
 * the number of its attempt, to distinguish two builders with one token. */
#include "api/deployments/build_calls.h"
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/request/connection_limit.h"
#include "api/request/served.h"
#include "base/json/members.h"
#include "base/mem.h"
#include "base/vault/secret.h"

enum {
    LOG_PIECE_MAX = 64 * 1024,
};

static struct deployments *all_of(const struct api_call *call)
{
    return api_deployments(call->api);
}

struct deployment *build_find_served(struct api_call *call)
{
    struct account *account = NULL;
    while ((account = served_next(call->api, call->identity, account))) {
        struct deployment *found =
            deployments_find(all_of(call), account->number, call->params[0]);
        if (found) {
            api_enter_environment(call, account);
            return found;
        }
    }
    explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
    return NULL;
}

/* ---- dequeue ---- */

struct build_dequeuing {
    struct api_call *call;
    struct build_wait wait;
    struct seat seat;
    struct timer timer;
};

static void add_environment(struct buf *out, const struct account *account)
{
    const struct account *named = account->parent ? account->parent : account;
    members_add_name(out, "environment");
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(account->id));
    members_add_text(out, "type", slice_of(environment_type_name(account->type)));
    members_add_text(out, "slug", slice_of(environment_path_slug(named->type)));
    members_add_text(out, "branch", slice_of(account->branch));
    buf_add_text(out, "},\"project\":{");
    members_add_text(out, "id", slice_of(account->project->id));
    members_add_text(out, "ref", slice_of(account->project->ref));
    buf_add_text(out, "},\"organization\":{");
    members_add_text(out, "id", slice_of(account->project->organization->id));
    buf_add_char(out, '}');
}

static void add_build(struct buf *out, const struct api_call *call,
                      const struct deployment *deployment, const struct bytes *variables,
                      const char *key)
{
    const struct deployment_row *row = &deployment->row;
    struct buf url = { 0 };
    api_base_url(call, &url);
    buf_add_text(out, "{\"deployment\":{");
    members_add_text(out, "id", slice_of(row->id));
    members_add_text(out, "shortCode", slice_of(row->short_code));
    members_add_text(out, "version", slice_of(row->version));
    members_add_text(out, "contentHash", slice_of(row->content_hash));
    members_add_text(out, "runtime", bytes_slice(row->runtime));
    buf_add_char(out, '}');
    add_environment(out, accounts_by_number(deployment->all->accounts, deployment->env));
    members_add_name(out, "archive");
    buf_add_char(out, '{');
    members_add_number(out, "bytes", row->archive_bytes);
    members_add_text(out, "sha256", slice_of(row->archive_hash));
    buf_add_char(out, '}');
    members_add_json(out, "buildEnvVars", variables ? bytes_slice(variables) : SLICE("{}"));
    members_add_text(out, "key", slice_of(key));
    members_add_text(out, "apiUrl", buf_slice(&url));
    members_add_number(out, "deadlineMs", deployment->all->options.timeout_ms);
    members_add_number(out, "attempt", row->builds);
    buf_add_char(out, '}');
    buf_finish(&url);
}

/* A response with a build, until it is known whether the builder received it. */
struct build_handing {
    struct delivery delivery;
    struct deployments *all;
    uint32_t env;
    char id[ID_MAX];
    unsigned build;
};

/* Gives a build back whose response was lost. If that is unknown, the builder's silence
 * shows it. */
static void on_delivered(struct delivery *delivery, enum delivery_end end)
{
    struct build_handing *op = container_of(delivery, struct build_handing, delivery);
    struct deployment *deployment =
        end == DELIVERY_LOST && !op->all->stopped
            ? deployments_find(op->all, op->env, slice_of(op->id))
            : NULL;
    if (deployment && deployment->row.builds == op->build &&
        deployment_is_being_built(deployment->row.status))
        build_give_back(deployment);
    free(op);
}

static void follow(struct api_call *call, const struct deployment *deployment)
{
    struct build_handing *op = mem_new(struct build_handing);
    op->delivery.done = on_delivered;
    op->all = deployment->all;
    op->env = deployment->env;
    memcpy(op->id, deployment->row.id, sizeof(op->id));
    op->build = deployment->row.builds;
    if (!http_follow_reply(call->x, &op->delivery))
        on_delivered(&op->delivery, DELIVERY_LOST);
}

static void on_ready(struct build_wait *wait, struct deployment *deployment,
                     const char *key)
{
    struct build_dequeuing *op = container_of(wait, struct build_dequeuing, wait);
    struct api_call *call = op->call;
    struct buf out = { 0 };
    buf_add_char(&out, '[');
    if (deployment) {
        add_build(&out, call, deployment, wait->variables, key);
        follow(call, deployment);
    }
    buf_add_char(&out, ']');
    timers_clear(loop_timers(all_of(call)->loop), &op->timer);
    connection_limit_leave(&op->seat);
    call->state = NULL;
    call->on_gone = NULL;
    free(op);
    api_reply_json(call, 200, buf_slice(&out));
    secret_forget_buf(&out);
}

static void on_time(struct timer *timer)
{
    build_wait_cancel(&container_of(timer, struct build_dequeuing, timer)->wait);
}

/* Cancels the wait: the builder has left, or the gateway drains. */
static void stop_waiting(struct api_call *call)
{
    struct build_dequeuing *op = call->state;
    call->on_gone = NULL;
    timers_clear(loop_timers(all_of(call)->loop), &op->timer);
    build_wait_cancel(&op->wait);
}

static bool read_machine(const json_t *body, const char *member, char text[MACHINE_TEXT])
{
    const char *value = json_string_value(json_object_get(body, member));
    snprintf(text, MACHINE_TEXT, "%s", value ? value : "");
    return value && strlen(value) < MACHINE_TEXT;
}

static enum err read_builder(struct api_call *call, struct build_wait *wait)
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    bool is_whole = read_machine(body, "architecture", wait->architecture) &&
                    read_machine(body, "libc", wait->libc);
    json_decref(body);
    return is_whole ? OK
                    : explain(&call->why, ERR_INVALID,
                              "architecture and libc: must be short strings");
}

enum err build_dequeue(struct api_call *call)
{
    struct deployments *all = all_of(call);
    struct account *first = served_next(call->api, call->identity, NULL);
    struct build_dequeuing *op = mem_new(struct build_dequeuing);
    enum err refused = read_builder(call, &op->wait);
    if (!refused && first)
        refused = connection_limit_take(&op->seat, call->api, served_runs(call->api, first),
                                        &call->why);
    if (refused) {
        free(op);
        return refused;
    }
    op->call = call;
    op->wait.secret = call->identity->secret;
    op->wait.ready = on_ready;
    call->busy = true;
    call->state = op;
    call->on_gone = stop_waiting;
    api_hold(call, stop_waiting);
    loop_set_timer(all->loop, &op->timer, timers_kind(loop_timers(all->loop), on_time),
                   api_options(call->api)->dequeue_wait_ms);
    build_wait_begin(all, &op->wait);
    return OK;
}

/* ---- heartbeat ---- */

struct build_step {
    struct api_call *call;
    struct deployment_command command;
    enum deployment_status step;
};

enum err build_check_hands(struct api_call *call, const struct deployment *deployment,
                           int64_t attempt)
{
    const struct build *build = deployment->build;
    if (build && !build->wait && build->secret == call->identity->secret &&
        deployment_is_being_built(deployment->row.status) &&
        (!attempt || attempt == deployment->row.builds))
        return OK;
    return explain(&call->why, ERR_CONFLICT,
                   "The deployment is %s and assigned to another worker",
                   deployment_status_name(deployment->row.status));
}

static enum err decide_step(struct deployment_command *command,
                            const struct deployment *deployment,
                            struct deployment_row *next)
{
    const struct build_step *op = container_of(command, struct build_step, command);
    if (!deployment->build)
        return explain(&command->why, ERR_CONFLICT, "The deployment is %s",
                       deployment_status_name(deployment->row.status));
    command->nothing = deployment->row.status >= op->step;
    if (!command->nothing)
        next->status = op->step;
    return OK;
}

static void on_stepped(struct deployment_command *command, struct deployment *deployment,
                       enum err status)
{
    struct build_step *op = container_of(command, struct build_step, command);
    struct api_call *call = op->call;
    (void)deployment;
    call->why = command->why;
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_json(call, 200, SLICE("{\"ok\":true}"));
}

static enum err take_step(struct api_call *call, struct deployment *deployment,
                          enum deployment_status step)
{
    struct build_step *op = mem_new(struct build_step);
    op->call = call;
    op->step = step;
    op->command.decide = decide_step;
    op->command.done = on_stepped;
    call->busy = true;
    deployment_command_begin(deployment, &op->command);
    return OK;
}

static enum err read_beat(struct api_call *call, struct slice body,
                          enum deployment_status *step, struct bytes **log)
{
    struct bytes *name = members_text(body, "step");
    bool right =
        !name || (deployment_status_find(bytes_slice(name), step) &&
                  (*step == DEPLOYMENT_INSTALLING || *step == DEPLOYMENT_BUILDING));
    bytes_unref(name);
    if (!right)
        return explain(&call->why, ERR_INVALID,
                       "step: must be \"INSTALLING\" or \"BUILDING\"");
    *log = members_text(body, "log");
    if (*log && (*log)->len > LOG_PIECE_MAX) {
        bytes_clear(log);
        return explain(&call->why, ERR_INVALID, "log: must have at most %d bytes",
                       LOG_PIECE_MAX);
    }
    return OK;
}

enum err build_heartbeat(struct api_call *call)
{
    struct deployment *deployment = build_find_served(call);
    enum deployment_status step = DEPLOYMENT_INSTALLING;
    struct bytes *log = NULL;
    struct slice body;
    int64_t attempt = 0;
    if (!deployment)
        return ERR_NOT_FOUND;
    enum err refused = api_read_object(call, &body);
    if (refused)
        return refused;
    members_number(body, "attempt", &attempt);
    refused = build_check_hands(call, deployment, attempt);
    refused = refused ? refused : read_beat(call, body, &step, &log);
    if (refused)
        return refused;
    if (log)
        build_log_add(&deployment->build->log, &deployment->build->filter,
                      bytes_slice(log));
    bytes_unref(log);
    build_touch(deployment);
    if (deployment->row.status < step)
        return take_step(call, deployment, step);
    api_reply_json(call, 200, SLICE("{\"ok\":true}"));
    return OK;
}
