/* runs.c - the run routes, and the plain ones of them: retrieve, result, cancel.
 *
 * A run is looked up in the caller's environment before its scopes are checked, because
 * they depend on its task and tags; anybody else's is not found. */
#include "base/mem.h"
#include "call/body_fields.h"
#include "call/routes.h"
#include "engine/run_commands.h"
#include "runs/run_body.h"
#include "runs/run_changes.h"
#include "runs/run_list.h"
#include "runs/run_reply.h"

struct run_op {
    struct api_call *call;
    struct run_read read;
    struct cancel cancel;
};

static struct run_op *op_create(struct api_call *call)
{
    struct run_op *op = mem_new(struct run_op);
    op->call = call;
    call->busy = true;
    return op;
}

/* ---- retrieve ---- */

static void on_retrieved(struct run_read *read, enum err status)
{
    struct run_op *op = container_of(read, struct run_op, read);
    struct api_call *call = op->call;
    if (!status)
        status = api_check_run_scope(call, "read", read->run);
    if (status)
        api_reply_error(call, status);
    else
        run_reply_begin(call, read->run, 0);
    free(op);
}

static enum err retrieve(struct api_call *call)
{
    struct run_op *op = op_create(call);
    run_read_begin(call->env, call->params[0], &op->read, on_retrieved);
    return OK;
}

/* ---- result ---- */

static void on_result(struct run_read *read, enum err status)
{
    struct run_op *op = container_of(read, struct run_op, read);
    struct rope body = { 0 };
    rope_clear(&body);
    if (!status && !run_is_final(read->run))
        status = ERR_NOT_FOUND;
    if (status) {
        api_reply_refused(op->call, status, NULL,
                          "Run either doesn't exist or is not finished");
    } else {
        run_body_result(read->run, &body.text);
        api_reply_json_rope(op->call, 200, &body);
    }
    rope_finish(&body);
    free(op);
}

static enum err result(struct api_call *call)
{
    struct run_op *op = op_create(call);
    run_read_begin(call->env, call->params[0], &op->read, on_result);
    return OK;
}

/* ---- cancel ---- */

static const char no_resource[] = "Resource not found";

static void on_canceled(struct command *command, enum err status)
{
    struct run_op *op = container_of(command, struct run_op, cancel.command);
    struct api_call *call = op->call;
    struct buf body = { 0 };
    if (status) {
        api_reply_refused(call, status, &command->why, no_resource);
    } else {
        buf_print(&body, "{\"id\":\"%s\"}", command->run->id);
        api_add_seq(call, command->seq);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    free(op);
}

static void begin_cancel(struct run_op *op)
{
    struct api_call *call = op->call;
    run_cancel(api_engine(call->api), call->env, call->params[0], &op->cancel, on_canceled);
}

static void on_run_to_cancel(struct run_read *read, enum err status)
{
    struct run_op *op = container_of(read, struct run_op, read);
    if (!status)
        status = api_check_run_scope(op->call, "write", read->run);
    if (status) {
        api_reply_refused(op->call, status, NULL, no_resource);
        free(op);
        return;
    }
    begin_cancel(op);
}

/* A secret key may everything, so its run need not be looked at first. */
static enum err cancel(struct api_call *call)
{
    struct run_op *op = op_create(call);
    if (call->identity->kind == CREDENTIAL_SECRET_KEY)
        begin_cancel(op);
    else
        run_read_begin(call->env, call->params[0], &op->read, on_run_to_cancel);
    return OK;
}

/* ---- the table ---- */

enum {
    UNREAD_BODY = 65536, /* nothing is expected; what a client sends is not minded */
    SMALL_BODY = 65536,
    TAGS_BODY = 20480,
    METADATA_BODY = 2097152,
    REPLAY_BODY = 3145728,
    KEY_OR_TOKEN = AUTH_KEY | AUTH_PUBLIC,
};

const struct route runs_routes[] = {
    { HTTP_GET_, "/api/v1/runs", KEY_OR_TOKEN, UNREAD_BODY, run_list, NULL },
    { HTTP_GET_, "/api/v1/projects/:/runs", AUTH_PERSONAL, UNREAD_BODY, run_list_project,
      NULL },
    { HTTP_GET_, "/api/v3/runs/:", KEY_OR_TOKEN, UNREAD_BODY, retrieve, NULL },
    { HTTP_GET_, "/api/v1/runs/:/result", AUTH_KEY, UNREAD_BODY, result, NULL },
    { HTTP_POST_, "/api/v2/runs/:/cancel", KEY_OR_TOKEN, UNREAD_BODY, cancel, NULL },
    { HTTP_POST_, "/api/v1/runs/:/replay", AUTH_KEY, REPLAY_BODY, run_replay,
      run_replay_take },
    { HTTP_POST_, "/api/v1/runs/:/reschedule", AUTH_KEY, SMALL_BODY, run_put_off, NULL },
    { HTTP_POST_, "/api/v1/runs/:/tags", AUTH_KEY, TAGS_BODY, run_tag, NULL },
    { HTTP_GET_, "/api/v1/runs/:/metadata", AUTH_KEY, UNREAD_BODY, run_metadata_get, NULL },
    { HTTP_PUT_, "/api/v1/runs/:/metadata", AUTH_KEY, METADATA_BODY, run_metadata_put,
      intake_take },
    { HTTP_POST_, "/api/v1/idempotencyKeys/:/reset", KEY_OR_TOKEN, SMALL_BODY, run_free_key,
      NULL },
    { 0 },
};
