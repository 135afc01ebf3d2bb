/* waitpoint_load.c - loads a waitpoint from the store and writes it as JSON. */
#include "api/waitpoints/waitpoint_load.h"

#include "accounts/auth/signed_url.h"
#include "base/json/members.h"
#include "core/engine/waits.h"

/* ---- reading one ---- */

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct waitpoint_load *op = container_of(read, struct waitpoint_load, load.read);
    enum err err = err_of_store(status);
    bytes_clear(&op->load.name);
    if (!err) {
        err = waitpoint_read(&op->load.document, &op->waitpoint);
        document_finish(&op->load.document);
    }
    if (err == ERR_NOT_FOUND)
        explain(&op->call->why, ERR_NOT_FOUND, "Waitpoint not found");
    op->done(op, err);
}

void waitpoint_load_begin(struct waitpoint_load *op, struct api_call *call, struct slice id,
                          void (*done)(struct waitpoint_load *op, enum err status))
{
    struct store *store = engine_store(api_engine(call->api));
    *op = (struct waitpoint_load){ .call = call, .done = done };
    op->load = (struct store_load){ .read = { READ_LOAD, call->env->number, on_loaded },
                                    .is_document = true,
                                    .kind = DOC_WAITPOINT,
                                    .name = bytes_create(id) };
    store->ops->read(store, &op->load.read);
}

/* ---- showing one ---- */

static void add_url(struct api_call *call, const char *id, struct buf *out)
{
    char signature[URL_SIGNATURE_LEN + 1];
    url_sign(call->account, "POST", slice_of(id), url_never_s, signature);
    api_base_url(call, out);
    buf_print(out, "/api/v1/waitpoints/tokens/%s/callback/%s/%s", id, call->account->id,
              signature);
}

void waitpoint_add_url(struct api_call *call, const char *id, struct buf *out)
{
    struct buf url = { 0 };
    if (identity_may(call->identity, "write", "waitpoints", slice_of(id)))
        add_url(call, id, &url);
    buf_add_json(out, buf_slice(&url));
    buf_finish(&url);
}

const char *waitpoint_status(const struct waitpoint *waitpoint, int64_t now_ms)
{
    if (waitpoint->completed_at)
        return "COMPLETED";
    return waitpoint_is_over(waitpoint, now_ms) ? "TIMED_OUT" : "WAITING";
}

void waitpoint_open_item(struct api_call *call, const struct waitpoint *waitpoint,
                         struct buf *out)
{
    const struct tag_list *tags = waitpoint->tags;
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(call->api)));
    bool over = waitpoint_is_over(waitpoint, now_ms);
    buf_print(out, "{\"id\":\"%s\",\"url\":", waitpoint->id);
    waitpoint_add_url(call, waitpoint->id, out);
    buf_print(out, ",\"status\":\"%s\"", waitpoint_status(waitpoint, now_ms));
    members_add_time(out, "completedAt",
                     !over                     ? 0
                     : waitpoint->completed_at ? waitpoint->completed_at
                                               : waitpoint->until);
    members_add_time(out, "timeoutAt", waitpoint->until);
    if (waitpoint->key) {
        members_add_text(out, "idempotencyKey", bytes_slice(waitpoint->key));
        members_add_time(out, "idempotencyKeyExpiresAt", waitpoint->key_expires_at);
    }
    members_add_texts(out, "tags", tags ? tags->names : NULL, tags ? tags->count : 0);
    members_add_time(out, "createdAt", waitpoint->created_at);
}

/* Adds the run that waits for the token, for a caller that may read runs. */
static void add_waiting_run(struct api_call *call, const struct waitpoint *waitpoint,
                            struct buf *out)
{
    const struct tracked *waiting =
        waits_run_of(api_engine(call->api), call->env, slice_of(waitpoint->id));
    if (!waiting ||
        !identity_may(call->identity, "read", "runs", slice_of(waiting->run.id)))
        return;
    buf_print(out, ",\"waitingRun\":{\"id\":\"%s\"", waiting->run.id);
    members_add_text(out, "taskIdentifier", bytes_slice(waiting->run.task));
    members_add_time(out, "since", waiting->run.updated_at);
    buf_add_char(out, '}');
}

void waitpoint_add_item(struct api_call *call, const struct waitpoint *waitpoint,
                        struct buf *out)
{
    waitpoint_open_item(call, waitpoint, out);
    add_waiting_run(call, waitpoint, out);
    buf_add_char(out, '}');
}
