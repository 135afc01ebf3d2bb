/* batch_list.c - lists the batches of an environment page by page, newest first.
 *
 *   documents of one page ─► read one after another, in time slices ─► the page
 *
 * The store scans them by id, which begins with the creation time; the cursor is the id
 * of the last batch shown. Unfinished runs are counted in memory: a run that is not
 * there has ended. */
#include "api/batches/batch.h"
#include "api/batches/batches.h"
#include "api/request/paging.h"
#include "base/json/members.h"
#include "base/mem.h"

enum {
    PAGE_DEFAULT = 25,
    /* of documents read at once; a batch of 1000 runs has about 30 KiB */
    LOOK_BYTES = 4 << 20,
};

struct batch_listing {
    struct api_call *call;
    struct store_scan scan;
    struct deferred deferred;
    size_t at; /* index of the next one in scan.documents */
    struct buf out;
    char last[ID_MAX]; /* id of the batch shown last; "": none */
};

static void listing_destroy(struct batch_listing *op)
{
    store_read_finish(&op->scan.read);
    buf_finish(&op->out);
    free(op);
}

static void add_item(struct batch_listing *op, const struct batch *batch)
{
    struct buf *out = &op->out;
    const struct environment *env = op->call->env;
    size_t unfinished = batch_count_unfinished(batch, env);
    buf_print(out, "%s{\"id\":\"%s\",\"status\":\"%s\"", *op->last ? "," : "", batch->id,
              batch_status(batch, env));
    members_add_text(out, "idempotencyKey", bytes_slice(batch->key));
    members_add_time(out, "createdAt", batch->created_at);
    members_add_time(out, "updatedAt", batch->updated_at);
    members_add_number(out, "runCount", batch->run_count);
    members_add_number(out, "endedCount", (int64_t)(batch->count - unfinished));
    buf_add_char(out, '}');
    snprintf(op->last, sizeof(op->last), "%s", batch->id);
}

static void reply(struct batch_listing *op)
{
    buf_add_text(&op->out, "],\"pagination\":{");
    if (op->scan.more)
        members_add_text(&op->out, "next", slice_of(op->last));
    buf_add_text(&op->out, "}}");
    api_reply_json(op->call, 200, buf_slice(&op->out));
    listing_destroy(op);
}

static void go_on(struct deferred *deferred)
{
    struct batch_listing *op = container_of(deferred, struct batch_listing, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    while (op->at < op->scan.count) {
        struct batch batch;
        if (!timeslice_left(&timeslice)) {
            loop_defer(loop, &op->deferred);
            return;
        }
        struct document *document = &op->scan.documents[op->at++];
        if (!batch_read(document, &batch)) {
            add_item(op, &batch);
            batch_finish(&batch);
        }
        document_finish(document);
    }
    reply(op);
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct batch_listing *op = container_of(read, struct batch_listing, scan.read);
    struct api_call *call = op->call;
    if (status == STORE_OK) {
        go_on(&op->deferred);
        return;
    }
    listing_destroy(op);
    api_reply_error(call, err_of_store(status));
}

enum err batch_list(struct api_call *call)
{
    struct store *store = engine_store(api_engine(call->api));
    struct slice after = api_query(call, "page[after]");
    uint64_t limit = PAGE_DEFAULT;
    if (paging_read_size(call, PAGE_SIZE_MAX, &limit))
        return ERR_INVALID;
    if (after.ptr && (!slice_starts(after, "batch_") || after.len >= ID_MAX))
        return explain(&call->why, ERR_INVALID,
                       "page[after] must be the pagination.next of an earlier page");
    struct batch_listing *op = mem_new(struct batch_listing);
    op->call = call;
    op->deferred.fn = go_on;
    list_init(&op->deferred.link);
    op->scan = (struct store_scan){ .read = { READ_SCAN, call->env->number, on_scanned },
                                    .kind = DOC_BATCH,
                                    .downwards = true,
                                    .limit = (unsigned)limit,
                                    .byte_limit = LOOK_BYTES };
    snprintf(op->scan.from, sizeof(op->scan.from), "%.*s", SLICE_ARG(after));
    buf_add_text(&op->out, "{\"data\":[");
    call->busy = true;
    store->ops->read(store, &op->scan.read);
    return OK;
}
