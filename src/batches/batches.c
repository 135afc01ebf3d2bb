/* batches.c - the routes of batches, and retrieve. */
#include "batches/batches.h"

#include "base/mem.h"
#include "batches/batch.h"
#include "call/routes.h"

void batch_add_token(struct api_call *call, const char *id, bool is_new, bool writes)
{
    char read[ID_MAX + 16], write[ID_MAX + 16];
    const char *scopes[2];
    size_t count = 0;
    snprintf(read, sizeof(read), "read:batch:%s", id);
    snprintf(write, sizeof(write), "write:batch:%s", id);
    if (is_new || !api_check_scope(call, "read", "batch", slice_of(id)))
        scopes[count++] = read;
    if (writes && (is_new || !api_check_scope(call, "write", "batch", slice_of(id))))
        scopes[count++] = write;
    api_add_token(call, scopes, count);
}

/* ---- retrieve ---- */

struct retrieve {
    struct api_call *call;
    struct batch_load load;
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

/* The 3.x SDK knows two statuses. */
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
    buf_print(&out, ",\"runCount\":%u", batch->run_count);
    add_runs(&out, batch);
    if (!op->v1)
        add_errors(&out, batch);
    buf_add_char(&out, '}');
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static void on_loaded(struct batch_load *load, enum err status)
{
    struct retrieve *op = container_of(load, struct retrieve, load);
    if (status)
        api_reply_error(op->call, status);
    else
        show(op, &load->batch);
    batch_finish(&load->batch);
    free(op);
}

static enum err begin_retrieve(struct api_call *call, bool v1)
{
    if (api_check_scope(call, "read", "batch", call->params[0]) &&
        api_check_scope(call, "read", "runs", (struct slice){ 0 }))
        return ERR_FORBIDDEN;
    struct retrieve *op = mem_new(struct retrieve);
    op->call = call;
    op->v1 = v1;
    call->busy = true;
    batch_load_begin(call, call->params[0], &op->load, on_loaded);
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
    STREAM_BODY = 256 << 20, /* sent again and again it still fits */
    BOTH = AUTH_KEY | AUTH_PUBLIC,
    ITEMS = BOTH | RATE_FREE,
};

/* clang-format off */
const struct route batches_routes[] = {
    { HTTP_POST_, "/api/v1/tasks/batch",       BOTH,     CALL_BODY,   batch_call_v1, batch_call_piece },
    { HTTP_POST_, "/api/v2/tasks/batch",       BOTH,     CALL_BODY,   batch_call_v2, batch_call_piece },
    { HTTP_POST_, "/api/v3/batches",           BOTH,     CREATE_BODY, batch_create,  NULL },
    { HTTP_POST_, "/api/v3/batches/:/items",   ITEMS,    STREAM_BODY, batch_items,   batch_items_piece },
    { HTTP_GET_,  "/api/v1/batches/:",         BOTH,     NO_BODY,     retrieve_v1,   NULL },
    { HTTP_GET_,  "/api/v2/batches/:",         BOTH,     NO_BODY,     retrieve_v2,   NULL },
    { HTTP_GET_,  "/api/v1/batches/:/results", AUTH_KEY, NO_BODY,     batch_results, NULL },
    { 0 },
};
/* clang-format on */
