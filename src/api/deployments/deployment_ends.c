/* deployment_ends.c - the calls that fail, cancel, finalize or promote a deployment.
 *
 * Changes are commands on the row, so that the second of two concurrent changes sees the
 * first. A final deployment stays as it is. */
#include "api/deployments/build_calls.h"
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/deployments/deployment_show.h"
#include "api/registration/promotion.h"
#include "api/request/request_log.h"
#include "base/log.h"
#include "base/mem.h"

enum { REASON_MAX = 200 };

/* ---- shared ---- */

struct deployment *deployment_of_call(struct api_call *call)
{
    struct deployment *deployment = deployments_find(
        api_deployments(call->api), call->account->number, call->params[0]);
    if (!deployment)
        explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
    return deployment;
}

struct ending {
    struct api_call *call;
    struct deployment_command command;
    enum deployment_status status;
    struct bytes *error, *reason;
};

static void deployment_ending_finish(struct ending *op, enum err status, int ok,
                                     struct slice body)
{
    struct api_call *call = op->call;
    call->why = op->command.why;
    bytes_unref(op->error);
    bytes_unref(op->reason);
    free(op);
    if (status)
        api_reply_error(call, status);
    else if (body.len)
        api_reply_json(call, ok, body);
    else
        api_reply_empty(call, ok);
}

static void deployment_ending_begin(struct api_call *call, struct deployment *deployment,
                                    struct ending *op,
                                    void (*done)(struct deployment_command *command,
                                                 struct deployment *deployment,
                                                 enum err status))
{
    op->call = call;
    op->command.done = done;
    call->busy = true;
    deployment_command_begin(deployment, &op->command);
}

static enum err refuse_state(struct deployment_command *command,
                             const struct deployment *deployment)
{
    return explain(&command->why, ERR_CONFLICT, "The deployment is %s",
                   deployment_status_name(deployment->row.status));
}

static void audit(const struct api_call *call, const char *action,
                  const struct deployment *deployment)
{
    char actor[ACTOR_TEXT];
    request_log_actor(call, actor);
    log_audit(action, "by", actor, "environment", call->account->id, "deployment",
              deployment->row.id, "version", deployment->row.version, NULL);
}

/* ---- fail ---- */

/* A final deployment does not change, and that is not an error. */
static enum err decide_fail(struct deployment_command *command,
                            const struct deployment *deployment,
                            struct deployment_row *next)
{
    struct ending *op = container_of(command, struct ending, command);
    command->nothing = deployment_is_final(deployment->row.status);
    if (!command->nothing)
        deployment_row_end(next, DEPLOYMENT_FAILED, bytes_ref(op->error), NULL,
                           loop_wall_ms(deployment->all->loop));
    return OK;
}

static void on_failed(struct deployment_command *command, struct deployment *deployment,
                      enum err status)
{
    struct buf out = { 0 };
    buf_print(&out, "{\"id\":\"%s\"}", deployment->row.id);
    deployment_ending_finish(container_of(command, struct ending, command), status, 200,
                             buf_slice(&out));
    buf_finish(&out);
}

static struct bytes *filtered(const struct deployment *deployment, const json_t *error,
                              const char *member)
{
    const json_t *value = json_object_get(error, member);
    struct slice text = { json_string_value(value), json_string_length(value) };
    struct buf out = { 0 };
    if (!text.ptr)
        return NULL;
    if (deployment->build && !deployment->build->wait)
        secret_filter_apply(&deployment->build->filter, text, &out);
    else
        buf_add(&out, text);
    struct bytes *bytes = buf_to_bytes(&out);
    buf_finish(&out);
    return bytes;
}

struct bytes *build_error_read(const struct deployment *deployment, const json_t *error)
{
    struct bytes *name = filtered(deployment, error, "name");
    struct bytes *message = filtered(deployment, error, "message");
    struct bytes *stack = filtered(deployment, error, "stack");
    struct bytes *stderr_text = filtered(deployment, error, "stderr");
    struct deployment_error read = { .name = bytes_slice(name),
                                     .message = bytes_slice(message),
                                     .stack = bytes_slice(stack),
                                     .stderr_text = bytes_slice(stderr_text) };
    struct bytes *bytes = NULL;
    if (name && message)
        bytes = deployment_error_write(&read);
    bytes_unref(name);
    bytes_unref(message);
    bytes_unref(stack);
    bytes_unref(stderr_text);
    return bytes;
}

enum err deployment_fail(struct api_call *call)
{
    struct deployment *deployment = deployment_of_call(call);
    bool is_build = call->identity->kind == CREDENTIAL_BUILD_KEY;
    json_t *body;
    if (!deployment || (is_build && strcmp(call->identity->build, deployment->row.id) != 0))
        return explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
    if (api_read_json(call, &body))
        return ERR_INVALID;
    struct bytes *error = build_error_read(deployment, json_object_get(body, "error"));
    json_decref(body);
    if (!error)
        return explain(&call->why, ERR_INVALID,
                       "error: must be an object with a name and a message");
    struct ending *op = mem_new(struct ending);
    op->error = error;
    op->command.decide = decide_fail;
    deployment_ending_begin(call, deployment, op, on_failed);
    return OK;
}

/* ---- cancel ---- */

static enum err decide_cancel(struct deployment_command *command,
                              const struct deployment *deployment,
                              struct deployment_row *next)
{
    struct ending *op = container_of(command, struct ending, command);
    if (deployment_is_final(deployment->row.status))
        return refuse_state(command, deployment);
    deployment_row_end(next, DEPLOYMENT_CANCELED, NULL, bytes_ref(op->reason),
                       loop_wall_ms(deployment->all->loop));
    return OK;
}

static void on_ended(struct deployment_command *command, struct deployment *deployment,
                     enum err status)
{
    (void)deployment;
    deployment_ending_finish(container_of(command, struct ending, command), status, 204,
                             (struct slice){ 0 });
}

static enum err read_reason(struct api_call *call, struct bytes **reason)
{
    json_t *body;
    if (!slice_trim(call->x->body).len)
        return OK;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    const json_t *value = json_object_get(body, "reason");
    struct slice text = { json_string_value(value), json_string_length(value) };
    bool wrong = value && (!json_is_string(value) || text_utf16_length(text) > REASON_MAX);
    *reason = wrong || !text.len ? NULL : bytes_create(text);
    json_decref(body);
    return wrong ? explain(&call->why, ERR_INVALID,
                           "reason: must be a string of at most %d characters", REASON_MAX)
                 : OK;
}

enum err deployment_cancel(struct api_call *call)
{
    struct deployment *deployment = deployment_of_call(call);
    struct bytes *reason = NULL;
    if (!deployment)
        return ERR_NOT_FOUND;
    if (read_reason(call, &reason))
        return ERR_INVALID;
    struct ending *op = mem_new(struct ending);
    op->reason = reason;
    op->command.decide = decide_cancel;
    audit(call, "deployment cancel", deployment);
    deployment_ending_begin(call, deployment, op, on_ended);
    return OK;
}

/* ---- progress ---- */

/* Refuses: the gateway's own builder reports its progress. */
static enum err decide_progress(struct deployment_command *command,
                                const struct deployment *deployment,
                                struct deployment_row *next)
{
    (void)next;
    return explain(&command->why, ERR_CONFLICT,
                   "The deployment is %s; this gateway's builder builds it and reports the "
                   "progress itself",
                   deployment_status_name(deployment->row.status));
}

enum err deployment_progress(struct api_call *call)
{
    struct deployment *deployment = deployment_of_call(call);
    json_t *body;
    if (!deployment)
        return ERR_NOT_FOUND;
    if (slice_trim(call->x->body).len) {
        if (api_read_json(call, &body))
            return ERR_INVALID;
        json_decref(body);
    }
    struct ending *op = mem_new(struct ending);
    op->command.decide = decide_progress;
    deployment_ending_begin(call, deployment, op, on_ended);
    return OK;
}

/* ---- finalize ---- */

enum err deployment_finalize(struct api_call *call)
{
    if (!deployment_of_call(call))
        return ERR_NOT_FOUND;
    return explain(&call->why, ERR_INVALID,
                   "This gateway builds and finalizes deployments itself; deploy without "
                   "--local-build and --depot-build");
}

/* ---- promote ---- */

struct promoting_call {
    struct api_call *call;
    struct deployment *deployment;
    struct deployment_watcher watcher; /* keeps the deployment in memory */
    struct promotion promotion;
};

static void on_promoted(struct promotion *promotion, enum err status)
{
    struct promoting_call *op = container_of(promotion, struct promoting_call, promotion);
    struct api_call *call = op->call;
    struct buf out = { 0 };
    if (promotion->outcome == PROMOTION_OLDER && !status)
        status = explain(
            &call->why, ERR_INVALID,
            "Version %s is older than the current one; promote it with allowRollbacks=true",
            op->deployment->row.version);
    else if (promotion->outcome == PROMOTION_WAS_CURRENT && !status)
        status = explain(&call->why, ERR_INVALID, "Version %s is already the current one",
                         op->deployment->row.version);
    else if (status == ERR_NOT_FOUND)
        status = explain(&call->why, ERR_INVALID, "Version %s is no longer kept",
                         op->deployment->row.version);
    else if (promotion->why.code)
        call->why = promotion->why;
    show_promoted(op->deployment, &out);
    list_remove(&op->watcher.link);
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static void stay(struct deployment_watcher *watcher, struct deployment *deployment)
{
    (void)watcher;
    (void)deployment;
}

static enum err check_promotable(struct api_call *call, const struct deployment *deployment)
{
    if (!deployment)
        return explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
    if (deployment->row.status != DEPLOYMENT_DEPLOYED)
        return explain(&call->why, ERR_INVALID,
                       "Version %s is %s: only DEPLOYED versions can be promoted",
                       deployment->row.version,
                       deployment_status_name(deployment->row.status));
    if (!deployment->row.archive_bytes)
        return explain(&call->why, ERR_INVALID, "Version %s is no longer kept",
                       deployment->row.version);
    return OK;
}

enum err deployment_promote(struct api_call *call)
{
    struct deployment *deployment = deployments_by_version(
        api_deployments(call->api), call->account->number, call->params[0]);
    enum err refused = check_promotable(call, deployment);
    if (refused)
        return refused;
    struct slice rollbacks = api_query(call, "allowRollbacks");
    struct promoting_call *op = mem_new(struct promoting_call);
    op->call = call;
    op->deployment = deployment;
    op->watcher.changed = stay;
    deployment_watch(deployment, &op->watcher);
    op->promotion.rule = slice_is(rollbacks, "true") || slice_is(rollbacks, "1")
                             ? PROMOTION_ANY
                             : PROMOTION_NEWER;
    call->busy = true;
    audit(call, "deployment promote", deployment);
    promotion_begin(&op->promotion, call->api, call->account,
                    slice_of(deployment->row.version), on_promoted);
    return OK;
}
