/* deployment_register.c - the call by which the index of a bundle registers its version.
 *
 *   body, read while it arrives ─► the worker, written with the deployment's version
 *                                   ├─► DEPLOYING
 *                                   └─► refused (an invalid cron): FAILED
 *
 * The version is known but not current: schedules, limits and waiting runs change when it
 * is promoted. Only the build itself may call this, with the key it was given. */
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/deployments/deployment_show.h"
#include "api/registration/registering.h"
#include "base/json/members.h"
#include "base/mem.h"

struct linking {
    struct api_call *call;
    struct deployment_command command;
    struct registered made;
    struct failure refused; /* of the registration; its code is OK if there was none */
};

enum err deployment_register_piece(struct api_call *call, struct slice piece)
{
    return registering_take(call, piece);
}

static void reply_made(struct api_call *call, const struct registered *made)
{
    struct buf out = { 0 };
    buf_add_char(&out, '{');
    members_add_text(&out, "id", slice_of(made->id));
    members_add_text(&out, "version", slice_of(made->version));
    members_add_text(&out, "contentHash", slice_of(made->content_hash));
    buf_add_char(&out, '}');
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

/* ---- the row ---- */

static enum err decide_link(struct deployment_command *command,
                            const struct deployment *deployment,
                            struct deployment_row *next)
{
    struct linking *op = container_of(command, struct linking, command);
    enum deployment_status now = deployment->row.status;
    if (now == DEPLOYMENT_DEPLOYING || (op->refused.code && deployment_is_final(now))) {
        command->nothing = true;
        return OK;
    }
    if (!deployment_is_being_built(now))
        return explain(&command->why, ERR_CONFLICT, "The deployment is %s",
                       deployment_status_name(now));
    if (!op->refused.code) {
        next->status = DEPLOYMENT_DEPLOYING;
        return OK;
    }
    const struct bytes *full = op->call->why_full;
    struct deployment_error error = { .name = SLICE("RegistrationError"),
                                      .message = full ? bytes_slice(full)
                                                      : slice_of(op->refused.text) };
    deployment_row_end(next, DEPLOYMENT_FAILED, deployment_error_write(&error), NULL,
                       loop_wall_ms(deployment->all->loop));
    return OK;
}

static void on_linked(struct deployment_command *command, struct deployment *deployment,
                      enum err status)
{
    struct linking *op = container_of(command, struct linking, command);
    struct api_call *call = op->call;
    struct registered made = op->made;
    if (status)
        deployment_forget_worker(deployment); /* it ended while its worker was written */
    if (op->refused.code) {
        call->why = op->refused;
        status = op->refused.code;
    } else {
        call->why = command->why;
    }
    free(op);
    if (status)
        api_reply_error(call, status);
    else
        reply_made(call, &made);
}

/* Returns true if the body is the reason. After any other refusal, another attempt may
 * succeed. */
static bool is_final_refusal(enum err status)
{
    return status == ERR_INVALID || status == ERR_RULE || status == ERR_TOO_LARGE;
}

static void link_worker(struct api_call *call, const struct registered *made,
                        const struct failure *refused)
{
    struct deployment *deployment = deployments_find(
        api_deployments(call->api), call->account->number, slice_of(call->identity->build));
    if (!deployment) {
        api_reply_error(call, explain(&call->why, ERR_NOT_FOUND, "Deployment not found"));
        return;
    }
    struct linking *op = mem_new(struct linking);
    op->call = call;
    if (made)
        op->made = *made;
    if (refused)
        op->refused = *refused;
    op->command.decide = decide_link;
    op->command.done = on_linked;
    call->busy = true;
    deployment_command_begin(deployment, &op->command);
}

static void on_registered(struct api_call *call, const struct registered *made,
                          enum err status)
{
    struct failure why = call->why;
    if (!status || is_final_refusal(status))
        link_worker(call, made, status ? &why : NULL);
    else
        api_reply_error(call, status);
}

/* ---- the call ---- */

static void name_deployment(const struct deployment_row *row,
                            struct registering_deployment *named)
{
    *named = (struct registering_deployment){ 0 };
    memcpy(named->id, row->id, sizeof(named->id));
    memcpy(named->version, row->version, sizeof(named->version));
    snprintf(named->short_code, sizeof(named->short_code), "%s", row->short_code);
    snprintf(named->external_id, sizeof(named->external_id), "%.*s",
             SLICE_ARG(bytes_slice(row->external_id)));
    memcpy(named->archive_hash, row->archive_hash, sizeof(named->archive_hash));
    snprintf(named->runtime, sizeof(named->runtime), "%.*s",
             SLICE_ARG(bytes_slice(row->runtime)));
}

static enum err check(struct api_call *call, const struct deployment *deployment)
{
    if (!deployment)
        return ERR_NOT_FOUND;
    if (call->identity->kind != CREDENTIAL_BUILD_KEY)
        return explain(&call->why, ERR_FORBIDDEN,
                       "Only the build of a deployment registers its version");
    if (strcmp(call->identity->build, deployment->row.id) != 0)
        return explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
    return OK;
}

/* Answers a second attempt with the first one's result. Returns false if there was none. */
static bool reply_linked(struct api_call *call, const struct deployment *deployment)
{
    const struct worker *worker = show_worker_of(deployment);
    struct registered made = { 0 };
    if (!worker || deployment->row.status != DEPLOYMENT_DEPLOYING)
        return false;
    memcpy(made.id, worker->id, sizeof(made.id));
    memcpy(made.version, worker->version, sizeof(made.version));
    memcpy(made.content_hash, worker->content_hash, sizeof(made.content_hash));
    registering_drop(call);
    reply_made(call, &made);
    return true;
}

enum err deployment_register(struct api_call *call)
{
    const struct deployment *deployment = deployment_of_call(call);
    struct registering_deployment named;
    enum err refused = check(call, deployment);
    if (refused) {
        registering_drop(call);
        return refused;
    }
    if (registering_end(call)) {
        struct failure why = call->why;
        link_worker(call, NULL, &why);
        return OK;
    }
    if (reply_linked(call, deployment))
        return OK;
    name_deployment(&deployment->row, &named);
    registering_begin(call, &named, on_registered);
    return OK;
}
