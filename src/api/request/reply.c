/* reply.c - replies to calls: headers that every response has, bodies, refusals. */
#include "api/request/call.h"

#include "api/request/request_log.h"
#include "api/request/route.h"
#include "base/json/json_tree.h"
#include "base/log.h"
#include "base/mem.h"

static void add_ignored(struct api_call *call)
{
    struct slice names = buf_slice(&call->ignored.names);
    if (!call->ignored.count)
        return;
    api_add_header(call, "x-ignored-members", names);
    buf_add_char(&call->ignored.names, '\0'); /* ends the text, for the log */
    log_debug("unknown members of a request ignored", "route", call->route->path, "members",
              call->ignored.names.ptr, NULL);
    call->ignored.names.len--; /* a stream sends them again */
}

/* Adds the headers that every response has, and logs the response: all of them pass
 * here. */
static void add_common_headers(struct api_call *call, int status)
{
    request_log_answer(call, status);
    if (!call->cached)
        buf_add_text(&call->headers, "cache-control: no-store\r\n");
    if (call->x->admin)
        return; /* no web page reads it */
    add_ignored(call);
    if (call->is_for_own_pages)
        return;
    buf_add_text(&call->headers,
                 "access-control-allow-origin: *\r\n"
                 "access-control-expose-headers: x-trigger-jwt, x-trigger-jwt-claims, "
                 "x-should-retry, x-runs-seq, retry-after, x-ratelimit-limit, "
                 "x-ratelimit-remaining, x-ratelimit-reset, electric-offset, "
                 "electric-handle, electric-schema, electric-cursor, "
                 "electric-up-to-date, electric-shape-id, electric-chunk-last-offset, "
                 "x-stream-version, x-ignored-members\r\n");
}

/* Answers a read with 503 if another gateway may lead by now: memory may be outdated.
 * Returns true if it did. A response to a write stands: the database has confirmed it. So
 * does that of a handler that noticed the doubt itself: an event stream says when to
 * reconnect. */
static bool refuse_in_doubt(struct api_call *call, int status)
{
    bool reads = call->x->method == HTTP_GET_ || call->x->method == HTTP_HEAD_;
    bool is_known = call->identity || call->account;
    const char *doubt = api_doubt(call->api);
    if (!reads || !is_known || status >= 499 || call->why.code == ERR_DRAINING || !doubt)
        return false;
    explain(&call->why, ERR_DRAINING, "The gateway is not ready: %s", doubt);
    buf_clear(&call->headers);
    call->cached = false;
    api_reply_error(call, ERR_DRAINING);
    return true;
}

static void send(struct api_call *call, int status, struct slice body)
{
    struct exchange *x = call->x;
    if (refuse_in_doubt(call, status))
        return;
    add_common_headers(call, status);
    x->call = NULL;
    http_reply(x, status, buf_slice(&call->headers), body);
    api_call_free(call);
}

void api_stream_begin(struct api_call *call, const char *type)
{
    api_add_header(call, "content-type", slice_of(type));
    api_add_header(call, "x-accel-buffering", SLICE("no"));
    add_common_headers(call, 200);
    http_stream_begin(call->x, 200, buf_slice(&call->headers));
}

void api_stream_begin_sized(struct api_call *call, size_t len)
{
    add_common_headers(call, 200);
    http_stream_begin_sized(call->x, 200, buf_slice(&call->headers), len);
}

void api_reply_shared(struct api_call *call, int status, struct bytes *body)
{
    struct exchange *x = call->x;
    if (refuse_in_doubt(call, status))
        return;
    add_common_headers(call, status);
    x->call = NULL;
    http_reply_shared(x, status, buf_slice(&call->headers), body);
    api_call_free(call);
}

void api_reply_json_parts(struct api_call *call, int status, struct bytes *const *parts,
                          size_t count)
{
    struct exchange *x = call->x;
    if (refuse_in_doubt(call, status))
        return;
    api_add_header(call, "content-type", SLICE("application/json; charset=utf-8"));
    add_common_headers(call, status);
    x->call = NULL;
    http_reply_parts(x, status, buf_slice(&call->headers), parts, count);
    api_call_free(call);
}

void api_reply_json_rope(struct api_call *call, int status, const struct rope *body)
{
    if (!body->count) {
        api_reply_json(call, status, buf_slice(&body->text));
        return;
    }
    struct bytes *bytes = rope_join((struct slice){ 0 }, body, (struct slice){ 0 });
    api_reply_json_parts(call, status, &bytes, 1);
    bytes_unref(bytes);
}

void api_add_header(struct api_call *call, const char *name, struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7f)
            return; /* it could end the line */
    buf_add_text(&call->headers, name);
    buf_add_text(&call->headers, ": ");
    buf_add(&call->headers, value);
    buf_add_text(&call->headers, "\r\n");
}

void api_let_cache(struct api_call *call, const char *control)
{
    call->cached = true;
    api_add_header(call, "cache-control", slice_of(control));
}

void api_add_seq(struct api_call *call, uint64_t seq)
{
    if (!seq && call->env)
        seq = call->env->applied;
    buf_add_text(&call->headers, "x-runs-seq: ");
    buf_add_text(&call->headers, engine_store(api_engine(call->api))->epoch);
    buf_add_char(&call->headers, '.');
    buf_add_number(&call->headers, (int64_t)seq);
    buf_add_text(&call->headers, "\r\n");
}

static void add_json_list(struct buf *out, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, slice_of(texts[i]));
    }
}

enum { TOKEN_TTL_MS = 3600 * 1000 };

void api_add_token(struct api_call *call, const char *const *scopes, size_t count)
{
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    struct buf text = { 0 };

    buf_add_text(&text, "{\"sub\":");
    buf_add_json(&text, slice_of(call->account->id));
    buf_add_text(&text, ",\"pub\":true");
    if (scopes) {
        buf_add_text(&text, ",\"scopes\":[");
        add_json_list(&text, scopes, count);
        buf_add_char(&text, ']');
    }
    buf_add_char(&text, '}');
    api_add_header(call, "x-trigger-jwt-claims", buf_slice(&text));
    if (scopes) {
        buf_clear(&text);
        auth_sign_for(call->identity, scopes, count, now, TOKEN_TTL_MS, &text);
        api_add_header(call, "x-trigger-jwt", buf_slice(&text));
    }
    buf_finish(&text);
}

void api_reply_json(struct api_call *call, int status, struct slice body)
{
    api_add_header(call, "content-type", SLICE("application/json; charset=utf-8"));
    send(call, status, body);
}

void api_reply_text(struct api_call *call, int status, const char *type, struct slice body)
{
    api_add_header(call, "content-type", slice_of(type));
    send(call, status, body);
}

void api_reply_empty(struct api_call *call, int status)
{
    send(call, status, (struct slice){ 0 });
}

void api_reply_gone(struct api_call *call)
{
    if (call->ended_by)
        api_reply_error(call, call->ended_by);
    else
        api_reply_empty(call, 499);
}

static struct buf error_body(const char *text)
{
    struct buf body = { 0 };
    buf_add_text(&body, "{\"error\":");
    buf_add_json(&body, slice_of(text));
    buf_add_char(&body, '}');
    return body;
}

void api_reply_early(struct api_call *call, enum err error, const char *line)
{
    struct buf headers = call->headers, body = error_body(call->why.text);
    call->headers = (struct buf){ 0 }; /* keep those of the reply that is still due */
    api_add_header(call, "content-type", SLICE("application/json; charset=utf-8"));
    api_add_header(call, "retry-after", SLICE("1"));
    buf_add_text(&call->headers, line);
    add_common_headers(call, errors[error].http_status);
    call->refused = true; /* it is already logged */
    http_reply_early(call->x, errors[error].http_status, buf_slice(&call->headers),
                     buf_slice(&body));
    buf_finish(&body);
    buf_finish(&call->headers);
    call->headers = headers;
}

void api_reply_value(struct api_call *call, int status, json_t *value)
{
    struct buf text = { 0 };
    json_tree_write(value, &text);
    json_decref(value);
    api_reply_json(call, status, value ? buf_slice(&text) : SLICE("{}"));
    buf_finish(&text);
}

static void reply_text(struct api_call *call, int status, const char *text)
{
    struct buf body = error_body(text);
    api_reply_json(call, status, buf_slice(&body));
    buf_finish(&body);
}

/* Only a missing credential is refused in the long form, which clients know. */
static void reply_unauthorized(struct api_call *call, const char *text)
{
    struct buf body = { 0 };
    buf_add_text(&body,
                 "{\"title\":\"Unauthorized\",\"status\":401,\"type\":\"about:blank\","
                 "\"detail\":");
    buf_add_json(&body, slice_of(text));
    buf_add_text(&body, ",\"error\":");
    buf_add_json(&body, slice_of(text));
    buf_add_char(&body, '}');
    api_add_header(call, "content-type", SLICE("application/problem+json; charset=utf-8"));
    send(call, 401, buf_slice(&body));
    buf_finish(&body);
}

/* SDKs match these words of a 403; do not change them. */
static void reply_forbidden(struct api_call *call)
{
    api_reply_json(call, 403,
                   SLICE("{\"error\":\"Unauthorized\",\"code\":\"unauthorized\","
                         "\"param\":\"access_token\",\"type\":\"authorization\"}"));
}

/* Makes the CLI wait: it retries forever, whatever the response. With this header it pauses
 * for half a second, then twice as long each time; otherwise for 50 ms. */
static void slow_down(struct api_call *call)
{
    if (call->route && call->route->auth & NEVER_STOPS)
        api_add_header(call, "x-should-retry", SLICE("true"));
}

void api_reply_error(struct api_call *call, enum err error)
{
    char text[sizeof(call->why.text)];
    int status = errors[error].http_status;
    bool explained = call->why.code == error && call->why.text[0];

    snprintf(text, sizeof(text), "%s", explained ? call->why.text : errors[error].text);
    if (status == 503)
        api_add_header(call, "retry-after", SLICE("1"));
    if (status == 401)
        slow_down(call);
    if (error == ERR_UNAUTHORIZED && !http_header(call->x, "authorization").ptr)
        reply_unauthorized(call, text);
    else if (error == ERR_FORBIDDEN && !explained)
        reply_forbidden(call);
    else
        api_reply_refusal(call, status,
                          explained && call->why_full ? call->why_full->data : text);
}

void api_reply_refused(struct api_call *call, enum err status, const struct failure *why,
                       const char *missing)
{
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "%s", missing);
    else if (why && why->code == status)
        call->why = *why;
    api_reply_error(call, status);
}

void api_reply_refusal(struct api_call *call, int status, const char *text)
{
    if (status == 404 || status == 409 || status == 507)
        api_add_header(call, "x-should-retry", SLICE("false"));
    reply_text(call, status, text);
}

void api_reply_details(struct api_call *call, const char *title, const char *list,
                       const char *path, const char *message)
{
    struct buf body = { 0 }, error = { 0 };
    buf_print(&error, "%s: %s%s%s", title, path, *path ? ": " : "", message);
    buf_add_text(&body, "{\"error\":");
    buf_add_json(&body, buf_slice(&error));
    buf_finish(&error);
    buf_print(&body, ",\"%s\":[{\"code\":\"custom\",\"path\":[", list);
    buf_add_json(&body, slice_of(path));
    buf_add_text(&body, "],\"message\":");
    buf_add_json(&body, slice_of(message));
    buf_add_text(&body, "}]}");
    api_reply_json(call, 400, buf_slice(&body));
    buf_finish(&body);
}
