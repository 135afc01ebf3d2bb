/* batch_call.c - creates batches with all items in one request (SDK 3.x, 4.0 to 4.2).
 *
 *   pieces ─► items ─► one commit ─► reply
 *                          └► known idempotency key: the old batch's reply */
#include "api/batches/batch_commit.h"
#include "api/batches/batch_token.h"
#include "api/batches/batches.h"
#include "api/packets/packet_name.h"
#include "api/triggers/own_keys.h"
#include "api/triggers/trigger_options.h"
#include "base/json/item_array.h"
#include "base/json/scan.h"
#include "base/mem.h"

enum { ITEMS_MAX = 500 };

struct batch_call {
    struct batch_commit commit; /* first */
    struct api_call *call;
    bool v1;
    struct item_array body;
    struct batch_load old;
};

static void destroy(struct batch_call *op)
{
    batch_commit_finish(&op->commit);
    item_array_finish(&op->body);
    batch_finish(&op->old.batch);
    free(op);
}

static void batch_call_refuse(struct batch_call *op, enum err err)
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
        const struct trigger *item = op->commit.op.repeated ? NULL : &op->commit.items[i];
        bool known = cached || (item && (item->cached || item->joined));
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
    batch_add_token(op->call, batch->id, !op->commit.op.batch_cached, false);
    api_reply_json(op->call, 202, buf_slice(&out));
    buf_finish(&out);
}

static void reply(struct batch_call *op, const struct batch *batch, bool cached)
{
    uint64_t seq = op->commit.op.seq;
    api_add_seq(op->call, seq);
    if (op->v1)
        reply_v1(op, batch, cached);
    else
        reply_v2(op, batch);
    destroy(op);
}

static void on_old_blocked(struct blocking *blocking, enum err status)
{
    struct batch_commit *commit = container_of(blocking, struct batch_commit, blocking);
    struct batch_call *op = container_of(commit, struct batch_call, commit);
    if (status)
        batch_call_refuse(op, status);
    else
        reply(op, &op->old.batch, commit->op.batch_cached);
}

static void on_old(struct batch_load *load, enum err status)
{
    struct batch_call *op = container_of(load, struct batch_call, old);
    if (status)
        batch_call_refuse(op, status);
    else if (batch_blocks(&load->batch))
        blocking_begin_batch(&op->commit.blocking, op->call, &load->batch, on_old_blocked);
    else
        reply(op, &load->batch, op->commit.op.batch_cached);
}

static void on_committed(struct batch_commit *commit, enum err status)
{
    struct batch_call *op = container_of(commit, struct batch_call, commit);
    if (status)
        batch_call_refuse(op, status);
    else if (commit->op.batch_cached || commit->op.repeated)
        batch_load_begin(op->call, slice_of(commit->op.batch_id), &op->old, on_old);
    else
        reply(op, &commit->batch, false);
}

/* ---- the items ---- */

static enum err read_task(struct batch_call *op, struct buf *task)
{
    struct api_call *call = op->call;
    if (!scan_string(envelope_get(&op->body.item, "task"), task) || !task->len)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected string at \"items[%zu].task\"",
                       op->body.count);
    return api_check_scope(call, "batchTrigger", "tasks", buf_slice(task));
}

static void say_which(struct batch_call *op)
{
    struct failure *why = &op->call->why;
    struct failure inner = *why;
    explain(why, inner.code, "%.250s (items[%zu])", inner.text, op->body.count);
}

static const char *const item_members[] = { "task", "payload", "options", "context", NULL };

static enum err read_options(struct batch_call *op, struct slice task)
{
    struct trigger *trigger = &op->commit.items[op->commit.count];
    struct trigger_parent parent = { 0 }; /* ignored: the batch names the parent */
    struct trigger_place place = trigger_call_place(op->call);
    struct trigger_source source = {
        .task = task,
        .payload = envelope_get(&op->body.item, "payload"),
        .payload_text = envelope_payload_text(&op->body.item),
        .text_is_json = envelope_payload_is_json(&op->body.item),
        .options = envelope_get(&op->body.item, "options"),
        .is_item = true,
        .ignored = &op->call->ignored,
    };
    envelope_report_others(&op->body.item, "items[].", item_members, source.ignored, NULL);
    enum err err = trigger_options_read(&source, &place, trigger, &parent, &op->call->why);
    own_keys_note(op->call, trigger, place.now_ms);
    if (!err)
        err = packet_check_named(op->call, &trigger->run);
    if (err)
        say_which(op);
    trigger->run.batch_index = (uint32_t)op->commit.count++;
    bytes_unref(parent.run_id);
    return err;
}

/* Reads one item. Items beyond the limit are only counted, for the error message. */
static enum err read_item(struct item_array *body)
{
    struct batch_call *op = container_of(body, struct batch_call, body);
    struct buf task = { 0 };
    if (body->count >= ITEMS_MAX)
        return OK;
    enum err err = read_task(op, &task);
    if (!err)
        err = read_options(op, buf_slice(&task));
    buf_finish(&task);
    return err;
}

/* ---- the body ---- */

static void on_gone(struct api_call *call)
{
    destroy(call->state);
    api_reply_gone(call);
}

static struct batch_call *state_of(struct api_call *call)
{
    struct batch_call *op = call->state;
    if (op)
        return op;
    call->state = op = mem_new(struct batch_call);
    call->on_gone = on_gone;
    op->call = call;
    op->commit.items = mem_new_array(struct trigger, ITEMS_MAX);
    op->body.on_item = read_item;
    op->body.why = &call->why;
    return op;
}

enum err batch_call_piece(struct api_call *call, struct slice piece)
{
    struct batch_call *op = state_of(call);
    enum err err = item_array_feed(&op->body, piece);
    if (err)
        destroy(op);
    return err;
}

static enum err check_count(struct api_call *call, size_t count)
{
    if (!count)
        return explain(&call->why, ERR_INVALID, "Batch cannot be triggered with no items");
    if (count > ITEMS_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Batch size of %zu is too large. Maximum allowed batch size is %d.",
                       count, ITEMS_MAX);
    return OK;
}

/* Members outside of the items. SDK 3.3.17 sends dependentAttempt, the attempt that was
 * a run's parent in the old engine. */
static const char *const outer_members[] = { "items", "parentRunId", "dependentAttempt",
                                             "resumeParentOnCompletion", NULL };

static enum err read_parent(struct batch_call *op)
{
    const struct envelope *outer = &op->body.outer;
    struct failure *why = &op->call->why;
    struct slice parent = envelope_get(outer, "parentRunId");
    struct slice resume = envelope_get(outer, "resumeParentOnCompletion");
    struct slice attempt = envelope_get(outer, "dependentAttempt");
    struct buf id = { 0 };
    envelope_report_others(outer, "", outer_members, &op->call->ignored, NULL);
    if (parent.ptr && !scan_string(parent, &id))
        return explain(why, ERR_INVALID,
                       "Validation error: Expected string at \"parentRunId\"");
    if (id.len)
        op->commit.batch.parent = bytes_create(buf_slice(&id));
    op->commit.batch.resume = scan_type(resume) == SCAN_TRUE;
    buf_finish(&id);
    if (resume.ptr && scan_type(resume) != SCAN_TRUE && scan_type(resume) != SCAN_FALSE)
        return explain(why, ERR_INVALID,
                       "Validation error: Expected boolean at "
                       "\"resumeParentOnCompletion\"");
    if (attempt.ptr && scan_type(attempt) != SCAN_STRING && !trigger_asks_nothing(attempt))
        return explain(why, ERR_INVALID,
                       "Validation error: Expected string at \"dependentAttempt\"");
    return OK;
}

static enum err read_key(struct batch_call *op)
{
    struct slice key = http_header(op->call->x, "idempotency-key");
    struct slice ttl = http_header(op->call->x, "idempotency-key-ttl");
    struct slice parts[] = { SLICE("v1"), key };
    int64_t life_ms;
    if (!op->v1 || !key.len)
        return OK;
    if (text_utf16_length(key) > TRIGGER_KEY_MAX || !text_is_utf8(key))
        return explain(&op->call->why, ERR_INVALID,
                       "Headers Error: idempotency-key must have at most %d characters of "
                       "UTF-8",
                       TRIGGER_KEY_MAX);
    if (trigger_key_ttl_ms(ttl, &life_ms))
        return explain(&op->call->why, ERR_INVALID,
                       "Headers Error: idempotency-key-ttl '%.*s' is not a duration like "
                       "1h30m",
                       SLICE_ARG(text_clip(ttl)));
    op->commit.op.batch_key = batch_claim_key(parts, 2);
    op->commit.op.batch_key_expires_at = op->commit.batch.created_at + life_ms;
    op->commit.batch.key = bytes_create(key);
    return OK;
}

static enum err read_rest(struct batch_call *op)
{
    struct api_call *call = op->call;
    enum err err = item_array_close(&op->body);
    if (!err)
        err = check_count(call, op->body.count);
    if (err)
        return err;
    batch_commit_new(&op->commit, call, (uint32_t)op->body.count);
    err = read_parent(op);
    if (!err)
        err = read_key(op);
    if (!err)
        trigger_call_claims(call,
                            op->v1 ? SLICE(CLAIM_NO_TASK "batch v1")
                                   : SLICE(CLAIM_NO_TASK "batch v2"),
                            &op->commit.op);
    return err;
}

static enum err batch_call_begin(struct api_call *call, bool v1)
{
    struct batch_call *op = state_of(call);
    op->v1 = v1;
    enum err err = read_rest(op);
    if (err) {
        destroy(op);
        return err;
    }
    item_array_finish(&op->body);
    op->body = (struct item_array){ 0 };
    op->commit.seals = true;
    op->commit.shows_items = v1;
    op->commit.done = on_committed;
    call->busy = true;
    call->on_gone = NULL;
    batch_commit_begin(&op->commit);
    return OK;
}

enum err batch_call_v1(struct api_call *call)
{
    return batch_call_begin(call, true);
}

enum err batch_call_v2(struct api_call *call)
{
    return batch_call_begin(call, false);
}
