/* tasks.c - the route that triggers one run.
 *
 *   pieces ─► envelope ─► options ─► the parent, if one is named ─► engine ─► its id
 *
 * The task need not exist: its run waits for a version that has it. */
#include "api/packets/packet_name.h"
#include "api/request/route.h"
#include "api/triggers/blocking.h"
#include "api/triggers/own_keys.h"
#include "api/triggers/trigger_call.h"
#include "api/triggers/trigger_options.h"
#include "base/json/envelope.h"
#include "base/mem.h"

enum { TRIGGER_BODY = 3145728 };

struct task_call {
    struct api_call *call;
    struct envelope body;
    struct trigger item;
    struct trigger_op op;
    struct trigger_parent requested_parent;
    struct parent_lookup parent;
    struct blocking blocking; /* of the parent */
};

static void task_call_destroy(struct task_call *trigger)
{
    envelope_finish(&trigger->body);
    trigger->op.items = &trigger->item;
    trigger->op.count = 1;
    trigger_op_finish(&trigger->op);
    bytes_unref(trigger->requested_parent.run_id);
    parent_lookup_finish(&trigger->parent);
    free(trigger);
}

/* ---- the body ---- */

/* The client disconnected before it had sent the whole body. */
static void on_gone(struct api_call *call)
{
    task_call_destroy(call->state);
    api_reply_gone(call);
}

static struct task_call *state_of(struct api_call *call)
{
    struct task_call *trigger = call->state;
    if (trigger)
        return trigger;
    call->state = trigger = mem_new(struct task_call);
    call->on_gone = on_gone;
    trigger->call = call;
    return trigger;
}

static enum err take_piece(struct api_call *call, struct slice piece)
{
    struct task_call *trigger = state_of(call);
    if (!envelope_feed(&trigger->body, piece))
        return OK;
    scan_explain(&trigger->body.scan, &call->why);
    task_call_destroy(trigger);
    return ERR_INVALID;
}

/* Rejects a body that has the payload's members in place of "payload": its content would
 * be silently lost. */
static enum err check_form(struct task_call *trigger)
{
    static const char *const known[] = { "payload", "options", "context", NULL };
    struct api_call *call = trigger->call;
    const struct envelope *body = &trigger->body;
    struct slice other = { 0 };
    if (!envelope_report_others(body, "", known, &call->ignored, &other) ||
        envelope_get(body, "payload").ptr || envelope_get(body, "options").ptr)
        return OK;
    return explain(&call->why, ERR_INVALID,
                   "Validation error: there is \"%.*s\" but neither payload nor options: "
                   "the form is {\"payload\": what the task gets, \"options\": {…}}",
                   SLICE_ARG(text_clip(other)));
}

static enum err read_body(struct task_call *trigger)
{
    struct api_call *call = trigger->call;
    struct envelope *body = &trigger->body;
    struct trigger_place place = trigger_call_place(call);
    enum err err = envelope_close(body, &call->why);
    if (!err)
        err = check_form(trigger);
    if (err)
        return err;

    struct trigger_source source = {
        .task = call->params[0],
        .payload = envelope_get(body, "payload"),
        .payload_text = envelope_payload_text(body),
        .text_is_json = envelope_payload_is_json(body),
        .options = envelope_get(body, "options"),
        .key = http_header(call->x, "idempotency-key"),
        .key_ttl = http_header(call->x, "idempotency-key-ttl"),
        .ignored = &call->ignored,
    };
    err = trigger_options_read(&source, &place, &trigger->item, &trigger->requested_parent,
                               &call->why);
    own_keys_note(call, &trigger->item, place.now_ms);
    return err ? err : packet_check_named(call, &trigger->item.run);
}

/* ---- the operation ---- */

/* Returns true if the run was not created by this call. */
static bool is_older(const struct task_call *trigger)
{
    return trigger->item.cached || trigger->item.joined;
}

/* Adds a token for the run. An existing run may belong to another client, so its token
 * grants no more than the caller's own rights. */
static void add_token(struct task_call *trigger)
{
    struct api_call *call = trigger->call;
    struct slice id = slice_of(trigger->item.id);
    bool is_new = !is_older(trigger);
    char read[ID_MAX + 16], write[ID_MAX + 24];
    const char *scopes[2];
    size_t count = 0;

    snprintf(read, sizeof(read), "read:runs:%s", trigger->item.id);
    snprintf(write, sizeof(write), "write:inputStreams:%s", trigger->item.id);
    if (is_new || !api_check_scope(call, "read", "runs", id) ||
        !api_check_scope(call, "read", "tasks", call->params[0]))
        scopes[count++] = read;
    if (is_new || !api_check_scope(call, "write", "inputStreams", id))
        scopes[count++] = write;
    api_add_token(call, scopes, count);
}

static void reply(struct task_call *trigger)
{
    struct api_call *call = trigger->call;
    struct trigger_op *op = &trigger->op;
    const char *id = trigger->item.id;
    struct buf body = { 0 };

    buf_add_text(&body, "{\"id\":\"");
    buf_add_text(&body, id);
    buf_add_text(&body,
                 is_older(trigger) ? "\",\"isCached\":true}" : "\",\"isCached\":false}");
    add_token(trigger);
    api_add_seq(call, op->seq);
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
}

static void on_blocked(struct blocking *blocking, enum err status)
{
    struct task_call *trigger = container_of(blocking, struct task_call, blocking);
    if (status)
        api_reply_error(trigger->call, status);
    else
        reply(trigger);
    task_call_destroy(trigger);
}

/* The run was created, found by its idempotency key or because the call is a repeat, or
 * pushed by its debounce key. */
static void on_triggered(struct trigger_op *op, enum err status)
{
    struct task_call *trigger = container_of(op, struct task_call, op);
    if (!status && trigger->requested_parent.run_id && trigger->requested_parent.resume) {
        blocking_begin_run(&trigger->blocking, trigger->call,
                           bytes_slice(trigger->requested_parent.run_id),
                           slice_of(trigger->item.id), on_blocked);
        return;
    }
    if (status)
        trigger_call_refused(trigger->call, op, status, trigger->call->params[0]);
    else
        reply(trigger);
    task_call_destroy(trigger);
}

static void task_call_begin(struct task_call *trigger)
{
    struct api_call *call = trigger->call;
    trigger->op.items = &trigger->item;
    trigger->op.count = 1;
    trigger->op.done = on_triggered;
    enum err refused = trigger_begin(api_engine(call->api), call->env, &trigger->op);
    if (refused)
        on_triggered(&trigger->op, refused);
}

static void on_parent(struct parent_lookup *lookup, enum err status)
{
    struct task_call *trigger = container_of(lookup, struct task_call, parent);
    if (status) {
        api_reply_error(trigger->call, status);
        task_call_destroy(trigger);
        return;
    }
    parent_lookup_adopt(lookup, trigger->requested_parent.resume, &trigger->item.run);
    task_call_begin(trigger);
}

static enum err prepare(struct task_call *trigger)
{
    struct api_call *call = trigger->call;
    enum err err = api_check_scope(call, "trigger", "tasks", call->params[0]);
    if (!err)
        err = read_body(trigger);
    if (!err)
        trigger_call_claims(call, call->params[0], &trigger->op);
    return err;
}

static enum err trigger_task(struct api_call *call)
{
    struct task_call *trigger = state_of(call);
    enum err err = prepare(trigger);
    if (err) {
        task_call_destroy(trigger);
        return err;
    }
    envelope_finish(&trigger->body);
    trigger->body = (struct envelope){ 0 };
    call->busy = true;
    call->on_gone = NULL;
    if (trigger->requested_parent.run_id)
        parent_lookup_begin(&trigger->parent, call,
                            bytes_slice(trigger->requested_parent.run_id), on_parent);
    else
        task_call_begin(trigger);
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = "/api/v1/tasks/{taskId}/trigger",
      .auth = AUTH_KEY | AUTH_PUBLIC, .body_limit = TRIGGER_BODY, .handle = trigger_task,
      .on_body = take_piece,
      .claims = true, .own_key = OWN_KEY_IN_OPTIONS, .id = "trigger_task_v1", .summary = "Trigger a task",
      .body = "TriggerTask",
      .reply = "{id: string, isCached: boolean}",
      .also = "409 422 507" },
    { 0 },
};
/* clang-format on */

const struct area tasks_area = { .tag = "runs", .is_for_users = true, .routes = routes };
