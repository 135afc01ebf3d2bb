/* gateway_client.c - adds the headers of worker calls and sends them by a fetcher. */
#include "supervisor/gateway_client/gateway_client.h"

#include "base/mem.h"

enum { HEADERS_MAX = 8, CONNECTIONS = 64, WAITING = 4096 };

struct gateway_client {
    struct fetcher *fetcher;
    struct buf credential;
    char *instance;
    fetcher_closed_fn *closed;
    void *owner;
};

enum err gateway_client_create(struct loop *loop,
                               const struct gateway_client_options *options,
                               struct gateway_client **out, struct failure *why)
{
    struct gateway_client *gateway_client = mem_new(struct gateway_client);
    struct fetcher_options fetcher = { .url = options->url,
                                       .trust = options->trust,
                                       .connections_max = CONNECTIONS,
                                       .waiting_max = WAITING };
    enum err refused = fetcher_create(loop, &fetcher, &gateway_client->fetcher, why);
    if (refused) {
        free(gateway_client);
        return refused;
    }
    buf_print(&gateway_client->credential, "Bearer %s", options->token);
    gateway_client->instance = mem_text(slice_of(options->instance));
    *out = gateway_client;
    return OK;
}

static void on_closed(void *owner)
{
    struct gateway_client *gateway_client = owner;
    fetcher_closed_fn *closed = gateway_client->closed;
    void *whose = gateway_client->owner;
    explicit_bzero(gateway_client->credential.ptr, gateway_client->credential.len);
    buf_finish(&gateway_client->credential);
    free(gateway_client->instance);
    free(gateway_client);
    closed(whose);
}

void gateway_client_close(struct gateway_client *gateway_client, fetcher_closed_fn *closed,
                          void *owner)
{
    gateway_client->closed = closed;
    gateway_client->owner = owner;
    fetcher_close(gateway_client->fetcher, on_closed, gateway_client);
}

static void on_fetched(struct fetch *fetch)
{
    struct gateway_call *call = container_of(fetch, struct gateway_call, fetch);
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

enum err gateway_call_begin(struct gateway_client *gateway_client,
                            struct gateway_call *call, struct failure *why)
{
    struct header_list list = { 0 };
    struct buf target = { 0 };
    struct slice type =
        call->content_type.len ? call->content_type : SLICE("application/json");
    add_header(&list, "authorization", buf_slice(&gateway_client->credential));
    add_header(&list, "x-trigger-worker-instance-name", slice_of(gateway_client->instance));
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
    enum err refused = fetch_begin(gateway_client->fetcher, &call->fetch, why);
    buf_finish(&target);
    return refused;
}

bool gateway_call_may_retry(const struct gateway_call *call)
{
    return call->status == 0 || call->status == 429 || call->status >= 500;
}

struct slice gateway_client_credential(const struct gateway_client *gateway_client)
{
    return buf_slice(&gateway_client->credential);
}
