/* batch_commit.c - commits the runs of a batch together with its document.
 *
 * Before that it gives the runs their parent; after it, it blocks a parent that waits. */
#include "api/batches/batch_commit.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/state/ends.h"

void batch_commit_new(struct batch_commit *commit, struct api_call *call,
                      uint32_t run_count)
{
    struct batch *batch = &commit->batch;
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    commit->call = call;
    batch->run_count = run_count;
    batch->created_at = batch->updated_at = now;
    text_make_id("batch", now, batch->id);
    if (call->identity->one_time)
        batch->token =
            bytes_create((struct slice){ (const char *)call->identity->hash, HASH_LEN });
}

struct bytes *batch_claim_key(const struct slice *parts, size_t count)
{
    unsigned char hash[HASH_LEN];
    struct buf text = { 0 };
    for (size_t i = 0; i < count; i++) {
        buf_add(&text, parts[i]);
        buf_add_char(&text, '\0');
    }
    vault_hash(buf_slice(&text), hash);
    buf_finish(&text);
    return bytes_create((struct slice){ (const char *)hash, sizeof(hash) });
}

void batch_commit_finish(struct batch_commit *commit)
{
    commit->op.items = commit->items;
    commit->op.count = commit->count;
    trigger_op_finish(&commit->op);
    free(commit->items);
    bytes_unref(commit->document.name);
    bytes_unref(commit->document.body);
    parent_lookup_finish(&commit->parent);
    batch_finish(&commit->batch);
}

/* ---- the document ---- */

static void note_runs(struct batch_commit *commit)
{
    struct batch *batch = &commit->batch;
    size_t older = 0; /* items whose runs this batch did not create */
    if (!batch->runs)
        batch->runs = mem_new_array(struct batch_run, commit->count);
    batch->count = commit->count;
    for (size_t i = 0; i < commit->count; i++) {
        const struct trigger *item = &commit->items[i];
        memcpy(batch->runs[i].id, item->id, sizeof(item->id));
        older += item->cached || item->joined;
        if (!commit->shows_items)
            continue;
        bytes_set(&batch->runs[i].task, item->run.task);
        bytes_set(&batch->runs[i].key, run_rare(&item->run)->idempotency_key);
    }
    batch->complete = commit->count && older == commit->count;
}

/* Called before each attempt to commit: items may meanwhile have resolved to older runs. */
static void prepare(struct trigger_op *op)
{
    struct batch_commit *commit = container_of(op, struct batch_commit, op);
    struct batch *batch = &commit->batch;
    if (commit->seals) {
        note_runs(commit);
        batch->updated_at = batch->sealed_at = loop_wall_ms(engine_loop(op->engine));
    }
    bytes_unref(commit->document.body);
    commit->document.body = batch_write(batch);
}

/* ---- the operation ---- */

static void batch_commit_report(struct batch_commit *commit, enum err status)
{
    commit->done(commit, status);
}

static void on_blocked(struct blocking *blocking, enum err status)
{
    batch_commit_report(container_of(blocking, struct batch_commit, blocking), status);
}

static void on_triggered(struct trigger_op *op, enum err status)
{
    struct batch_commit *commit = container_of(op, struct batch_commit, op);
    bool is_new = !op->batch_cached && !op->repeated;
    if (!status && is_new && commit->seals)
        log_decision("batch sealed", commit->call->env->id, NULL, "it has all its items",
                     "batch", commit->batch.id, "runs", log_number(commit->batch.count),
                     NULL);
    if (!status && commit->seals)
        ends_notify(op->engine, op->env, slice_of(commit->batch.id));
    if (!status && is_new && batch_blocks(&commit->batch)) {
        blocking_begin_batch(&commit->blocking, commit->call, &commit->batch, on_blocked);
        return;
    }
    if (status && op->why.code == status)
        commit->call->why = op->why;
    if (op->token_used)
        explain(&commit->call->why, status,
                "Cannot trigger a batch with a one-time use token as it has already been "
                "used.");
    batch_commit_report(commit, status);
}

static void batch_commit_start(struct batch_commit *commit)
{
    struct api_call *call = commit->call;
    struct trigger_op *op = &commit->op;
    struct batch *batch = &commit->batch;

    commit->document = (struct document){ .kind = DOC_BATCH,
                                          .version = batch->version,
                                          .name = bytes_create(slice_of(batch->id)) };
    memcpy(op->batch_id, batch->id, sizeof(batch->id));
    op->items = commit->items;
    op->count = commit->count;
    op->batch = &commit->document;
    op->prepare = prepare;
    op->done = on_triggered;
    enum err refused = trigger_begin(api_engine(call->api), call->env, op);
    if (refused)
        on_triggered(op, refused);
}

static void on_parent(struct parent_lookup *lookup, enum err status)
{
    struct batch_commit *commit = container_of(lookup, struct batch_commit, parent);
    if (status) {
        batch_commit_report(commit, status);
        return;
    }
    for (size_t i = 0; i < commit->count; i++)
        parent_lookup_adopt(lookup, commit->batch.resume, &commit->items[i].run);
    batch_commit_start(commit);
}

void batch_commit_begin(struct batch_commit *commit)
{
    struct bytes *name = bytes_create(slice_of(commit->batch.id));
    for (size_t i = 0; i < commit->count; i++) {
        bytes_set(&commit->items[i].run.batch, name);
        commit->items[i].run.from_batch = true;
    }
    bytes_unref(name);
    if (commit->batch.parent)
        parent_lookup_begin(&commit->parent, commit->call,
                            bytes_slice(commit->batch.parent), on_parent);
    else
        batch_commit_start(commit);
}
