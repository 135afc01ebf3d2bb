/* remote.c - sends calls to a gateway and runs an event loop until each has its
 * response. */
#include "server/cli/remote.h"

#include <stdlib.h>
#include <uv.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/client/fetcher.h"

enum {
    TRIES_MAX = 5,
    PAUSE_MS = 500,             /* after the first attempt; doubles with each further one */
    ANSWER_MS = 300 * 1000,     /* longer than a gateway may hold a call */
    UPLOAD_MS = 60 * 60 * 1000, /* while the file is sent */
    ANSWER_MAX = 16 << 20,
    KEY_LEN = 32,
    HEADERS_MAX = 4,
};

struct remote {
    uv_loop_t uv;
    struct loop *loop;
    struct url url;
    struct trust *trust;
    const char *ca_file;
    struct fetcher *fetcher;
    struct buf credential;
    const char *branch;
};

/* One request; embedded where its caller waits for it. */
struct remote_fetch {
    struct fetch fetch;
    struct remote_call *call;
    bool done;
};

/* ---- answers ---- */

static void remote_refuse(struct remote_call *call, const struct fetch *fetch, bool is_json)
{
    struct slice answer = bytes_slice(fetch->answer);
    struct bytes *error =
        is_json && scan_type(answer) == SCAN_OBJECT ? members_text(answer, "error") : NULL;
    if (fetch->error)
        buf_add_text(&call->refusal, fetch->why);
    else if (error)
        buf_add(&call->refusal, bytes_slice(error));
    else
        buf_print(&call->refusal, "the gateway responded with status %d", call->status);
    bytes_unref(error);
}

static void on_done(struct fetch *fetch)
{
    struct remote_fetch *op = container_of(fetch, struct remote_fetch, fetch);
    struct remote_call *call = op->call;
    bool is_json = fetch->answer && scan_is_json(bytes_slice(fetch->answer));
    call->status = fetch->error ? 0 : fetch->status;
    if (call->status / 100 != 2)
        remote_refuse(call, fetch, is_json);
    else if (is_json)
        call->answer = bytes_ref(fetch->answer);
    op->done = true;
}

/* ---- one try ---- */

static void wait_for(struct remote *remote, struct fetcher *fetcher,
                     struct remote_fetch *op)
{
    struct failure why = { 0 };
    op->fetch.done = on_done;
    if (fetch_begin(fetcher, &op->fetch, &why)) {
        buf_add_text(&op->call->refusal, why.text);
        return;
    }
    while (!op->done)
        uv_run(&remote->uv, UV_RUN_ONCE);
}

static void try_once(struct remote *remote, struct remote_call *call, const char *id)
{
    struct http_header headers[HEADERS_MAX] = {
        { SLICE("authorization"), buf_slice(&remote->credential) },
        { SLICE("x-trigger-request-idempotency-key"), slice_of(id) },
    };
    size_t count = 2;
    if (remote->branch)
        headers[count++] =
            (struct http_header){ SLICE("x-trigger-branch"), slice_of(remote->branch) };
    if (call->body.ptr)
        headers[count++] =
            (struct http_header){ SLICE("content-type"), SLICE("application/json") };
    struct bytes *body = call->body.ptr ? bytes_create(call->body) : NULL;
    struct remote_fetch op = { .call = call,
                               .fetch = { .method = call->method,
                                          .target = slice_of(call->target),
                                          .headers = headers,
                                          .header_count = count,
                                          .body = body,
                                          .idempotent = true,
                                          .answer_max = ANSWER_MAX,
                                          .first_byte_ms = ANSWER_MS,
                                          .total_ms = ANSWER_MS + ANSWER_MS } };
    remote_call_finish(call);
    wait_for(remote, remote->fetcher, &op);
    bytes_unref(body);
}

static bool is_worth_another(const struct remote_call *call)
{
    return call->status == 0 || call->status == 408 || call->status == 429 ||
           (call->status >= 500 && call->status != 501 && call->status != 507);
}

void remote_pause(unsigned ms)
{
    uv_sleep(ms);
}

bool remote_ask(struct remote *remote, struct remote_call *call)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    char id[KEY_LEN + 1] = "";
    text_random(id, KEY_LEN, letters);
    try_once(remote, call, id);
    for (unsigned tries = 1; tries < TRIES_MAX && is_worth_another(call); tries++) {
        remote_pause(PAUSE_MS << (tries - 1));
        try_once(remote, call, id);
    }
    return call->status / 100 == 2;
}

void remote_call_finish(struct remote_call *call)
{
    call->status = 0;
    bytes_clear(&call->answer);
    buf_finish(&call->refusal);
    call->refusal = (struct buf){ 0 };
}

/* ---- fetchers ---- */

/* Opens a fetcher. Reads the store of certificates when it is first needed. */
static enum err open_fetcher(struct remote *remote, const struct url *url,
                             struct fetcher **fetcher, struct failure *why)
{
    const char *more = *remote->ca_file ? remote->ca_file : NULL;
    enum err refused = OK;
    if (url->secure && !remote->trust)
        refused = trust_create(more, &remote->trust, why);
    struct fetcher_options options = { .url = url, .trust = remote->trust };
    return refused ? refused : fetcher_create(remote->loop, &options, fetcher, why);
}

static void on_closed(void *owner)
{
    *(bool *)owner = true;
}

static void close_fetcher(struct remote *remote, struct fetcher *fetcher)
{
    bool closed = false;
    fetcher_close(fetcher, on_closed, &closed);
    while (!closed)
        uv_run(&remote->uv, UV_RUN_ONCE);
}

/* ---- uploads ---- */

/* Splits off the path. The URL is signed, so its query belongs to the target. */
static enum err split_url(const char *text, struct url *origin, const char **target,
                          struct failure *why)
{
    const char *scheme = strstr(text, "://");
    const char *path = scheme ? strchr(scheme + 3, '/') : NULL;
    *target = path ? path : "/";
    return url_read((struct slice){ text, path ? (size_t)(path - text) : strlen(text) },
                    origin, why);
}

bool remote_upload(struct remote *remote, struct remote_call *call, int file, uint64_t len,
                   struct slice content_type)
{
    struct http_header header = { SLICE("content-type"), content_type };
    struct fetcher *fetcher;
    struct failure why = { 0 };
    struct url origin;
    const char *target;
    remote_call_finish(call);
    enum err refused = split_url(call->target, &origin, &target, &why);
    if (!refused)
        refused = open_fetcher(remote, &origin, &fetcher, &why);
    if (refused) {
        buf_print(&call->refusal, "the upload address: %s", why.text);
        return false;
    }
    struct remote_fetch op = { .call = call,
                               .fetch = {
                                   .method = "POST",
                                   .target = slice_of(target),
                                   .headers = &header,
                                   .header_count = 1,
                                   .upload = { .used = true, .fd = file, .len = len },
                                   .total_ms = UPLOAD_MS } };
    wait_for(remote, fetcher, &op);
    close_fetcher(remote, fetcher);
    return call->status / 100 == 2;
}

/* ---- all of it ---- */

void remote_close(struct remote *remote)
{
    if (!remote)
        return;
    if (remote->fetcher)
        close_fetcher(remote, remote->fetcher);
    trust_destroy(remote->trust);
    loop_destroy(remote->loop);
    uv_run(&remote->uv, UV_RUN_DEFAULT);
    uv_loop_close(&remote->uv);
    if (remote->credential.len)
        explicit_bzero(remote->credential.ptr, remote->credential.len);
    buf_finish(&remote->credential);
    free(remote);
}

enum err remote_open(const struct remote_options *options, struct remote **out,
                     struct failure *why)
{
    struct remote *remote = mem_new(struct remote);
    if (uv_loop_init(&remote->uv)) {
        free(remote);
        return explain(why, ERR_INTERNAL, "cannot start an event loop");
    }
    remote->loop = loop_create(&remote->uv);
    remote->ca_file = options->ca_file;
    remote->branch = options->branch;
    buf_print(&remote->credential, "Bearer %s", options->key);
    enum err refused = url_read(slice_of(options->url), &remote->url, why);
    if (!refused)
        refused = open_fetcher(remote, &remote->url, &remote->fetcher, why);
    if (refused)
        remote_close(remote);
    else
        *out = remote;
    return refused;
}
