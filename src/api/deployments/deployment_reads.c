/* deployment_reads.c - the calls that read deployments: one, a list, the log of a build. */
#include "api/artifacts/kept_files.h"
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/deployments/deployment_show.h"
#include "base/json/members.h"
#include "base/mem.h"

enum {
    PAGE_LEAST = 1,
    PAGE_MOST = 100,
    PAGE_USUAL = 20,
};

static struct deployment_set *set_of(const struct api_call *call)
{
    return deployments_of(api_deployments(call->api), call->account->number);
}

static enum err reply(struct api_call *call, struct buf *out)
{
    api_reply_json(call, 200, buf_slice(out));
    buf_finish(out);
    return OK;
}

static enum err not_found(struct api_call *call)
{
    return explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
}

/* ---- one deployment ---- */

enum err deployment_retrieve(struct api_call *call)
{
    const struct deployment *deployment = deployment_of_call(call);
    struct buf out = { 0 };
    if (!deployment)
        return ERR_NOT_FOUND;
    show_deployment(deployment, true, &out);
    return reply(call, &out);
}

enum err deployment_latest(struct api_call *call)
{
    struct buf out = { 0 };
    list_each (link, &set_of(call)->all) {
        const struct deployment *deployment = container_of(link, struct deployment, link);
        if (!deployment->document)
            continue;
        show_deployment(deployment, false, &out);
        return reply(call, &out);
    }
    return not_found(call);
}

static enum err check_read(struct api_call *call)
{
    return api_check_scope(call, "read", "deployments", (struct slice){ 0 });
}

/* A current version that was registered without a deployment does not count. */
enum err deployment_current(struct api_call *call)
{
    const struct worker *worker = workers_current(call->env->fleet->workers);
    struct buf out = { 0 };
    enum err refused = check_read(call);
    if (refused)
        return refused;
    const struct deployment *deployment =
        worker ? deployments_find(api_deployments(call->api), call->account->number,
                                  slice_of(worker->deployment))
               : NULL;
    if (!deployment)
        return explain(&call->why, ERR_NOT_FOUND, "No deployment is promoted");
    show_item(deployment, &out);
    return reply(call, &out);
}

/* ---- a list ---- */

struct list_query {
    size_t size;
    struct slice after;
    bool has_status;
    enum deployment_status status;
    int64_t from, to; /* Unix ms, inclusive */
};

static enum err read_size(struct api_call *call, struct list_query *query)
{
    struct slice text = api_query(call, "page[size]");
    uint64_t size;
    query->size = PAGE_USUAL;
    if (!text.ptr)
        return OK;
    if (text_to_u64(text, &size) || size < PAGE_LEAST || size > PAGE_MOST)
        return explain(&call->why, ERR_INVALID, "page[size]: must be %d to %d", PAGE_LEAST,
                       PAGE_MOST);
    query->size = (size_t)size;
    return OK;
}

static enum err read_status(struct api_call *call, struct list_query *query)
{
    struct slice text = api_query(call, "status");
    query->has_status = text.ptr;
    if (text.ptr && (!deployment_status_find(text, &query->status) ||
                     query->status == DEPLOYMENT_INSTALLING))
        return explain(&call->why, ERR_INVALID,
                       "status: must be one of PENDING, BUILDING, DEPLOYING, DEPLOYED, "
                       "FAILED, CANCELED, TIMED_OUT");
    return OK;
}

static enum err read_time(struct api_call *call, const char *name, int64_t *time)
{
    struct slice text = api_query(call, name);
    if (text.ptr && text_to_time(text, time))
        return explain(&call->why, ERR_INVALID, "%s: must be a time in ISO 8601", name);
    return OK;
}

static enum err read_query(struct api_call *call, struct list_query *query)
{
    struct slice period = api_query(call, "period");
    int64_t ms = 0;
    *query =
        (struct list_query){ .after = api_query(call, "page[after]"), .to = INT64_MAX };
    enum err err = read_size(call, query);
    err = err ? err : read_status(call, query);
    err = err ? err : read_time(call, "from", &query->from);
    err = err ? err : read_time(call, "to", &query->to);
    if (!err && period.ptr && text_to_duration_ms(period, &ms))
        err = explain(&call->why, ERR_INVALID, "period: must be a duration like \"7d\"");
    if (!err && period.ptr)
        query->from = loop_wall_ms(engine_loop(api_engine(call->api))) - ms;
    return err;
}

static bool matches(const struct deployment *deployment, const struct list_query *query)
{
    const struct deployment_row *row = &deployment->row;
    return deployment->document && row->created_at >= query->from &&
           row->created_at <= query->to &&
           (!query->after.ptr || slice_compare(slice_of(row->id), query->after) < 0) &&
           (!query->has_status ||
            !strcmp(show_item_status(row->status), deployment_status_name(query->status)));
}

enum err deployment_list(struct api_call *call)
{
    struct list_query query;
    struct buf out = { 0 };
    const struct deployment *last = NULL;
    size_t count = 0;
    enum err refused = check_read(call);
    refused = refused ? refused : read_query(call, &query);
    if (refused)
        return refused;
    buf_add_text(&out, "{\"data\":[");
    list_each (link, &set_of(call)->all) {
        const struct deployment *deployment = container_of(link, struct deployment, link);
        if (!matches(deployment, &query) || count++ >= query.size)
            continue;
        if (last)
            buf_add_char(&out, ',');
        show_item(deployment, &out);
        last = deployment;
    }
    buf_add_text(&out, "],\"pagination\":{");
    if (count > query.size)
        members_add_text(&out, "next", slice_of(last->row.id));
    buf_add_text(&out, "}}");
    return reply(call, &out);
}

/* ---- the log of a build ---- */

struct log_reading {
    struct api_call *call;
    struct kept_reading reading;
};

static void on_log_gone(struct api_call *call)
{
    struct log_reading *op = call->state;
    kept_reading_cancel(&op->reading);
}

static void on_log(struct kept_reading *reading, enum err status)
{
    struct log_reading *op = container_of(reading, struct log_reading, reading);
    struct api_call *call = op->call;
    call->state = NULL;
    call->on_gone = NULL;
    struct bytes *text = op->reading.piece;
    free(op);
    if (status && status != ERR_NOT_FOUND) {
        api_reply_error(call, status);
        return;
    }
    api_reply_text(call, 200, "text/plain; charset=utf-8",
                   text ? bytes_slice(text) : SLICE(""));
    bytes_unref(text);
}

enum err deployment_log(struct api_call *call)
{
    struct deployment *deployment = deployment_of_call(call);
    if (!deployment)
        return ERR_NOT_FOUND;
    if (deployment->build) {
        api_reply_text(call, 200, "text/plain; charset=utf-8",
                       build_log_text(&deployment->build->log));
        return OK;
    }
    struct log_reading *op = mem_new(struct log_reading);
    op->call = call;
    op->reading.name = kept_file_name(deployment->env, deployment->row.id, ".log");
    op->reading.limit = BUILD_LOG_MAX;
    op->reading.done = on_log;
    call->busy = true;
    call->state = op;
    call->on_gone = on_log_gone;
    kept_reading_begin(deployment->all->files, &op->reading);
    return OK;
}
