/* http_request.c - parses a request with llhttp, within limits; a pool of requests. */
#include "net/http/http_request.h"

#include "base/mem.h"
#include "net/http/http_conn.h"
#include "net/http/server_state.h"

enum {
    KEPT_BODY = 16 * 1024, /* capacity that a pooled request keeps */
    KEPT_HEAD = 4 * 1024,
    FIELDS_FIRST = 16,
    RESERVED_BODY = 64 * 1024, /* at first; then memory grows with the bytes */
};

/* One text, because it depends on how the bytes are split which fault llhttp notices
 * first. */
static const char bad_chunks[] =
    "Check the chunks of the body, their extensions and the trailers: these are too long "
    "or not well-formed";

static const char too_many_headers[] = "Send fewer headers";

static struct request *of(llhttp_t *parser)
{
    return container_of(parser, struct request, parser);
}

static const struct server_options *options_of(const struct request *request)
{
    return &request->conn->c.server->options;
}

/* -1 makes llhttp stop. */
static int stop(struct request *request, int status, const char *text)
{
    request->fault = (struct http_fault){ status, text };
    return -1;
}

struct http_fault request_too_large(struct request *request)
{
    snprintf(request->too_large, sizeof(request->too_large),
             "The body is too large: this call accepts %zu bytes at most",
             request->x.body_limit);
    return (struct http_fault){ 413, request->too_large };
}

static void extend(const struct request *request, struct span *span, const char *at,
                   size_t len)
{
    size_t start = (size_t)(at - request->head.ptr);
    if (!span->at)
        span->at = (uint32_t)start;
    span->len = (uint32_t)(start + len - span->at);
}

static int on_target(llhttp_t *parser, const char *at, size_t len)
{
    struct request *request = of(parser);
    request->in_target = true;
    extend(request, &request->target, at, len);
    return 0;
}

static int on_target_complete(llhttp_t *parser)
{
    of(parser)->in_target = false;
    return 0;
}

/* Grows the header arrays as needed, because requests such as polls are held for long. */
static void make_room(struct request *request)
{
    unsigned most = options_of(request)->headers_max;
    unsigned room = request->field_capacity ? 2 * request->field_capacity : FIELDS_FIRST;
    if (request->field_count < request->field_capacity)
        return;
    request->field_capacity = room < most ? room : most;
    request->fields =
        mem_resize(request->fields, request->field_capacity * sizeof(*request->fields));
    request->headers =
        mem_resize(request->headers, request->field_capacity * sizeof(*request->headers));
}

/* Discards trailers and chunk extensions, within a limit. A client cannot add headers after
 * a body. */
static int skip_extra(llhttp_t *parser, const char *at, size_t len)
{
    struct request *request = of(parser);
    (void)at;
    request->chunk_extra += len;
    if (request->chunk_extra > options_of(request)->head_bytes_max)
        return stop(request, 400, bad_chunks);
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t len)
{
    struct request *request = of(parser);
    if (request->head_done)
        return skip_extra(parser, at, len);
    if (!request->in_name) {
        if (request->field_count == options_of(request)->headers_max)
            return stop(request, 431, too_many_headers);
        make_room(request);
        request->fields[request->field_count++] = (struct header_field){ 0 };
        request->in_name = true;
    }
    extend(request, &request->fields[request->field_count - 1].name, at, len);
    return 0;
}

static int on_name_complete(llhttp_t *parser)
{
    of(parser)->in_name = false;
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
    struct request *request = of(parser);
    if (request->head_done)
        return skip_extra(parser, at, len);
    if (request->field_count)
        extend(request, &request->fields[request->field_count - 1].value, at, len);
    return 0;
}

static int on_head_complete(llhttp_t *parser)
{
    struct request *request = of(parser);
    request->head_done = true;
    request->keep_alive =
        llhttp_should_keep_alive(parser) && !(parser->flags & F_CONNECTION_CLOSE);
    request->length = parser->flags & F_CONTENT_LENGTH ? parser->content_length : 0;
    return 0;
}

static bool take_quota(struct request *request, size_t len)
{
    struct quota *quota = request->x.body_quota;
    if (!quota)
        return true;
    if (!quota_has(quota, len))
        return false;
    quota_take(quota, len);
    request->body_taken += len;
    return true;
}

/* Cuts a body that is too long to keep down to its beginning. Gives back the quota for the
 * rest. */
static void shorten(struct request *request)
{
    struct buf beginning = { 0 };
    if (request->body.len <= HTTP_BEGINNING)
        return;
    buf_add(&beginning, (struct slice){ request->body.ptr, HTTP_BEGINNING });
    buf_finish(&request->body);
    request->body = beginning;
    if (!request->body_taken)
        return; /* it is not counted */
    quota_release(request->x.body_quota, request->body_taken - HTTP_BEGINNING);
    request->body_taken = HTTP_BEGINNING;
}

/* Returns how much of a received piece is kept. */
static size_t kept_length(struct request *request, size_t len)
{
    const struct exchange *x = &request->x;
    if (!x->body_keep || x->body_len <= x->body_keep)
        return len;
    shorten(request);
    size_t left = HTTP_BEGINNING - request->body.len;
    return len < left ? len : left;
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
    struct request *request = of(parser);
    struct exchange *x = &request->x;
    x->body_len += len;
    if (x->replied || request->conn->c.closed)
        return 0; /* discarded */
    if (x->body_len > x->body_limit) {
        request->fault = request_too_large(request);
        return -1;
    }
    len = kept_length(request, len);
    if (!len)
        return 0;
    if (!take_quota(request, len))
        return stop(request, 503,
                    "The bodies of your requests in flight use all memory of your share; "
                    "try again, or send fewer at once");
    if (x->stream_body) {
        struct server *server = request->conn->c.server;
        server->options.handler.on_body(server->options.owner, x,
                                        (struct slice){ at, len });
    } else {
        if (!request->body.capacity && request->length)
            buf_reserve(&request->body,
                        request->length < RESERVED_BODY ? request->length : RESERVED_BODY);
        buf_add(&request->body, (struct slice){ at, len });
    }
    return 0;
}

/* Trailers are fed line by line. */
static int on_chunk(llhttp_t *parser)
{
    struct request *request = of(parser);
    request->in_trailers = request->line_begins = parser->content_length == 0;
    return request->in_trailers ? HPE_PAUSED : 0;
}

static int on_complete(llhttp_t *parser)
{
    of(parser)->complete = true;
    return HPE_PAUSED; /* what follows is another request */
}

static const llhttp_settings_t settings = {
    .on_url = on_target,
    .on_url_complete = on_target_complete,
    .on_header_field = on_name,
    .on_header_field_complete = on_name_complete,
    .on_header_value = on_value,
    .on_headers_complete = on_head_complete,
    .on_chunk_extension_name = skip_extra,
    .on_chunk_extension_value = skip_extra,
    .on_chunk_header = on_chunk,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

struct request *request_take(struct server *server)
{
    struct request *request;
    if (!list_empty(&server->requests)) {
        request = container_of(list_take(&server->requests), struct request, link);
        server->request_count--;
    } else {
        request = mem_new(struct request);
        list_init(&request->link);
    }
    llhttp_init(&request->parser, HTTP_REQUEST, &settings);
    request->first_line = true;
    return request;
}

static void trim(struct buf *buf, size_t capacity)
{
    if (buf->capacity > capacity)
        buf_finish(buf);
    buf_clear(buf);
}

void request_give_back(struct server *server, struct request *request)
{
    if (request->body_taken)
        quota_release(request->x.body_quota, request->body_taken);
    if (server->request_count == SERVER_POOL_MAX) {
        request_destroy(request);
        return;
    }
    trim(&request->head, KEPT_HEAD);
    trim(&request->body, KEPT_BODY);
    *request = (struct request){
        .head = request->head,
        .body = request->body,
        .fields = request->fields,
        .headers = request->headers,
        .field_capacity = request->field_capacity,
    };
    list_append(&server->requests, &request->link);
    server->request_count++;
}

void request_destroy(struct request *request)
{
    buf_finish(&request->head);
    buf_finish(&request->body);
    free(request->fields);
    free(request->headers);
    free(request);
}

/* Returns how many of the bytes to feed to llhttp. 0: the head is too large. */
static size_t head_piece(const struct request *request, struct slice bytes)
{
    const struct server_options *options = options_of(request);
    size_t len = bytes.len;
    const char *end = memchr(bytes.ptr, '\n', len);
    if (end)
        len = (size_t)(end - bytes.ptr) + 1;
    if (request->first_line && !request->target.at) {
        const char *space = memchr(bytes.ptr, ' ', len);
        if (space)
            len = (size_t)(space - bytes.ptr) + 1;
    }
    size_t room = options->head_bytes_max - request->head.len;
    if (request->in_target || (request->first_line && !request->target.at)) {
        size_t target = options->target_max + 1 - request->target.len;
        room = room < target ? room : target;
    }
    return len < room ? len : room;
}

static struct http_fault check_line(struct request *request)
{
    struct slice line = slice_from(buf_slice(&request->head), request->line);
    request->line = request->head.len;
    if (!request->first_line)
        return http_check_header_line(line);
    request->first_line = false;
    return http_check_request_line(line, &request->http10);
}

/* Ignores an empty line before a request (RFC 9112 §2.2). */
static bool skip_empty_line(struct request *request)
{
    if (!request->first_line || !slice_is(buf_slice(&request->head), "\r\n"))
        return false;
    buf_clear(&request->head);
    return true;
}

static bool went_well(int error)
{
    return error == HPE_OK || error == HPE_PAUSED || error == HPE_PAUSED_UPGRADE;
}

/* Checks the first byte of a header line before llhttp gets it. Depending on its version,
 * llhttp rejects an invalid one, or takes it as part of the previous line. */
static struct http_fault check_begin(const struct request *request, char first)
{
    if (request->first_line || request->head.len != request->line)
        return (struct http_fault){ 0 };
    if (request->field_count == options_of(request)->headers_max && first != '\r')
        return (struct http_fault){ 431, too_many_headers };
    return http_check_line_begin(first);
}

size_t request_feed_head(struct request *request, struct slice bytes)
{
    size_t len = head_piece(request, bytes);
    request->fault = check_begin(request, bytes.ptr[0]);
    if (request->fault.status)
        return bytes.len;
    if (len == 0) {
        stop(request, 431, "The request line and the headers are too large; send less");
        return bytes.len;
    }
    size_t start = request->head.len;
    buf_add(&request->head, (struct slice){ bytes.ptr, len });
    int error = llhttp_execute(&request->parser, request->head.ptr + start, len);
    if (request->fault.status)
        return len;
    if (request->target.len > options_of(request)->target_max)
        stop(request, 414, "The target is too long; send a shorter path and query");
    else if (!went_well(error))
        stop(request, 400, "This is not a well-formed HTTP/1.1 request");
    else if (bytes.ptr[len - 1] == '\n' && !skip_empty_line(request))
        request->fault = check_line(request);
    return len;
}

/* Returns the length up to the end of the line. Checks its first byte as in the head. */
static size_t trailer_piece(struct request *request, struct slice bytes)
{
    const char *end = memchr(bytes.ptr, '\n', bytes.len);
    if (request->line_begins)
        request->fault = http_check_line_begin(bytes.ptr[0]);
    request->line_begins = end != NULL;
    return end ? (size_t)(end - bytes.ptr) + 1 : bytes.len;
}

size_t request_feed_body(struct request *request, struct slice bytes)
{
    size_t len = request->in_trailers ? trailer_piece(request, bytes) : bytes.len;
    if (request->fault.status)
        return bytes.len;
    int error = llhttp_execute(&request->parser, bytes.ptr, len);
    if (request->fault.status)
        return bytes.len;
    if (!went_well(error))
        stop(request, 400, bad_chunks);
    if (request->fault.status)
        return bytes.len;
    if (error == HPE_OK)
        return len;
    if (!request->complete)
        llhttp_resume(&request->parser);
    return (size_t)(llhttp_get_error_pos(&request->parser) - bytes.ptr);
}

static enum http_method method_of(const llhttp_t *parser)
{
    switch (parser->method) {
    case HTTP_GET: return HTTP_GET_;
    case HTTP_HEAD: return HTTP_HEAD_;
    case HTTP_POST: return HTTP_POST_;
    case HTTP_PUT: return HTTP_PUT_;
    case HTTP_PATCH: return HTTP_PATCH_;
    case HTTP_DELETE: return HTTP_DELETE_;
    case HTTP_OPTIONS: return HTTP_OPTIONS_;
    default: return HTTP_OTHER_;
    }
}

static struct slice part_of(const struct request *request, struct span span)
{
    return (struct slice){ request->head.ptr + span.at, span.len };
}

static void set_headers(struct request *request, struct slice authority)
{
    struct http_header *headers = request->headers;
    for (unsigned i = 0; i < request->field_count; i++) {
        headers[i].name = part_of(request, request->fields[i].name);
        headers[i].value = slice_trim(part_of(request, request->fields[i].value));
        if (authority.ptr && http_name_is(headers[i].name, "host"))
            headers[i].value = authority;
    }
    request->x.headers = headers;
    request->x.header_count = request->field_count;
}

struct http_fault request_check(struct request *request)
{
    struct exchange *x = &request->x;
    struct http_head head = { .http10 = request->http10 };
    struct slice authority;
    x->method = method_of(&request->parser);
    struct http_fault fault =
        http_check_target(part_of(request, request->target), x->method == HTTP_OPTIONS_,
                          &x->path, &x->query, &authority);
    if (fault.status)
        return fault;
    set_headers(request, (struct slice){ 0 });
    fault = http_check_headers(&head, request->headers, request->field_count);
    if (authority.ptr)
        set_headers(request, authority);
    x->has_body_length = head.has_length;
    x->chunked = head.chunked;
    x->wants_upgrade = head.wants_upgrade;
    request->expects_continue = head.expects_continue;
    return fault;
}

/* ---- functions for handlers ---- */

void http_trust(struct exchange *x)
{
    connection_trust(&container_of(x, struct request, x)->conn->c);
}

void http_body_pause(struct exchange *x)
{
    x->body_paused = true;
}

void http_body_resume(struct exchange *x)
{
    struct request *request = container_of(x, struct request, x);
    if (!x->body_paused)
        return;
    x->body_paused = false;
    connection_defer(&request->conn->c);
}
