/* run_metadata.c - reads and changes the metadata of a run, its parent and its root.
 *
 *   check all ─► the run itself ─► its parent ─► its root ─► reply with the run's own
 *
 * A run without parent or root is meant itself. Once the run's own change is written, a
 * relative that is gone or may not change any more is passed over: a client that were told
 * would repeat what is done already. */
#include "api/intake.h"
#include "api/run_body.h"
#include "api/run_changes.h"
#include "api/run_reply.h"
#include "base/mem.h"
#include "base/scan.h"
#include "engine/steer.h"
#include "run/metadata.h"

static const char no_run[] = "Task Run not found";

enum target { TARGET_SELF, TARGET_PARENT, TARGET_ROOT, TARGET_COUNT };

static const char *const operations_of[TARGET_COUNT] = {
    "operations",
    "parentOperations",
    "rootOperations",
};

struct metadata_op {
    struct api_call *call;
    struct intake *intake; /* what the slices point into */
    struct slice replacement;
    struct slice operations[TARGET_COUNT]; /* absent: nothing to be done */
    struct bytes *ids[TARGET_COUNT];       /* since the run was seen */
    enum target target;
    struct change_metadata change;
    struct run_read read;
    struct bytes *metadata; /* of the run itself, to be answered */
    uint64_t seq;
};

static void finish(struct metadata_op *op)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        bytes_unref(op->ids[i]);
    bytes_unref(op->metadata);
    intake_free(op->intake);
    free(op);
}

static void reply(struct metadata_op *op)
{
    struct api_call *call = op->call;
    struct buf body = { 0 };
    buf_add_text(&body, "{\"metadata\":");
    buf_add(&body, op->metadata ? bytes_slice(op->metadata) : SLICE("{}"));
    buf_add_char(&body, '}');
    if (op->seq)
        api_add_seq(call, op->seq);
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    finish(op);
}

static void refuse(struct metadata_op *op, enum err status, const struct failure *why)
{
    run_reply_refused(op->call, status, why, no_run);
    finish(op);
}

/* ---- changes, one after the other ---- */

static void note_run(struct metadata_op *op, const struct run *run)
{
    struct bytes *metadata = bytes_create(run_body_metadata(run));
    bytes_unref(op->metadata);
    op->metadata = metadata;
    if (op->ids[TARGET_SELF])
        return;
    op->ids[TARGET_SELF] = bytes_create(slice_of(run->id));
    const struct run_rare *rare = run_rare(run);
    op->ids[TARGET_PARENT] = bytes_ref(rare->parent ? rare->parent : op->ids[TARGET_SELF]);
    op->ids[TARGET_ROOT] = bytes_ref(rare->root ? rare->root : op->ids[TARGET_SELF]);
}

static void change_next(struct metadata_op *op);

static void on_relative_changed(struct command *command, enum err status)
{
    struct metadata_op *op = container_of(command, struct metadata_op, change.command);
    if (errors[status].http_status >= 500) {
        refuse(op, status, &command->why);
        return;
    }
    if (!status && slice_is(bytes_slice(op->ids[TARGET_SELF]), command->run->id)) {
        note_run(op, command->run);
        op->seq = command->seq;
    }
    change_next(op);
}

static void change_next(struct metadata_op *op)
{
    struct api_call *call = op->call;
    while (++op->target < TARGET_COUNT) {
        if (!op->operations[op->target].ptr)
            continue;
        op->change.replacement = (struct slice){ 0 };
        op->change.operations = op->operations[op->target];
        run_change_metadata(api_engine(call->api), call->env,
                            bytes_slice(op->ids[op->target]), &op->change,
                            on_relative_changed);
        return;
    }
    reply(op);
}

static void on_self_changed(struct command *command, enum err status)
{
    struct metadata_op *op = container_of(command, struct metadata_op, change.command);
    if (status) {
        refuse(op, status, &command->why);
        return;
    }
    op->seq = command->seq;
    note_run(op, command->run);
    change_next(op);
}

static void on_self_read(struct run_read *read, enum err status)
{
    struct metadata_op *op = container_of(read, struct metadata_op, read);
    if (status) {
        refuse(op, status, NULL);
        return;
    }
    note_run(op, read->run);
    change_next(op);
}

/* ---- the request ---- */

/* An empty list of operations is none, but it means that nothing is replaced. */
static enum err read_operations(struct metadata_op *op, enum target target,
                                struct slice body)
{
    struct failure *why = &op->call->why;
    struct slice value = scan_member(body, operations_of[target]), first;
    if (!value.ptr || scan_type(value) == SCAN_NULL)
        return OK;
    if (scan_type(value) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "Validation error: Expected array at \"%s\"",
                       operations_of[target]);
    struct scan_members members = scan_members(value);
    if (!scan_next_element(&members, &first))
        return OK;
    op->operations[target] = value;
    return metadata_check(value, why);
}

static enum err read_request(struct metadata_op *op, struct slice body)
{
    struct slice metadata = scan_member(body, "metadata");
    bool operates = scan_type(scan_member(body, "operations")) == SCAN_ARRAY;
    enum err refused = OK;
    for (unsigned i = 0; !refused && i < TARGET_COUNT; i++)
        refused = read_operations(op, (enum target)i, body);
    if (refused || operates || !metadata.ptr)
        return refused;
    if (scan_type(metadata) != SCAN_OBJECT)
        return explain(&op->call->why, ERR_INVALID,
                       "Validation error: Expected object at \"metadata\"");
    op->replacement = metadata;
    return OK;
}

enum err run_metadata_put(struct api_call *call)
{
    struct intake *intake;
    struct slice body;
    enum err refused = intake_end(call, &intake, &body);
    if (refused)
        return refused;

    struct metadata_op *op = mem_new(struct metadata_op);
    op->call = call;
    op->intake = intake;
    refused = read_request(op, body);
    if (refused) {
        finish(op);
        return refused;
    }
    call->busy = true;
    op->change.replacement = op->replacement;
    op->change.operations = op->operations[TARGET_SELF];
    if (op->replacement.ptr || op->operations[TARGET_SELF].ptr)
        run_change_metadata(api_engine(call->api), call->env, call->params[0], &op->change,
                            on_self_changed);
    else
        run_read_begin(call->env, call->params[0], &op->read, on_self_read);
    return OK;
}

/* ---- reading ---- */

enum err run_metadata_get(struct api_call *call)
{
    struct metadata_op *op = mem_new(struct metadata_op);
    call->busy = true;
    op->call = call;
    run_read_begin(call->env, call->params[0], &op->read, on_self_read);
    return OK;
}
