/* completion.c - the end of an attempt (worker-protocol §1.5, call 14).
 *
 *   body ─► spans of output, error, metadata operations ─► attempt_complete ─► answer
 *                                                          + operations of the parent
 *                                                            and the root: one commit
 *
 * The output is the user's and stays text. The metadata that comes along is what the worker
 * had not sent yet; without it short tasks would lose theirs. */
#include <math.h>

#include "api/intake.h"
#include "api/messages.h"
#include "api/workers.h"
#include "base/mem.h"
#include "base/scan.h"
#include "engine/attempts.h"
#include "engine/steer.h"

enum { TYPE_MAX = 255 };

struct completing {
    struct api_call *call;
    struct complete_attempt complete;
    struct intake *intake; /* holds the error */
    struct buf output, output_type;
    struct buf own, parents, roots; /* metadata operations; empty: none */
    struct bytes *parent, *root;    /* ids of others whose metadata changes too */
    struct change_metadata to_parent, to_root;
};

static void free_op(struct completing *op)
{
    struct buf *bufs[] = { &op->output, &op->output_type, &op->own, &op->parents,
                           &op->roots };
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++)
        buf_finish(bufs[i]);
    bytes_unref(op->parent);
    bytes_unref(op->root);
    intake_free(op->intake);
    free(op);
}

/* ---- the answer ---- */

/* A relative that has ended, or has no room, is passed over: the attempt is complete. */
static uint64_t newest_seq(const struct completing *op)
{
    uint64_t seq = op->complete.command.seq;
    seq = op->to_parent.command.seq > seq ? op->to_parent.command.seq : seq;
    return op->to_root.command.seq > seq ? op->to_root.command.seq : seq;
}

static void on_completed(struct command *command, enum err status)
{
    struct completing *op = container_of(command, struct completing, complete.command);
    struct buf answer = { 0 };
    if (status) {
        worker_refuse(op->call, command, status);
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

static void join_relative(struct completing *op, struct change_metadata *change,
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
 * own (worker-protocol §1.7). */
static void take_operations(struct completing *op, struct slice metadata)
{
    const struct tracked *run = environment_find(op->call->env, op->call->params[0]);
    if (!run)
        return; /* finished long ago: the completion will be refused */
    const struct run_rare *rare = run_rare(&run->run);
    op->parent = bytes_ref(rare->parent);
    op->root = bytes_ref(rare->root ? rare->root : rare->parent);
    join(&op->own, scan_member(metadata, "operations"));
    join(op->parent ? &op->parents : &op->own, scan_member(metadata, "parentOperations"));
    join(op->root ? &op->roots : &op->own, scan_member(metadata, "rootOperations"));
}

/* What cannot be read is left out: the result of the attempt counts more. */
static void take_metadata(struct completing *op, struct slice flushed)
{
    struct buf text = { 0 };
    struct slice metadata;
    if (scan_type(flushed) != SCAN_OBJECT ||
        !scan_string(scan_member(flushed, "data"), &text) ||
        !scan_is_json(buf_slice(&text)))
        goto out;
    metadata = buf_slice(&text);
    if (slice_is(scan_member(flushed, "dataType"), "\"application/super+json\""))
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
    static const char *const types[] = { "\"BUILT_IN_ERROR\"", "\"CUSTOM_ERROR\"",
                                         "\"STRING_ERROR\"", "\"INTERNAL_ERROR\"" };
    struct slice type = scan_member(error, "type");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (slice_is(type, types[i]))
            return true;
    return false;
}

static enum err read_success(struct completing *op, struct slice completion)
{
    struct slice output = scan_member(completion, "output");
    struct slice type = scan_member(completion, "outputType");
    op->complete.ok = true;
    if (!output.ptr || scan_type(output) == SCAN_NULL)
        return OK;
    if (!intake_string(op->intake, output, &op->output))
        return refuse(op->call, "output: must be a string, its type is in outputType");
    if (!type.ptr)
        buf_add_text(&op->output_type, "application/json");
    else if (!intake_string(op->intake, type, &op->output_type) ||
             op->output_type.len > TYPE_MAX)
        return refuse(op->call, "outputType: must be a string of at most 255 bytes");
    op->complete.output = buf_slice(&op->output);
    op->complete.output_type = buf_slice(&op->output_type);
    return OK;
}

static enum err read_failure(struct completing *op, struct slice completion)
{
    struct complete_attempt *complete = &op->complete;
    struct slice retry = scan_member(completion, "retry");
    double at = 0, delay = 0;

    complete->error = scan_member(completion, "error");
    if (scan_type(complete->error) != SCAN_OBJECT || !is_known_error(complete->error))
        return refuse(op->call, "error: must be an object with type BUILT_IN_ERROR, "
                                "CUSTOM_ERROR, STRING_ERROR or INTERNAL_ERROR");
    complete->skipped_retrying =
        scan_type(scan_member(completion, "skippedRetrying")) == SCAN_TRUE;
    if (scan_type(retry) != SCAN_OBJECT)
        return OK;
    if (!read_number(scan_member(retry, "timestamp"), &at) ||
        !read_number(scan_member(retry, "delay"), &delay) || delay < 0)
        return refuse(op->call, "retry: must have timestamp and delay in milliseconds");
    complete->has_retry = true;
    complete->retry_at = (int64_t)at;
    complete->retry_delay_ms = (int64_t)delay;
    return OK;
}

static enum err read_completion(struct completing *op, struct slice body)
{
    struct slice completion = scan_member(body, "completion");
    double usage = -1;

    if (scan_type(completion) != SCAN_OBJECT)
        return explain(&op->call->why, ERR_INVALID, "completion: must be an object");
    struct slice ok = scan_member(completion, "ok");
    if (scan_type(ok) != SCAN_TRUE && scan_type(ok) != SCAN_FALSE)
        return refuse(op->call, "ok: must be true or false");
    enum err err = scan_type(ok) == SCAN_TRUE ? read_success(op, completion)
                                              : read_failure(op, completion);
    if (err)
        return err;
    struct slice told = scan_member(completion, "usage");
    if (scan_type(told) == SCAN_OBJECT)
        read_number(scan_member(told, "durationMs"), &usage);
    op->complete.usage_ms = (int64_t)usage;
    take_metadata(op, scan_member(completion, "flushedMetadata"));
    if (op->own.len)
        op->complete.metadata_operations = buf_slice(&op->own);
    return OK;
}

enum err worker_complete(struct api_call *call)
{
    struct intake *intake;
    struct slice body;
    if (intake_end(call, &intake, &body))
        return ERR_INVALID;

    struct completing *op = mem_new(struct completing);
    op->call = call;
    op->intake = intake;
    op->complete.snapshot = call->params[1];
    op->complete.request_id = worker_request_id(call);
    op->complete.force_requeue = scan_type(scan_member(body, "forceRequeue")) == SCAN_TRUE;
    if (read_completion(op, body)) {
        free_op(op);
        return ERR_INVALID;
    }
    call->busy = true;
    attempt_complete(api_engine(call->api), call->env, call->params[0], &op->complete,
                     on_completed);
    join_relative(op, &op->to_parent, op->parent, &op->parents);
    join_relative(op, &op->to_root, op->root, &op->roots);
    return OK;
}
