/* run_metadata.c - reads and changes the metadata of a run, its parent and its root.
 *
 *   check all ─► read the run: which parent and root? ─► one commit ─► reply with its own
 *
 * If a run has no parent or root, its own metadata is changed instead. A relative that
 * is gone or can no longer change is skipped: after an error a client would repeat the
 * changes that were made. */
#include "api/request/body_fields.h"
#include "api/request/unread.h"
#include "api/runs/run_body.h"
#include "api/runs/run_changes.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/engine/run_commands.h"
#include "core/model/metadata.h"

static const char no_run[] = "Task Run not found";

enum target { TARGET_SELF, TARGET_PARENT, TARGET_ROOT, TARGET_COUNT };

/* Members of a body: the operations on each target, and the replacement for all
 * metadata. */
static const char *const members[TARGET_COUNT + 1] = {
    "operations",
    "parentOperations",
    "rootOperations",
    "metadata",
};

struct metadata_op {
    struct api_call *call;
    struct body_fields *fields; /* the slices below point into it */
    struct slice replacement;
    struct slice operations[TARGET_COUNT]; /* absent: no change */
    struct change_metadata changes[TARGET_COUNT];
    struct run_read read;
};

static void run_metadata_finish(struct metadata_op *op)
{
    body_fields_free(op->fields);
    free(op);
}

static void reply(struct metadata_op *op, const struct run *run)
{
    struct api_call *call = op->call;
    struct buf body = { 0 };
    uint64_t seq = 0;
    for (unsigned i = 0; i < TARGET_COUNT; i++)
        if (op->changes[i].command.seq > seq)
            seq = op->changes[i].command.seq;
    buf_add_text(&body, "{\"metadata\":");
    buf_add(&body, run_body_metadata(run));
    buf_add_char(&body, '}');
    api_add_seq(call, seq);
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    run_metadata_finish(op);
}

static void run_metadata_refuse(struct metadata_op *op, enum err status,
                                const struct failure *why)
{
    api_reply_refused(op->call, status, why, no_run);
    run_metadata_finish(op);
}

/* ---- the changes ---- */

static void on_changed(struct command *command, enum err status)
{
    struct metadata_op *op =
        container_of(command, struct metadata_op, changes[TARGET_SELF].command);
    if (status)
        run_metadata_refuse(op, status, &command->why);
    else
        reply(op, command->run);
}

static void change_all(struct metadata_op *op, const struct run *run)
{
    struct api_call *call = op->call;
    const struct run_rare *rare = run_rare(run);
    const struct bytes *relatives[TARGET_COUNT] = {
        [TARGET_PARENT] = rare->parent, [TARGET_ROOT] = rare->root
    };
    struct change_metadata *self = &op->changes[TARGET_SELF];
    struct slice id = slice_of(run->id);

    self->replacement = op->replacement;
    self->operations = op->operations[TARGET_SELF];
    self->request_id = api_request_id(call);
    run_change_metadata(api_engine(call->api), call->env, id, self, on_changed);
    for (unsigned i = TARGET_PARENT; i < TARGET_COUNT; i++) {
        op->changes[i].operations = op->operations[i];
        if (op->operations[i].ptr)
            run_join_metadata(&self->command, relatives[i] ? bytes_slice(relatives[i]) : id,
                              &op->changes[i]);
    }
}

static bool changes_something(const struct metadata_op *op)
{
    bool something = op->replacement.ptr != NULL;
    for (unsigned i = 0; i < TARGET_COUNT; i++)
        something |= op->operations[i].ptr != NULL;
    return something;
}

static void on_read(struct run_read *read, enum err status)
{
    struct metadata_op *op = container_of(read, struct metadata_op, read);
    if (status)
        run_metadata_refuse(op, status, NULL);
    else if (changes_something(op))
        change_all(op, read->run);
    else
        reply(op, read->run);
}

/* ---- the request ---- */

/* Reads the operations on one target. An empty list changes nothing, but read_request
 * does not replace the metadata if there is a list. */
static enum err read_operations(struct metadata_op *op, enum target target,
                                struct slice value)
{
    struct failure *why = &op->call->why;
    struct slice first;
    if (!value.ptr || scan_type(value) == SCAN_NULL)
        return OK;
    if (scan_type(value) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "Validation error: Expected array at \"%s\"",
                       members[target]);
    struct scan_members elements = scan_members(value);
    if (!scan_next_element(&elements, &first))
        return OK;
    op->operations[target] = value;
    return metadata_check(value, why);
}

static enum err read_request(struct metadata_op *op, struct slice body)
{
    struct slice values[TARGET_COUNT + 1];
    enum err refused = OK;
    members_find(body, members, TARGET_COUNT + 1, values);
    struct slice metadata = values[TARGET_COUNT];
    bool operates = scan_type(values[TARGET_SELF]) == SCAN_ARRAY;
    for (unsigned i = 0; !refused && i < TARGET_COUNT; i++)
        refused = read_operations(op, (enum target)i, values[i]);
    if (!refused && operates && scan_type(metadata) == SCAN_OBJECT)
        ignored_add_parameter(&op->call->ignored, SLICE("metadata"));
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
    struct body_fields *fields;
    struct slice body;
    enum err refused = body_fields_end(call, &fields, &body);
    if (refused)
        return refused;

    struct metadata_op *op = mem_new(struct metadata_op);
    op->call = call;
    op->fields = fields;
    refused = read_request(op, body);
    unread_report_body(call, body);
    if (!refused)
        refused = engine_check_quota(call->env, body.len, &call->why);
    if (refused) {
        run_metadata_finish(op);
        return refused;
    }
    call->busy = true;
    struct tracked *known = environment_find(call->env, call->params[0]);
    if (known && changes_something(op)) /* the commit begins in this turn */
        change_all(op, &known->run);
    else
        run_read_begin(call->env, call->params[0], &op->read, on_read);
    return OK;
}

/* ---- reading ---- */

enum err run_metadata_get(struct api_call *call)
{
    struct metadata_op *op = mem_new(struct metadata_op);
    call->busy = true;
    op->call = call;
    run_read_begin(call->env, call->params[0], &op->read, on_read);
    return OK;
}
