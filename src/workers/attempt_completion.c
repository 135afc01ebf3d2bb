/* attempt_completion.c - the end of an attempt.
 *
 *   body ─► spans of output, error, metadata operations ─► attempt_complete ─► answer
 *                                                          + operations of the parent
 *                                                            and the root: one commit
 *
 * The output is the user's and stays text. The metadata that comes along is what the worker
 * had not sent yet; without it short tasks would lose theirs. */
#include <math.h>

#include "base/mem.h"
#include "call/body_fields.h"
#include "engine/attempts.h"
#include "engine/run_commands.h"
#include "workers/dequeued_message.h"
#include "workers/worker_routes.h"
#include "json/members.h"
#include "json/scan.h"

enum {
    TYPE_MAX = 255,
    MEMBERS_MAX = 1000,                 /* of each object; the usual has a dozen */
    FLUSHED_MAX = 2 * RUN_METADATA_MAX, /* bytes of the metadata that comes along */
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
    struct body_fields *fields; /* holds the error */
    struct buf output_type;
    struct buf own, parents, roots; /* metadata operations; empty: none */
    struct bytes *parent, *root;    /* ids of others whose metadata changes too */
    struct change_metadata to_parent, to_root;
};

static void free_op(struct completion *op)
{
    struct buf *bufs[] = { &op->output_type, &op->own, &op->parents, &op->roots };
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
        buf_finish(bufs[i]);
    bytes_unref(op->complete.output);
    bytes_unref(op->parent);
    bytes_unref(op->root);
    body_fields_free(op->fields);
    free(op);
}

/* ---- the answer ---- */

/* A relative that has ended, or has no room for more metadata, is passed over: the attempt
 * is complete. */
static uint64_t newest_seq(const struct completion *op)
{
    uint64_t seq = op->complete.command.seq;
    seq = op->to_parent.command.seq > seq ? op->to_parent.command.seq : seq;
    return op->to_root.command.seq > seq ? op->to_root.command.seq : seq;
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
    if (command->seq) /* else it was repeated */
        api_add_seq(op->call, newest_seq(op));
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

/* ---- the metadata that comes along ---- */

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

/* {operations, parentOperations, rootOperations}; those of a run without a parent are its
 * own. */
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

/* Metadata that cannot be read is left out: the result of the attempt counts more. */
static void take_metadata(struct completion *op, struct slice flushed)
{
    static const char *const parts[] = { "data", "dataType" };
    struct buf text = { 0 };
    struct slice metadata, values[2];
    if (!members_find_few(flushed, MEMBERS_MAX, parts, 2, values) ||
        values[0].len > FLUSHED_MAX || !scan_string(values[0], &text) ||
        !scan_is_json(buf_slice(&text)) || !scan_has_at_most(buf_slice(&text), MEMBERS_MAX))
        goto out;
    metadata = buf_slice(&text);
    if (slice_is(values[1], "\"application/super+json\""))
        metadata = scan_member(metadata, "json");
    if (scan_type(metadata) == SCAN_OBJECT)
        take_operations(op, metadata);
out:
    buf_finish(&text);
}

/* ---- the completion ---- */

static enum err refuse(struct api_call *call, const char *text)
{
    return explain(&call->why, ERR_INVALID, "completion.%s", text);
}

static bool read_number(struct slice value, double *number)
{
    double read;
    if (!scan_number(value, &read) || !(fabs(read) < 1e15))
        return false;
    *number = read;
    return true;
}

static bool is_known_error(struct slice error)
{
    static const char *const type_of[] = { "type" };
    static const char *const types[] = { "\"BUILT_IN_ERROR\"", "\"CUSTOM_ERROR\"",
                                         "\"STRING_ERROR\"", "\"INTERNAL_ERROR\"" };
    struct slice type;
    if (!members_find_few(error, MEMBERS_MAX, type_of, 1, &type))
        return false;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (slice_is(type, types[i]))
            return true;
    return false;
}

static enum err read_success(struct completion *op, const struct slice *values)
{
    struct slice output = values[OUTPUT], type = values[OUTPUT_TYPE];
    op->complete.ok = true;
    if (!output.ptr || scan_type(output) == SCAN_NULL)
        return OK;
    op->complete.output = body_fields_bytes(op->fields, output);
    if (!op->complete.output)
        return refuse(op->call, "output: must be a string, its type is in outputType");
    if (!type.ptr)
        buf_add_text(&op->output_type, "application/json");
    else if (!body_fields_string(op->fields, type, &op->output_type) ||
             op->output_type.len > TYPE_MAX)
        return refuse(op->call, "outputType: must be a string of at most 255 bytes");
    op->complete.output_type = buf_slice(&op->output_type);
    return OK;
}

static bool read_retry(struct slice retry, double *at, double *delay)
{
    static const char *const parts[] = { "timestamp", "delay" };
    struct slice values[2];
    return members_find_few(retry, MEMBERS_MAX, parts, 2, values) &&
           read_number(values[0], at) && read_number(values[1], delay) && *delay >= 0;
}

static enum err read_failure(struct completion *op, const struct slice *values)
{
    struct complete_attempt *complete = &op->complete;
    double at = 0, delay = 0;

    complete->error = values[ERROR];
    if (scan_type(complete->error) != SCAN_OBJECT || !is_known_error(complete->error))
        return refuse(op->call, "error: must be an object with type BUILT_IN_ERROR, "
                                "CUSTOM_ERROR, STRING_ERROR or INTERNAL_ERROR");
    complete->skipped_retrying = scan_type(values[SKIPPED]) == SCAN_TRUE;
    if (scan_type(values[RETRY]) != SCAN_OBJECT)
        return OK;
    if (!read_retry(values[RETRY], &at, &delay))
        return refuse(op->call, "retry: must have timestamp and delay in milliseconds");
    complete->has_retry = true;
    complete->retry_at = (int64_t)at;
    complete->retry_delay_ms = (int64_t)delay;
    return OK;
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

static enum err read_completion(struct completion *op, struct slice completion)
{
    struct slice values[MEMBER_COUNT];

    if (scan_type(completion) != SCAN_OBJECT)
        return explain(&op->call->why, ERR_INVALID, "completion: must be an object");
    if (!members_find_few(completion, MEMBERS_MAX, names, MEMBER_COUNT, values))
        return explain(&op->call->why, ERR_INVALID, "completion: has more than %d members",
                       MEMBERS_MAX);
    if (scan_type(values[ENDED_WELL]) != SCAN_TRUE &&
        scan_type(values[ENDED_WELL]) != SCAN_FALSE)
        return refuse(op->call, "ok: must be true or false");
    enum err err = scan_type(values[ENDED_WELL]) == SCAN_TRUE ? read_success(op, values)
                                                              : read_failure(op, values);
    if (err)
        return err;
    read_usage(op, values[USAGE]);
    take_metadata(op, values[FLUSHED]);
    if (op->own.len)
        op->complete.metadata_operations = buf_slice(&op->own);
    return OK;
}

static enum err read_body(struct completion *op, struct slice body)
{
    static const char *const parts[] = { "completion", "forceRequeue" };
    struct slice values[2];
    if (!members_find_few(body, MEMBERS_MAX, parts, 2, values))
        return explain(&op->call->why, ERR_INVALID, "The body has more than %d members",
                       MEMBERS_MAX);
    op->complete.force_requeue = scan_type(values[1]) == SCAN_TRUE;
    return read_completion(op, values[0]);
}

enum err worker_complete(struct api_call *call)
{
    struct body_fields *fields;
    struct slice body;
    if (body_fields_end(call, &fields, &body))
        return ERR_INVALID;

    worker_hear(call);
    struct completion *op = mem_new(struct completion);
    op->call = call;
    op->fields = fields;
    op->complete.snapshot = call->params[1];
    op->complete.request_id = api_request_id(call);
    enum err refused = read_body(op, body);
    if (refused) {
        free_op(op);
        return refused;
    }
    call->busy = true;
    attempt_complete(api_engine(call->api), call->env, call->params[0], &op->complete,
                     on_completed);
    join_relative(op, &op->to_parent, op->parent, &op->parents);
    join_relative(op, &op->to_root, op->root, &op->roots);
    return OK;
}
