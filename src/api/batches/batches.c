/* batches.c - the table of batch routes, and the handler of retrieve. */
#include "api/batches/batches.h"

#include "api/batches/batch.h"
#include "api/request/held_call.h"
#include "api/request/route.h"
#include "api/runs/run_counts.h"
#include "base/mem.h"

/* ---- retrieve ---- */

struct retrieve {
    struct api_call *call;
    struct held_call held;
    struct batch_load load;
    struct store_count count; /* of its runs */
    bool v1;
};

static void add_runs(struct buf *out, const struct batch *batch)
{
    buf_add_text(out, ",\"runs\":[");
    for (size_t i = 0; i < batch->count; i++)
        buf_print(out, "%s\"%s\"", i ? "," : "", batch->runs[i].id);
    buf_add_char(out, ']');
}

static void add_errors(struct buf *out, const struct batch *batch)
{
    buf_add_text(out, ",\"processing\":{");
    if (batch->sealed_at) {
        buf_add_text(out, "\"completedAt\":");
        buf_add_json_time(out, batch->sealed_at);
        buf_add_char(out, ',');
    }
    buf_add_text(out, "\"errors\":[");
    for (size_t i = 0; i < batch->error_count; i++) {
        buf_print(out, "%s{\"index\":%u,\"taskIdentifier\":", i ? "," : "",
                  batch->errors[i].index);
        buf_add_json(out, bytes_slice(batch->errors[i].task));
        buf_add_text(out, ",\"error\":\"" BATCH_ITEM_TOO_LARGE "\","
                          "\"errorCode\":\"PAYLOAD_TOO_LARGE\"}");
    }
    buf_add_text(out, "]}");
}

/* Maps to the two statuses that the 3.x SDK knows. */
static const char *v1_status(const char *status)
{
    if (!strcmp(status, "PARTIAL_FAILED"))
        return "PENDING";
    return strcmp(status, "ABORTED") ? status : "COMPLETED";
}

static void show(struct retrieve *op, const struct batch *batch)
{
    struct api_call *call = op->call;
    const char *status = batch_status(batch, call->env);
    struct buf out = { 0 };

    buf_print(&out, "{\"id\":\"%s\",\"status\":\"%s\"", batch->id,
              op->v1 ? v1_status(status) : status);
    if (batch->key) {
        buf_add_text(&out, ",\"idempotencyKey\":");
        buf_add_json(&out, bytes_slice(batch->key));
    }
    buf_add_text(&out, ",\"createdAt\":");
    buf_add_json_time(&out, batch->created_at);
    buf_add_text(&out, ",\"updatedAt\":");
    buf_add_json_time(&out, batch->updated_at);
    buf_print(&out, ",\"runCount\":%u,\"counts\":", batch->run_count);
    run_counts_add(call->vocabulary, op->count.counts, &out);
    add_runs(&out, batch);
    if (!op->v1)
        add_errors(&out, batch);
    buf_add_char(&out, '}');
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

/* ---- counting its runs ---- */

/* Counts the runs by status. Returns false if some are only in the store. */
static bool count_in_memory(struct retrieve *op)
{
    const struct batch *batch = &op->load.batch;
    for (size_t i = 0; i < batch->count; i++) {
        const struct tracked *run =
            environment_find(op->call->env, slice_of(batch->runs[i].id));
        if (!run)
            return false;
        op->count.counts[run->run.status]++;
    }
    return true;
}

static void answer(struct retrieve *op, enum err status)
{
    if (status)
        api_reply_error(op->call, status);
    else
        show(op, &op->load.batch);
    batch_finish(&op->load.batch);
    free(op);
}

static void on_counted(struct store_read *read, enum store_status status)
{
    answer(container_of(read, struct retrieve, count.read), err_of_store(status));
}

static void count_runs(struct retrieve *op)
{
    struct store *store = engine_store(api_engine(op->call->api));
    if (count_in_memory(op)) {
        answer(op, OK);
        return;
    }
    op->count =
        (struct store_count){ .read = { READ_COUNT, op->call->env->number, on_counted },
                              .filter = { .is_test = -1,
                                          .batch = slice_of(op->load.batch.id) } };
    store->ops->read(store, &op->count.read);
}

/* ---- retrieve, step by step ---- */

static void load(struct retrieve *op);

static void batches_refuse(struct retrieve *op, enum err status)
{
    held_call_refuse(&op->held, status);
    free(op);
}

static void on_over(struct held_call *held, enum err status)
{
    struct retrieve *op = container_of(held, struct retrieve, held);
    if (status)
        batches_refuse(op, status);
    else
        load(op);
}

/* Waits for a random one of the unfinished runs. When it ends, only a part of them is
 * left: a batch of a thousand runs is loaded about eight times in all, whatever the order
 * in which its runs end, and uses no memory while the call waits. For a batch that is not
 * sealed, load has already begun to listen. */
static enum err hold(struct retrieve *op, const struct batch *batch)
{
    const char *run_id = batch_draw_unfinished(batch, op->call->env);
    if (batch->sealed_at && run_id)
        held_call_listen(&op->held, slice_of(run_id));
    return held_call_hold(&op->held, on_over);
}

static void on_loaded(struct batch_load *load, enum err status)
{
    struct retrieve *op = container_of(load, struct retrieve, load);
    const struct batch *batch = &load->batch;
    bool waits =
        !status && held_call_may_wait(&op->held) && !batch_has_ended(batch, op->call->env);
    if (waits)
        status = hold(op, batch);
    if (!status && !waits) {
        held_call_finish(&op->held);
        count_runs(op);
        return;
    }
    batch_finish(&load->batch);
    if (status)
        batches_refuse(op, status);
}

static void load(struct retrieve *op)
{
    if (held_call_may_wait(&op->held))
        held_call_listen(&op->held, op->call->params[0]);
    batch_load_begin(op->call, op->call->params[0], &op->load, on_loaded);
}

static enum err begin_retrieve(struct api_call *call, bool v1)
{
    if (api_check_scope(call, "read", "batch", call->params[0]) &&
        api_check_scope(call, "read", "runs", (struct slice){ 0 }))
        return ERR_FORBIDDEN;
    struct retrieve *op = mem_new(struct retrieve);
    enum err refused = held_call_read(&op->held, call);
    if (refused) {
        free(op);
        return refused;
    }
    op->call = call;
    op->v1 = v1;
    call->busy = true;
    load(op);
    return OK;
}

static enum err retrieve_v1(struct api_call *call)
{
    return begin_retrieve(call, true);
}

static enum err retrieve_v2(struct api_call *call)
{
    return begin_retrieve(call, false);
}

/* ---- the table ---- */

enum {
    NO_BODY = 65536,
    CALL_BODY = 1000000,
    CREATE_BODY = 131072,
    STREAM_BODY = 256 << 20, /* enough for all items to be sent several times */
    BOTH = AUTH_KEY | AUTH_PUBLIC,
    ITEMS = BOTH | RATE_FREE,
};

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = "/api/v1/tasks/batch",
      .auth = BOTH, .body_limit = CALL_BODY, .handle = batch_call_v1,
      .on_body = batch_call_piece,
      .claims = true, .own_key = OWN_KEY_IN_ITEMS, .id = "create_batch_v1", .summary = "Trigger many runs, as SDK 3.x does",
      .body = "BatchCall",
      .status = 202,
      .reply = "{id: string, isCached: boolean, idempotencyKey?: string, runs: BatchRun[]}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v2/tasks/batch",
      .auth = BOTH, .body_limit = CALL_BODY, .handle = batch_call_v2,
      .on_body = batch_call_piece,
      .claims = true, .own_key = OWN_KEY_IN_ITEMS, .id = "create_batch_v2", .summary = "Trigger many runs, as SDK 4.0 to 4.2 does",
      .body = "BatchCall",
      .status = 202,
      .reply = "{id: string, runCount: integer, idempotencyKey?: string, isCached?: boolean}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v3/batches",
      .auth = BOTH, .body_limit = CREATE_BODY, .handle = batch_create,
      .claims = true, .own_key = OWN_KEY_IN_BODY, .id = "create_batch_v3", .summary = "Open a batch for a stream of items",
      .body = "{runCount: integer(1..1000), parentRunId?: string, resumeParentOnCompletion?: "
          "boolean, idempotencyKey?: string, taskIdentifiers?: string[], "
          "idempotencyKeyOptions?: {key: string, scope: 'run'|'attempt'|'global', ...}, ...}",
      .status = 202,
      .reply = "{id: string, runCount: integer, isCached: boolean, idempotencyKey?: string}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v3/batches/{batchId}/items",
      .auth = ITEMS, .body_limit = STREAM_BODY, .handle = batch_items,
      .on_body = batch_items_piece,
      .id = "stream_batch_items_v3", .summary = "Stream the items of a batch",
      .takes = "application/x-ndjson",
      .body = "string",
      .reply = "{id: string, itemsAccepted: integer, itemsDeduplicated: integer, sealed: "
          "boolean, enqueuedCount?: integer, expectedCount?: integer, runCount?: integer}",
      .also = "409 415 422 507" },
    { .method = HTTP_GET_, .path = "/api/v1/batches",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = batch_list,
      .id = "list_batches_v1", .summary = "List batches, newest first",
      .query = "page[size]?: integer(1..100), page[after]?: string",
      .reply = "{data: {id: string, status: string, idempotencyKey?: string, createdAt: "
          "datetime, updatedAt: datetime, runCount: integer, endedCount: integer}[], "
          "pagination: {next?: string}}" },
    { .method = HTTP_GET_, .path = "/api/v1/batches/{batchId}",
      .auth = BOTH, .body_limit = NO_BODY, .handle = retrieve_v1,
      .id = "retrieve_batch_v1", .summary = "Retrieve a batch, as SDK 3.x does",
      .query = "wait?: string",
      .reply = "{id: string, status: string, idempotencyKey?: string, createdAt: datetime, "
          "updatedAt: datetime, runCount: integer, counts: RunCounts, runs: string[]}" },
    { .method = HTTP_GET_, .path = "/api/v2/batches/{batchId}",
      .auth = BOTH, .body_limit = NO_BODY, .handle = retrieve_v2,
      .id = "retrieve_batch_v2", .summary = "Retrieve a batch, at once or when its runs have "
          "ended",
      .query = "wait?: string",
      .reply = "{id: string, status: string, idempotencyKey?: string, createdAt: datetime, "
          "updatedAt: datetime, runCount: integer, counts: RunCounts, runs: string[], successfulRunCount?: "
          "integer, failedRunCount?: integer, processing: {completedAt?: datetime, "
          "errors: {index: integer, taskIdentifier: string, error: string, errorCode: "
          "string}[]}}" },
    { .method = HTTP_GET_, .path = "/api/v1/batches/{batchId}/results",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = batch_results,
      .id = "retrieve_batch_results_v1", .summary = "The outputs and errors of the finished runs of a batch",
      .reply = "{id: string, items: RunResult[]}",
      .also = "422" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "BatchCall", "{items: BatchItem[], parentRunId?: string, resumeParentOnCompletion?:"
                   " boolean, dependentAttempt?: string|null, ...}" },
    { "BatchItem", "{task: string, payload?: any, context?: any, options?: TriggerOptions,"
                   " ...}" },
    { "BatchRun", "{id: string, taskIdentifier: string, isCached: boolean, idempotencyKey?:"
                  " string}" },
    { 0 },
};

const struct area batches_area = {
    .tag = "batches", .is_for_users = true, .routes = routes, .schemas = schemas
};
