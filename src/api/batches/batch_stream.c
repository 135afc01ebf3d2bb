/* batch_stream.c - the second of the two calls of SDK 4.3: receives items, seals the batch.
 *
 *   lines ─► items ─► the stored batch ─► items joined with those received before
 *                                            ├─► some are missing: sealed false
 *                                            └─► complete: one commit, then sealed true
 *
 * A client that gets sealed false or no response sends all items again. */
#include "api/batches/batch_commit.h"
#include "api/batches/batch_lines.h"
#include "api/batches/batches.h"
#include "api/triggers/trigger_options.h"
#include "base/mem.h"

struct item_stream {
    struct batch_commit commit; /* first */
    struct api_call *call;
    struct batch_lines lines;
    struct batch_load load;
    struct open_batch *batch; /* set while it is being sealed */
    size_t accepted, repeated;
};

static struct open_batches *open_of(const struct item_stream *stream)
{
    return api_open_batches(stream->call->api);
}

static void destroy(struct item_stream *stream)
{
    batch_lines_finish(&stream->lines);
    batch_commit_finish(&stream->commit);
    batch_finish(&stream->load.batch);
    free(stream);
}

static void item_stream_refuse(struct item_stream *stream, enum err err)
{
    api_reply_error(stream->call, err);
    destroy(stream);
}

/* ---- the pieces ---- */

static void on_gone(struct api_call *call)
{
    destroy(call->state);
    api_reply_gone(call);
}

static enum err item_stream_begin(struct api_call *call, struct item_stream **stream)
{
    struct slice type = http_header(call->x, "content-type");
    if (!slice_starts(type, "application/x-ndjson") &&
        !slice_starts(type, "application/ndjson"))
        return explain(&call->why, ERR_MEDIA_TYPE,
                       "Content-Type must be application/x-ndjson");
    struct item_stream *new = mem_new(struct item_stream);
    new->call = call;
    new->lines.call = call;
    new->lines.open = api_open_batches(call->api);
    new->lines.env = call->env;
    new->lines.number = 1;
    new->lines.may_write = !api_check_scope(call, "write", "batch", call->params[0]);
    call->state = *stream = new;
    call->on_gone = on_gone;
    return OK;
}

enum err batch_items_piece(struct api_call *call, struct slice piece)
{
    struct item_stream *stream = call->state;
    enum err err = stream ? OK : item_stream_begin(call, &stream);
    if (err)
        return err;
    err = batch_lines_take(&stream->lines, piece);
    if (err)
        destroy(stream);
    return err;
}

/* ---- the replies ---- */

static void reply(struct item_stream *stream, const struct batch *batch, uint32_t came)
{
    struct api_call *call = stream->call;
    bool sealed = came == batch->run_count;
    uint64_t seq = stream->commit.op.seq;
    struct buf out = { 0 };

    buf_print(&out,
              "{\"id\":\"%s\",\"itemsAccepted\":%zu,\"itemsDeduplicated\":%zu,"
              "\"sealed\":%s,\"runCount\":%u",
              batch->id, stream->accepted, stream->repeated, sealed ? "true" : "false",
              batch->run_count);
    if (!sealed)
        buf_print(&out, ",\"enqueuedCount\":%u,\"expectedCount\":%u", came,
                  batch->run_count);
    buf_add_char(&out, '}');
    api_add_seq(call, seq);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    destroy(stream);
}

/* ---- sealing ---- */

static enum err being_sealed(struct api_call *call)
{
    api_add_header(call, "x-should-retry", SLICE("true"));
    return explain(&call->why, ERR_STORE,
                   "The items of this batch are being written; try again");
}

/* ERR_CONFLICT means that another stream has sealed the batch since this one read it. */
static void on_sealed(struct batch_commit *commit, enum err status)
{
    struct item_stream *stream = container_of(commit, struct item_stream, commit);
    if (status == ERR_CONFLICT)
        status = being_sealed(stream->call);
    open_batches_drop(open_of(stream), stream->batch);
    stream->batch = NULL;
    if (status)
        item_stream_refuse(stream, status);
    else
        reply(stream, &commit->batch, commit->batch.run_count);
}

/* Moves the triggers out of the items. The items stay, for the memory that they account
 * for. */
static void move_items(struct item_stream *stream)
{
    struct batch_commit *commit = &stream->commit;
    struct batch *batch = &commit->batch;
    uint32_t count = stream->batch->run_count;

    commit->items = mem_new_array(struct trigger, count);
    batch->errors = mem_new_array(struct batch_error, count);
    for (uint32_t i = 0; i < count; i++) {
        struct batch_item *item = stream->batch->items[i];
        if (item->too_large) {
            batch->errors[batch->error_count++] =
                (struct batch_error){ i, bytes_ref(item->trigger.run.task) };
            continue;
        }
        commit->items[commit->count++] = item->trigger;
        item->trigger = (struct trigger){ 0 };
    }
}

static void seal(struct item_stream *stream)
{
    struct batch_commit *commit = &stream->commit;
    stream->batch->sealing = true;
    commit->call = stream->call;
    commit->batch = stream->load.batch;
    stream->load.batch = (struct batch){ 0 };
    free(commit->batch.errors);
    commit->batch.error_count = 0;
    free(commit->batch.runs);
    commit->batch.runs = NULL;
    move_items(stream);
    commit->seals = true;
    commit->done = on_sealed;
    batch_commit_begin(commit);
}

/* ---- joining ---- */

static void join(struct item_stream *stream, struct open_batch *batch)
{
    struct batch_lines *lines = &stream->lines;
    stream->repeated = lines->repeated;
    for (uint32_t i = 0; i < batch->run_count; i++) {
        struct batch_item *item = lines->items[i];
        if (!item)
            continue;
        if (batch->items[i]) {
            stream->repeated++;
            continue;
        }
        batch->items[i] = item;
        lines->items[i] = NULL;
        batch->count++;
        stream->accepted++;
    }
}

static enum err check_batch(struct item_stream *stream, enum err status)
{
    struct api_call *call = stream->call;
    const struct batch *batch = &stream->load.batch;
    const struct identity *who = call->identity;
    struct slice hash = { (const char *)who->hash, sizeof(who->hash) };

    if (status == ERR_NOT_FOUND)
        return explain(&call->why, ERR_RULE, "Batch %.*s not found",
                       SLICE_ARG(text_clip(call->params[0])));
    if (status)
        return status;
    if (who->one_time && !slice_equal(bytes_slice(batch->token), hash))
        return explain(&call->why, ERR_RULE,
                       "Cannot trigger a batch with a one-time use token as it has already "
                       "been used.");
    if (!batch->sealed_at && stream->lines.highest >= batch->run_count)
        return explain(&call->why, ERR_RULE, "Item index %u exceeds batch runCount %u",
                       stream->lines.highest, batch->run_count);
    return OK;
}

static void on_old_blocked(struct blocking *blocking, enum err status)
{
    struct batch_commit *commit = container_of(blocking, struct batch_commit, blocking);
    struct item_stream *stream = container_of(commit, struct item_stream, commit);
    const struct batch *batch = &stream->load.batch;
    if (status)
        item_stream_refuse(stream, status);
    else
        reply(stream, batch, batch->run_count);
}

/* Replies for a sealed batch. Its parent may not have been blocked yet. */
static void reply_sealed(struct item_stream *stream, const struct batch *batch)
{
    if (batch_blocks(batch))
        blocking_begin_batch(&stream->commit.blocking, stream->call, batch, on_old_blocked);
    else
        reply(stream, batch, batch->run_count);
}

static void on_loaded(struct batch_load *load, enum err status)
{
    struct item_stream *stream = container_of(load, struct item_stream, load);
    const struct batch *batch = &load->batch;
    enum err err = check_batch(stream, status);
    if (err) {
        item_stream_refuse(stream, err);
        return;
    }
    if (batch->sealed_at) {
        reply_sealed(stream, batch);
        return;
    }
    struct open_batch *open =
        open_batches_get(open_of(stream), stream->call->env, batch->id, batch->run_count);
    if (!open) {
        item_stream_refuse(stream, batch_lines_no_quota(stream->call));
        return;
    }
    if (open->sealing) {
        item_stream_refuse(stream, being_sealed(stream->call));
        return;
    }
    join(stream, open);
    if (open->count < open->run_count) {
        reply(stream, batch, open->count);
        return;
    }
    stream->batch = open;
    seal(stream);
}

enum err batch_items(struct api_call *call)
{
    struct item_stream *stream = call->state;
    enum err err = stream ? OK : item_stream_begin(call, &stream);
    if (err)
        return err;
    err = batch_lines_end(&stream->lines);
    if (!err && !stream->lines.count)
        err = explain(&call->why, ERR_INVALID,
                      "Request body is empty; send one item per line");
    if (err) {
        destroy(stream);
        return err;
    }
    call->busy = true;
    call->on_gone = NULL;
    batch_load_begin(call, call->params[0], &stream->load, on_loaded);
    return OK;
}
