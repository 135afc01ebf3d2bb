/* upward.c - adds the headers of worker calls and sends them by a fetcher. */
#include "supervisor/gateway_client/upward.h"

#include "base/mem.h"

enum { HEADERS_MAX = 8, CONNECTIONS = 64, WAITING = 4096 };

struct upward {
    struct fetcher *fetcher;
    struct buf credential;
    char *instance;
    fetcher_closed_fn *closed;
    void *owner;
};

enum err upward_create(struct loop *loop, const struct upward_options *options,
                       struct upward **out, struct failure *why)
{
    struct upward *upward = mem_new(struct upward);
    struct fetcher_options fetcher = { .url = options->url,
                                       .trust = options->trust,
                                       .connections_max = CONNECTIONS,
                                       .waiting_max = WAITING };
    enum err refused = fetcher_create(loop, &fetcher, &upward->fetcher, why);
    if (refused) {
        free(upward);
        return refused;
    }
    buf_print(&upward->credential, "Bearer %s", options->token);
    upward->instance = mem_text(slice_of(options->instance));
    *out = upward;
    return OK;
}

static void on_closed(void *owner)
{
    struct upward *upward = owner;
    fetcher_closed_fn *closed = upward->closed;
    void *whose = upward->owner;
    explicit_bzero(upward->credential.ptr, upward->credential.len);
    buf_finish(&upward->credential);
    free(upward->instance);
    free(upward);
    closed(whose);
}

void upward_close(struct upward *upward, fetcher_closed_fn *closed, void *owner)
{
    upward->closed = closed;
    upward->owner = owner;
    fetcher_close(upward->fetcher, on_closed, upward);
}

static void on_fetched(struct fetch *fetch)
{
    struct upward_call *call = container_of(fetch, struct upward_call, fetch);
    call->status = fetch->error ? 0 : fetch->status;
    call->answer = fetch->answer ? bytes_slice(fetch->answer) : SLICE("");
    call->done(call);
}

struct header_list {
    struct http_header all[HEADERS_MAX];
    size_t count;
};

static void add_header(struct header_list *list, const char *name, struct slice value)
{
    if (value.len)
        list->all[list->count++] = (struct http_header){ slice_of(name), value };
}

enum err upward_begin(struct upward *upward, struct upward_call *call, struct failure *why)
{
    struct header_list list = { 0 };
    struct buf target = { 0 };
    struct slice type =
        call->content_type.len ? call->content_type : SLICE("application/json");
    add_header(&list, "authorization", buf_slice(&upward->credential));
    add_header(&list, "x-trigger-worker-instance-name", slice_of(upward->instance));
    add_header(&list, "x-trigger-worker-runner-id", call->runner);
    add_header(&list, "x-trigger-request-idempotency-key", call->key);
    add_header(&list, "traceparent", call->traceparent);
    if (call->fetch.body || call->fetch.upload.used)
        add_header(&list, "content-type", type);
    buf_print(&target, "/engine/v1/worker-actions%s", call->path);
    call->fetch.target = buf_slice(&target);
    call->fetch.headers = list.all;
    call->fetch.header_count = list.count;
    call->fetch.idempotent = call->key.len > 0;
    call->fetch.done = on_fetched;
    enum err refused = fetch_begin(upward->fetcher, &call->fetch, why);
    buf_finish(&target);
    return refused;
}

bool upward_is_worth_another(const struct upward_call *call)
{
    return call->status == 0 || call->status == 429 || call->status >= 500;
}

struct slice upward_credential(const struct upward *upward)
{
    return buf_slice(&upward->credential);
}
