/* signed.c - the forms of signed URLs: where each has its environment and signed parts. */
#include "api/router/signed.h"

#include <stdlib.h>

#include "accounts/auth/signed_url.h"
#include "api/artifacts/artifacts.h"
#include "api/packets/packet_name.h"
#include "api/request/parts.h"
#include "api/request/route.h"

/* The claims of a URL. Their texts are borrowed from the call, unless `made` has them. */
struct claimed {
    struct slice environment, name, signature;
    const char *method; /* the one that was signed */
    int64_t expires_s;
    struct buf made; /* memory of name, if name is not a text of the call */
};

static enum err read_expiry(struct api_call *call, struct claimed *url)
{
    if (text_to_i64(api_query(call, "expires"), &url->expires_s) ||
        url->expires_s > INT64_MAX / 1000 || url->expires_s < 0)
        return explain(&call->why, ERR_INVALID, "expires must be a Unix time in seconds");
    return OK;
}

static enum err read_packet(struct api_call *call, struct claimed *url)
{
    enum err err = packet_check_name(call->params[1], &call->why);
    if (err)
        return err;
    err = read_expiry(call, url);
    if (err)
        return err;
    url->environment = call->params[0];
    url->name = call->params[1];
    url->signature = api_query(call, "signature");
    url->method = call->route->method == HTTP_PUT_ ? "PUT" : "GET";
    return OK;
}

static enum err read_telemetry(struct api_call *call, struct claimed *url)
{
    *url = (struct claimed){ .environment = call->params[0],
                             .name = SLICE("telemetry"),
                             .signature = call->params[1],
                             .method = "OTLP",
                             .expires_s = url_never_s };
    return OK;
}

static enum err read_callback(struct api_call *call, struct claimed *url)
{
    *url = (struct claimed){ .environment = call->params[1],
                             .name = call->params[0],
                             .signature = call->params[2],
                             .method = "POST",
                             .expires_s = url_never_s };
    return OK;
}

/* The URL of an artifact is signed for a body of exactly `length` bytes. */
static enum err read_artifact(struct api_call *call, struct claimed *url)
{
    int64_t length;
    enum err err = read_expiry(call, url);
    if (err)
        return err;
    if (text_to_i64(api_query(call, "length"), &length))
        return explain(&call->why, ERR_INVALID, "length must be a number of bytes");
    artifact_add_signed(&url->made, call->params[1], length);
    url->environment = call->params[0];
    url->name = buf_slice(&url->made);
    url->signature = api_query(call, "signature");
    url->method = "POST";
    return OK;
}

typedef enum err form_fn(struct api_call *call, struct claimed *url);

static form_fn *const forms[] = {
    [SIGNED_PACKET] = read_packet,
    [SIGNED_TELEMETRY] = read_telemetry,
    [SIGNED_CALLBACK] = read_callback,
    [SIGNED_ARTIFACT] = read_artifact,
};

static enum err verify(struct api_call *call, struct account **account)
{
    form_fn *read = forms[call->route->signed_form];
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(call->api)));
    struct claimed url = { 0 };
    enum err err = read ? read(call, &url) : ERR_FORBIDDEN;
    if (err)
        return err;
    *account = accounts_by_id(api_accounts(call->api), url.environment);
    err = url_verify(*account, url.method, url.name, url.expires_s, url.signature, now_ms,
                     &call->why);
    buf_finish(&url.made);
    return err;
}

enum err signed_enter(struct api_call *call)
{
    struct account *account;
    enum err err = verify(call, &account);
    if (err)
        return err;
    http_trust(call->x);
    api_enter_environment(call, account);
    return OK;
}

const struct account *signed_find(const struct api_call *call)
{
    struct api_call read = *call; /* its target is read again when it enters */
    struct account *account;
    read.text = (struct buf){ 0 };
    read.query = NULL;
    read.query_count = 0;
    bool is_right = !api_read_target(&read) && !verify(&read, &account);
    buf_finish(&read.text);
    free(read.query);
    return is_right ? account : NULL;
}
