/* batch_call.c - batches that come in one request: SDK 3.x, and 4.0 to 4.2.
 *
 *   body ─► items, some per turn ─► one commit ─► reply
 *                                     └► the key was known: the old batch's reply
 */
#include "api/batch_commit.h"
#include "api/batches.h"
#include "api/intake.h"
#include "api/trigger_options.h"
#include "base/mem.h"
#include "base/scan.h"

enum { ITEMS_MAX = 500 };

struct batch_call {
    struct batch_commit commit; /* first */
    struct api_call *call;
    bool v1;
    struct intake *intake;
    struct scan_members rest; /* of the items */
    struct buf payload;       /* the text of one */
    struct deferred deferred;
    struct batch_load old;
};

static void destroy(struct batch_call *op)
{
    batch_commit_finish(&op->commit);
    intake_free(op->intake);
    buf_finish(&op->payload);
    batch_finish(&op->old.batch);
    free(op);
}

static void refuse(struct batch_call *op, enum err err)
{
    api_reply_error(op->call, err);
    destroy(op);
}

/* ---- the reply ---- */

static void add_v1_runs(struct buf *out, const struct batch_call *op,
                        const struct batch *batch, bool cached)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct batch_run *run = &batch->runs[i];
        bool known = cached || (!op->commit.op.repeated && op->commit.items[i].cached);
        buf_print(out, "%s{\"id\":\"%s\",\"taskIdentifier\":", i ? "," : "", run->id);
        buf_add_json(out, run->task ? bytes_slice(run->task) : SLICE(""));
        buf_print(out, ",\"isCached\":%s", known ? "true" : "false");
        if (run->key) {
            buf_add_text(out, ",\"idempotencyKey\":");
            buf_add_json(out, bytes_slice(run->key));
        }
        buf_add_char(out, '}');
    }
}

/* The 3.x SDK signs its own token from the claims. */
static void reply_v1(struct batch_call *op, const struct batch *batch, bool cached)
{
    struct buf out = { 0 };
    buf_print(&out, "{\"id\":\"%s\",\"isCached\":%s", batch->id, cached ? "true" : "false");
    if (batch->key) {
        buf_add_text(&out, ",\"idempotencyKey\":");
        buf_add_json(&out, bytes_slice(batch->key));
    }
    buf_add_text(&out, ",\"runs\":[");
    add_v1_runs(&out, op, batch, cached);
    buf_add_text(&out, "]}");
    api_add_token(op->call, NULL, 0);
    api_reply_json(op->call, 202, buf_slice(&out));
    buf_finish(&out);
}

static void reply_v2(struct batch_call *op, const struct batch *batch)
{
    struct buf out = { 0 };
    buf_print(&out, "{\"id\":\"%s\",\"runCount\":%u}", batch->id, batch->run_count);
    batch_add_token(op->call, batch->id, false);
    api_reply_json(op->call, 202, buf_slice(&out));
    buf_finish(&out);
}

static void reply(struct batch_call *op, const struct batch *batch, bool cached)
{
    uint64_t seq = op->commit.op.seq;
    api_add_seq(op->call, seq ? seq : op->call->env->applied);
    if (op->v1)
        reply_v1(op, batch, cached);
    else
        reply_v2(op, batch);
    destroy(op);
}

static void on_old(struct batch_load *load, enum err status)
{
    struct batch_call *op = container_of(load, struct batch_call, old);
    if (status)
        refuse(op, status);
    else
        reply(op, &load->batch, op->commit.op.batch_cached);
}

static void on_committed(struct batch_commit *commit, enum err status)
{
    struct batch_call *op = container_of(commit, struct batch_call, commit);
    if (status)
        refuse(op, status);
    else if (commit->op.batch_cached || commit->op.repeated)
        batch_load_begin(op->call, slice_of(commit->op.batch_id), &op->old, on_old);
    else
        reply(op, &commit->batch, false);
}

/* ---- one item after the other ---- */

static enum err read_task(struct batch_call *op, struct slice item, struct buf *task)
{
    struct api_call *call = op->call;
    if (scan_type(item) != SCAN_OBJECT || scan_has_duplicate(item))
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected an object at \"items[%zu]\"",
                       op->commit.count);
    if (!scan_string(scan_member(item, "task"), task) || !task->len)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected string at \"items[%zu].task\"",
                       op->commit.count);
    return api_check_scope(call, "batchTrigger", "tasks", buf_slice(task));
}

static void say_which(struct batch_call *op)
{
    struct failure *why = &op->call->why;
    struct failure inner = *why;
    explain(why, inner.code, "%.250s (items[%zu])", inner.text, op->commit.count);
}

static enum err read_item(struct batch_call *op, struct slice item)
{
    struct trigger *trigger = &op->commit.items[op->commit.count];
    struct trigger_parent parent = { 0 };
    struct trigger_place place = { op->call->env->workers, op->commit.batch.created_at };
    struct buf task = { 0 };
    enum err err = read_task(op, item, &task);
    if (!err) {
        struct trigger_source source = {
            .task = buf_slice(&task),
            .payload = scan_member(item, "payload"),
            .options = scan_member(item, "options"),
        };
        buf_clear(&op->payload);
        if (scan_string(source.payload, &op->payload))
            source.payload_text = buf_slice(&op->payload);
        err = trigger_options_read(&source, &place, trigger, &parent, &op->call->why);
        if (err)
            say_which(op);
        trigger->run.batch_index = (uint32_t)op->commit.count++;
    }
    bytes_unref(parent.run_id);
    buf_finish(&task);
    return err;
}

static void read_items(struct deferred *deferred)
{
    struct batch_call *op = container_of(deferred, struct batch_call, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct slice item;

    while (op->commit.count < op->commit.batch.run_count) {
        bool more = scan_next_element(&op->rest, &item);
        enum err err = more ? read_item(op, item) : ERR_INTERNAL;
        if (err) {
            refuse(op, err);
            return;
        }
        if (!loop_time_left(loop)) {
            loop_defer(loop, &op->deferred);
            return;
        }
    }
    intake_free(op->intake);
    op->intake = NULL;
    batch_commit_begin(&op->commit);
}

/* ---- the body ---- */

struct batch_body {
    struct slice items, parent, resume;
};

static enum err read_members(struct api_call *call, struct slice object,
                             struct batch_body *body)
{
    struct scan_members members = scan_members(object);
    struct slice key, value;
    while (scan_next_member(&members, &key, &value)) {
        if (scan_key_is(key, SLICE("items")))
            body->items = value;
        else if (scan_key_is(key, SLICE("parentRunId")))
            body->parent = value;
        else if (scan_key_is(key, SLICE("resumeParentOnCompletion")))
            body->resume = value;
    }
    if (scan_type(body->items) != SCAN_ARRAY)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected array at \"items\"");
    if (body->parent.ptr && scan_type(body->parent) != SCAN_STRING)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected string at \"parentRunId\"");
    return OK;
}

static enum err count_items(struct api_call *call, struct slice items, uint32_t *count)
{
    struct scan_members members = scan_members(items);
    struct slice item;
    uint32_t found = 0;
    while (scan_next_element(&members, &item))
        found++;
    if (!found)
        return explain(&call->why, ERR_INVALID, "Batch cannot be triggered with no items");
    if (found > ITEMS_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Batch size of %u is too large. Maximum allowed batch size is %d.",
                       found, ITEMS_MAX);
    *count = found;
    return OK;
}

static enum err read_key(struct batch_call *op)
{
    struct slice key = http_header(op->call->x, "idempotency-key");
    struct slice ttl = http_header(op->call->x, "idempotency-key-ttl");
    struct slice parts[] = { SLICE("v1"), key };
    if (!op->v1 || !key.len)
        return OK;
    if (text_utf16_length(key) > TRIGGER_KEY_MAX || !text_is_utf8(key))
        return explain(&op->call->why, ERR_INVALID,
                       "Headers Error: idempotency-key must have at most %d characters of "
                       "UTF-8",
                       TRIGGER_KEY_MAX);
    op->commit.op.batch_key = batch_claim_key(parts, 2);
    op->commit.op.batch_key_expires_at =
        op->commit.batch.created_at + trigger_key_ttl_ms(ttl);
    op->commit.batch.key = bytes_create(key);
    return OK;
}

static enum err read_body(struct batch_call *op)
{
    struct batch_body body = { 0 };
    struct slice object;
    struct buf parent = { 0 };
    uint32_t count = 0;
    enum err err = intake_end(op->call, &op->intake, &object);
    if (!err)
        err = read_members(op->call, object, &body);
    if (!err)
        err = count_items(op->call, body.items, &count);
    if (err)
        return err;
    batch_commit_new(&op->commit, op->call, count);
    op->commit.items = mem_new_array(struct trigger, count);
    op->rest = scan_members(body.items);
    if (scan_string(body.parent, &parent) && parent.len)
        op->commit.batch.parent = bytes_create(buf_slice(&parent));
    op->commit.batch.resume = scan_type(body.resume) == SCAN_TRUE;
    buf_finish(&parent);
    return read_key(op);
}

static enum err begin(struct api_call *call, bool v1)
{
    struct batch_call *op = mem_new(struct batch_call);
    op->call = call;
    op->v1 = v1;
    op->deferred.fn = read_items;
    list_init(&op->deferred.link);
    enum err err = read_body(op);
    if (!err)
        err = trigger_call_claims(call, v1 ? SLICE("\nbatch v1") : SLICE("\nbatch v2"),
                                  &op->commit.op);
    if (err) {
        destroy(op);
        return err;
    }
    op->commit.seals = true;
    op->commit.shows_items = v1;
    op->commit.done = on_committed;
    call->busy = true;
    loop_defer(engine_loop(api_engine(call->api)), &op->deferred);
    return OK;
}

enum err batch_call_v1(struct api_call *call)
{
    return begin(call, true);
}

enum err batch_call_v2(struct api_call *call)
{
    return begin(call, false);
}
