/* attempt_completion.c - handles a worker's report that an attempt has ended.
 *
 *   body ─► spans of output, error, metadata operations ─► attempt_complete ─► answer
 *                                                          + operations of the parent
 *                                                            and the root: one commit
 *
 * The output belongs to the user and stays text. The accompanying metadata has the changes
 * that the worker had not yet sent; without it, short tasks would lose theirs.
 *
 * Workers send a completion only once, so nothing in it makes the call fail. An error is
 * cut or mapped (completion_error.h). A completion that is invalid in another way fails the
 * attempt with an error that explains why. README.md lists the cases. */
#include <math.h>

#include "api/request/body_fields.h"
#include "api/request/quotas.h"
#include "api/request/served.h"
#include "api/telemetry/traces.h"
#include "api/workers/completion_error.h"
#include "api/workers/dequeued_message.h"
#include "api/workers/worker_routes.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/engine/attempts.h"
#include "core/engine/run_commands.h"

enum {
    TYPE_MAX = 255,
    MEMBERS_MAX = 1000,                 /* of the metadata, and of small objects */
    RETRY_MS = 1000,                    /* delay of a retry that has no time */
    FLUSHED_MAX = 2 * RUN_METADATA_MAX, /* bytes of the accompanying metadata */
};

enum completion_member {
    ENDED_WELL,
    OUTPUT,
    OUTPUT_TYPE,
    ERROR,
    SKIPPED,
    RETRY,
    USAGE,
    FLUSHED,
    MEMBER_COUNT
};

static const char *const names[MEMBER_COUNT] = {
    [ENDED_WELL] = "ok", [OUTPUT] = "output",           [OUTPUT_TYPE] = "outputType",
    [ERROR] = "error",   [SKIPPED] = "skippedRetrying", [RETRY] = "retry",
    [USAGE] = "usage",   [FLUSHED] = "flushedMetadata",
};

struct completion {
    struct api_call *call;
    struct complete_attempt complete;
    struct body_fields *fields; /* NULL: the body was unreadable */
    struct buf output_type, error;
    struct buf own, parents, roots; /* metadata operations; empty: none */
    struct bytes *parent, *root;    /* ids of relatives whose metadata changes too */
    struct change_metadata to_parent, to_root;
};

static void free_op(struct completion *op)
{
    struct buf *bufs[] = { &op->output_type, &op->error, &op->own, &op->parents,
                           &op->roots };
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
        buf_finish(bufs[i]);
    bytes_unref(op->complete.output);
    bytes_unref(op->parent);
    bytes_unref(op->root);
    body_fields_free(op->fields);
    free(op);
}

/* ---- the response ---- */

/* Returns the newest change of the run and its relatives. A relative that has ended, or has
 * no space for more metadata, is skipped: the attempt is complete. */
static uint64_t newest_seq(const struct completion *op)
{
    uint64_t seq = op->complete.command.seq;
    seq = op->to_parent.command.seq > seq ? op->to_parent.command.seq : seq;
    return op->to_root.command.seq > seq ? op->to_root.command.seq : seq;
}

/* Warns that spans and logs may be missing. A process that exits by itself or is killed
 * loses the lines that it has not sent. */
static void warn_of_lost_lines(const struct completion *op, const struct run *run)
{
    struct slice code = scan_member(op->complete.error, "code");
    if (scan_type(code) == SCAN_STRING &&
        slice_starts(scan_unquoted(code), "TASK_PROCESS_"))
        traces_warn(api_traces(op->call->api), op->call->env, slice_of(run->id),
                    run->attempt,
                    "The process of this attempt ended before it could send its last spans "
                    "and logs: those of its last moments may be missing");
}

static void on_completed(struct command *command, enum err status)
{
    struct completion *op = container_of(command, struct completion, complete.command);
    struct buf answer = { 0 };
    if (status) {
        api_reply_refused(op->call, status, &command->why, "Run not found");
        free_op(op);
        return;
    }
    message_add_result(&answer, command->run, op->complete.result);
    if (command->seq) { /* 0: it was a repetition */
        api_add_seq(op->call, newest_seq(op));
        if (!op->complete.ok)
            warn_of_lost_lines(op, command->run);
    }
    api_reply_json(op->call, 200, buf_slice(&answer));
    buf_finish(&answer);
    free_op(op);
}

static void join_relative(struct completion *op, struct change_metadata *change,
                          const struct bytes *run, const struct buf *operations)
{
    change->operations = buf_slice(operations);
    if (run && operations->len)
        run_join_metadata(&op->complete.command, bytes_slice(run), change);
}

/* ---- the accompanying metadata ---- */

/* Appends the elements of one JSON array to another. */
static void join(struct buf *operations, struct slice array)
{
    struct slice first;
    struct scan_members elements = scan_members(array);
    if (scan_type(array) != SCAN_ARRAY || !scan_next_element(&elements, &first))
        return;
    array = slice_trim(array);
    if (operations->len) {
        operations->len--; /* its closing bracket */
        buf_add_char(operations, ',');
        array = slice_from(array, 1);
    }
    buf_add(operations, array);
}

/* Takes {operations, parentOperations, rootOperations}. Operations for a parent or root
 * that the run does not have apply to the run itself. */
static void take_operations(struct completion *op, struct slice metadata)
{
    const struct tracked *run = environment_find(op->call->env, op->call->params[0]);
    if (!run)
        return; /* finished long ago: the completion will be refused */
    const struct run_rare *rare = run_rare(&run->run);
    static const char *const lists[] = { "operations", "parentOperations",
                                         "rootOperations" };
    struct slice values[3];
    if (!members_find_few(metadata, MEMBERS_MAX, lists, 3, values))
        return;
    op->parent = bytes_ref(rare->parent);
    op->root = bytes_ref(rare->root ? rare->root : rare->parent);
    join(&op->own, values[0]);
    join(op->parent ? &op->parents : &op->own, values[1]);
    join(op->root ? &op->roots : &op->own, values[2]);
}

/* Takes metadata that can be read. Otherwise it is left out: the result of the attempt is
 * more important. */
static void take_metadata(struct completion *op, struct slice flushed)
{
    static const char *const parts[] = { "data", "dataType" };
    struct buf text = { 0 }, spelled = { 0 };
    struct slice metadata, values[2];
    size_t len;
    if (!members_find_few(flushed, MEMBERS_MAX, parts, 2, values) ||
        !body_fields_begin(op->fields, values[0], FLUSHED_MAX, &text, &len) ||
        len > FLUSHED_MAX)
        goto out;
    metadata = buf_slice(&text);
    if (scan_spell_halves(metadata, &spelled))
        metadata = buf_slice(&spelled);
    if (!scan_is_json(metadata) || !scan_has_at_most(metadata, MEMBERS_MAX))
        goto out;
    if (slice_is(values[1], "\"application/super+json\""))
        metadata = scan_member(metadata, "json");
    if (scan_type(metadata) == SCAN_OBJECT)
        take_operations(op, metadata);
out:
    buf_finish(&text);
    buf_finish(&spelled);
}

/* ---- the completion ---- */

/* Fails the attempt because of its completion. It is not retried: the task may have
 * succeeded, and the next completion would be like this one. */
static void fail(struct completion *op, struct slice message)
{
    struct complete_attempt *complete = &op->complete;
    bytes_clear(&complete->output);
    buf_clear(&op->error);
    completion_error_add_internal(&op->error, "TASK_OUTPUT_ERROR", message);
    complete->ok = complete->has_retry = false;
    complete->skipped_retrying = true;
    complete->error = buf_slice(&op->error);
}

static bool read_number(struct slice value, double *number)
{
    double read;
    if (!scan_number(value, &read) || !(fabs(read) < 1e15))
        return false;
    *number = read;
    return true;
}

static void fail_for_size(struct completion *op, size_t len)
{
    struct buf text = { 0 };
    buf_add_text(&text, "completion.output: too large (");
    buf_add_size(&text, len);
    buf_add_text(
        &text, ", max 16 MiB); return less, or store it elsewhere and return a reference");
    fail(op, buf_slice(&text));
    buf_finish(&text);
}

/* Escapes halves of surrogate pairs in an output that is JSON except for these. */
static void spell_halves(struct bytes **output, struct slice type)
{
    struct buf spelled = { 0 };
    bool should_be_json =
        slice_is(type, "application/json") || slice_is(type, "application/super+json");
    if (should_be_json && !scan_bytes_are_json(*output) &&
        scan_spell_halves(bytes_slice(*output), &spelled)) {
        bytes_unref(*output);
        *output = buf_take(&spelled);
        (*output)->json = BYTES_JSON;
    }
    buf_finish(&spelled);
}

static void read_success(struct completion *op, const struct slice *values)
{
    struct slice output = values[OUTPUT], type = values[OUTPUT_TYPE];
    size_t len;
    op->complete.ok = true;
    if (!output.ptr || scan_type(output) == SCAN_NULL)
        return;
    if (body_fields_is_cut(op->fields, output, &len)) {
        fail_for_size(op, len);
        return;
    }
    op->complete.output = body_fields_bytes(op->fields, output);
    if (!op->complete.output) {
        fail(op, SLICE("completion.output: must be a string, its type is in outputType"));
        return;
    }
    if (!type.ptr)
        buf_add_text(&op->output_type, "application/json");
    else if (!body_fields_begin(op->fields, type, TYPE_MAX, &op->output_type, &len) ||
             len > TYPE_MAX)
        fail(op, SLICE("completion.outputType: must be a string of at most 255 bytes"));
    op->complete.output_type = buf_slice(&op->output_type);
    spell_halves(&op->complete.output, op->complete.output_type);
}

/* A retry without a time is due soon. */
static void read_retry(struct complete_attempt *complete, struct slice retry)
{
    static const char *const parts[] = { "timestamp", "delay" };
    struct slice values[2];
    double at = 0, delay = RETRY_MS;
    members_find_few(retry, MEMBERS_MAX, parts, 2, values);
    read_number(values[0], &at);
    if (read_number(values[1], &delay) && delay < 0)
        delay = 0;
    complete->has_retry = true;
    complete->retry_at = (int64_t)at;
    complete->retry_delay_ms = (int64_t)delay;
}

static void read_failure(struct completion *op, const struct slice *values)
{
    struct complete_attempt *complete = &op->complete;
    completion_error_add(&op->error, op->fields, values[ERROR]);
    complete->error = buf_slice(&op->error);
    complete->skipped_retrying = scan_type(values[SKIPPED]) == SCAN_TRUE;
    if (scan_type(values[RETRY]) == SCAN_OBJECT)
        read_retry(complete, values[RETRY]);
}

static void read_usage(struct completion *op, struct slice usage)
{
    static const char *const parts[] = { "durationMs" };
    struct slice duration;
    double ms = -1;
    if (members_find_few(usage, MEMBERS_MAX, parts, 1, &duration))
        read_number(duration, &ms);
    op->complete.usage_ms = (int64_t)ms;
}

/* Without a valid `ok` the attempt has failed if there is an error; otherwise the
 * completion is invalid. */
static void read_completion(struct completion *op, struct slice completion)
{
    struct slice values[MEMBER_COUNT];

    if (scan_type(completion) != SCAN_OBJECT) {
        fail(op, SLICE("completion: must be an object"));
        return;
    }
    members_find_few(completion, COMPLETION_LOOKED_AT_MAX, names, MEMBER_COUNT, values);
    enum scan_type ended_well = scan_type(values[ENDED_WELL]);
    if (ended_well == SCAN_TRUE)
        read_success(op, values);
    else if (ended_well == SCAN_FALSE || scan_type(values[ERROR]) == SCAN_OBJECT)
        read_failure(op, values);
    else
        fail(op, SLICE("completion.ok: must be true or false"));
    read_usage(op, values[USAGE]);
    take_metadata(op, values[FLUSHED]);
    if (op->own.len)
        op->complete.metadata_operations = buf_slice(&op->own);
}

static void read_body(struct completion *op, struct slice body)
{
    static const char *const parts[] = { "completion", "forceRequeue" };
    struct slice values[2];
    members_find_few(body, COMPLETION_LOOKED_AT_MAX, parts, 2, values);
    op->complete.force_requeue = scan_type(values[1]) == SCAN_TRUE;
    read_completion(op, values[0]);
}

/* Fails the attempt because the body is not a JSON object, or too long to be read. */
static void fail_for_body(struct completion *op)
{
    struct slice encoding = http_header(op->call->x, "content-encoding");
    struct buf text = { 0 };
    buf_print(&text, "cannot read the completion of the attempt: %s", op->call->why.text);
    if (encoding.len && !slice_is(encoding, "identity"))
        buf_print(&text, "; content-encoding \"%.*s\" is not supported, send JSON",
                  SLICE_ARG(text_clip(encoding)));
    fail(op, buf_slice(&text));
    buf_finish(&text);
    op->call->why = (struct failure){ 0 };
}

/* Returns true if an attempt waits for this completion. A worker's token names no
 * environment, so the run is looked up. */
static bool is_wanted(const struct api_call *call)
{
    struct slice run = call->params[0];
    const struct environment *env = call->env;
    if (!env) {
        const struct account *account = served_with_run(call->api, call->identity, run);
        env = account ? engine_environment(api_engine(call->api), account->number) : NULL;
    }
    return env && attempt_may_complete(env, run, call->params[1], worker_has_token(call));
}

/* Reads a completion that no attempt waits for to its end, but keeps none of it. */
enum err worker_complete_piece(struct api_call *call, struct slice piece)
{
    if (!call->state && !is_wanted(call))
        body_fields_ignore(call, "the attempt did not wait for it when it came");
    body_fields_take_any(call, piece);
    enum err full = quotas_hold_piece(call, body_fields_size(call));
    if (full)
        body_fields_drop(call);
    return full;
}

enum err worker_complete(struct api_call *call)
{
    struct slice body, request_id = api_request_id(call);
    struct completion *op = mem_new(struct completion);
    op->call = call;
    op->complete.snapshot = call->params[1];
    op->complete.by_token = worker_has_token(call);
    if (request_id.len <= API_REQUEST_ID_MAX)
        op->complete.request_id = request_id;
    if (body_fields_end(call, &op->fields, &body))
        fail_for_body(op);
    else
        read_body(op, body);

    worker_touch_session(call);
    call->busy = true;
    attempt_complete(api_engine(call->api), call->env, call->params[0], &op->complete,
                     on_completed);
    join_relative(op, &op->to_parent, op->parent, &op->parents);
    join_relative(op, &op->to_root, op->root, &op->roots);
    return OK;
}
