/* http_reply.c - writes status lines, heads and bodies of replies, and streams in chunks.
 *
 *   http_conn.c ── 100 Continue, refusals of its own ──► http_reply.c
 *        ▲                                                   │
 *        │   http_conn_keeps: what the head states           │
 *        └── http_conn_replied: the exchange has ended ◄─────┘
 *
 * One exchange spans two files: the connection hands over the request, and the reply ends
 * it there. */
#include "net/http/http_reply.h"

#include <assert.h>
#include <stdio.h>

#include "base/metrics.h"
#include "base/rope.h"
#include "net/http/http_conn.h"
#include "net/http/server_state.h"

enum {
    STREAM_UNSENT_MAX = 1024 * 1024,
    STREAM_PIECES_MAX = 4096,
};

static const struct {
    int status;
    const char *text;
} reasons[] = {
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 417, "Expectation Failed" },
    { 422, "Unprocessable Content" },
    { 426, "Upgrade Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 503, "Service Unavailable" },
    { 507, "Insufficient Storage" },
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "";
}

const char *http_method_name(enum http_method method)
{
    static const char *const names[] = { "GET",   "HEAD",   "POST",    "PUT",
                                         "PATCH", "DELETE", "OPTIONS", "other" };
    return names[method];
}

struct slice http_header(const struct exchange *x, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < x->header_count; i++)
        if (x->headers[i].name.len == len && http_name_is(x->headers[i].name, name))
            return x->headers[i].value;
    return (struct slice){ 0 };
}

bool http_next_header(const struct exchange *x, const char *name, size_t *at,
                      struct slice *value)
{
    while (*at < x->header_count) {
        const struct http_header *header = &x->headers[(*at)++];
        if (http_name_is(header->name, name)) {
            *value = header->value;
            return true;
        }
    }
    return false;
}

static struct request *of(struct exchange *x)
{
    return container_of(x, struct request, x);
}

static struct connection *connection_of(struct request *request)
{
    return &request->conn->c;
}

static bool has_content(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

/* Begins the head of a response, without its final empty line. Uses the scratch buffer of
 * the server. */
static struct buf *begin_head(struct request *request, int status, struct slice headers,
                              bool keep)
{
    struct server *server = connection_of(request)->server;
    struct buf *out = &server->scratch;
    buf_clear(out);
    buf_add_text(out, "HTTP/1.1 ");
    buf_add_number(out, status);
    buf_add_char(out, ' ');
    buf_add_text(out, reason_of(status));
    buf_add_text(out, "\r\ndate: ");
    buf_add_text(out, server_date(server));
    buf_add_text(out, "\r\n");
    if (!keep)
        buf_add(out, SLICE("connection: close\r\n"));
    else if (request->http10)
        buf_add(out, SLICE("connection: keep-alive\r\n"));
    buf_add(out, headers);
    return out;
}

/* Returns true if nothing more may be sent on the connection. */
static bool is_closed_for_sending(const struct request *request)
{
    const struct connection *c = &request->conn->c;
    return c->closed || c->lost || c->lingering;
}

void http_reply_count(const struct exchange *x, int status)
{
    int class = status / 100 - 1;
    if (container_of(x, struct request, x)->early)
        return;
    metric_add(M_HTTP_1XX + class, 1);
    if (x->answers)
        x->answers->by_class[class]++;
}

static struct piece make_head(struct request *request, int status, struct slice headers,
                              size_t body_len, bool keep)
{
    struct buf *out = begin_head(request, status, headers, keep);
    if (has_content(status)) {
        buf_add_text(out, "content-length: ");
        buf_add_number(out, (int64_t)body_len);
        buf_add_text(out, "\r\n");
    }
    buf_add(out, SLICE("\r\n"));
    return (struct piece){ buf_slice(out), NULL };
}

/* Gives the response to the owner of a request that another connection carries. */
static void reply_carried(struct request *request, int status, struct slice headers,
                          struct bytes *const *parts, size_t count)
{
    struct http_carried *carried = request->conn->carried;
    struct buf body = { 0 };
    for (size_t i = 0; i < count && has_content(status); i++)
        rope_add_inner(&body, parts[i], 0, 0);
    carried->is_answered = true;
    carried->ops->on_reply(carried, status, headers, buf_slice(&body));
    buf_finish(&body);
}

static void reply_carried_piece(struct request *request, int status, struct slice headers,
                                struct piece body)
{
    struct http_carried *carried = request->conn->carried;
    if (body.owner) {
        reply_carried(request, status, headers, &body.owner, 1);
        return;
    }
    carried->is_answered = true;
    carried->ops->on_reply(carried, status, headers,
                           has_content(status) ? body.text : (struct slice){ 0 });
}

static void write_reply(struct request *request, int status, struct slice headers,
                        struct piece body, bool keep)
{
    if (request->conn->carried) {
        reply_carried_piece(request, status, headers, body);
        return;
    }
    struct piece head = make_head(request, status, headers, body.text.len, keep);
    if (!has_content(status) || request->x.method == HTTP_HEAD_)
        body = (struct piece){ 0 };
    struct piece pieces[] = { head, body };
    connection_send_soon(connection_of(request), pieces, 2);
}

static void write_parts(struct request *request, int status, struct slice headers,
                        struct bytes *const *parts, size_t count, bool keep)
{
    struct connection *c = connection_of(request);
    size_t len = 0;
    if (request->conn->carried) {
        reply_carried(request, status, headers, parts, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        len += parts[i]->len;
    struct piece head = make_head(request, status, headers, len, keep);
    connection_send(c, &head, 1);
    if (request->x.method == HTTP_HEAD_)
        return;
    for (size_t i = 0; i < count; i += OUTBOX_PIECES_MAX) {
        size_t left = count - i;
        connection_send_frames(c, parts + i,
                               left < OUTBOX_PIECES_MAX ? left : OUTBOX_PIECES_MAX);
    }
}

int64_t http_elapsed_us(const struct exchange *x)
{
    const struct request *request = container_of(x, struct request, x);
    return request->complete_ns ? ((int64_t)uv_hrtime() - request->complete_ns) / 1000 : 0;
}

static void note_time(const struct request *request)
{
    if (request->complete_ns)
        metric_observe_us(H_REQUEST, ((int64_t)uv_hrtime() - request->complete_ns) / 1000);
}

static void reply(struct exchange *x, int status, struct slice headers, struct piece body)
{
    struct request *request = of(x);
    assert(!x->replied && !request->streaming);
    bool keep = http_conn_keeps(request);
    http_reply_count(x, status);
    if (!is_closed_for_sending(request)) {
        connection_count_in(connection_of(request), x->answer_quota, false);
        write_reply(request, status, headers, body, keep);
        note_time(request);
    }
    http_conn_replied(request, keep);
}

void http_reply_parts(struct exchange *x, int status, struct slice headers,
                      struct bytes *const *parts, size_t count)
{
    struct request *request = of(x);
    assert(!x->replied && !request->streaming && count);
    bool keep = http_conn_keeps(request);
    http_reply_count(x, status);
    if (!is_closed_for_sending(request)) {
        connection_count_in(connection_of(request), x->answer_quota, false);
        write_parts(request, status, headers, parts, count, keep);
        note_time(request);
    }
    http_conn_replied(request, keep);
}

bool http_follow_reply(struct exchange *x, struct delivery *delivery)
{
    struct connection *c = &container_of(x, struct request, x)->conn->c;
    if (c->closed)
        return false;
    connection_tell_delivery(c, DELIVERY_TAKEN);
    c->answering->delivery = delivery;
    return true;
}

void http_reply(struct exchange *x, int status, struct slice headers, struct slice body)
{
    reply(x, status, headers, (struct piece){ body, NULL });
}

void http_reply_shared(struct exchange *x, int status, struct slice headers,
                       struct bytes *body)
{
    reply(x, status, headers, piece_of(body));
}

#define JSON_TYPE "content-type: application/json; charset=utf-8\r\n"

static struct buf error_body(struct http_fault fault)
{
    struct buf body = { 0 };
    buf_add_text(&body, "{\"error\":");
    buf_add_json(&body, slice_of(fault.text));
    buf_add_char(&body, '}');
    return body;
}

static void report_refused(struct request *request, struct http_fault fault)
{
    const struct server_options *options = &connection_of(request)->server->options;
    if (!request->x.peer[0]) /* its head was incomplete */
        memcpy(request->x.peer, request->conn->peer->data, request->conn->peer->len + 1);
    if (options->handler.on_refused)
        options->handler.on_refused(options->owner, &request->x, fault.status);
}

void http_reply_refusal(struct exchange *x, struct http_fault fault, struct slice headers)
{
    struct buf body = error_body(fault), all = { 0 };
    report_refused(of(x), fault);
    buf_add_text(&all, JSON_TYPE);
    buf_add(&all, headers);
    http_reply(x, fault.status, buf_slice(&all), buf_slice(&body));
    buf_finish(&body);
    buf_finish(&all);
}

/* The method comes from llhttp, so HEAD is known once the head is complete. */
bool http_is_awaited(const struct exchange *x)
{
    const struct request *request = container_of(x, struct request, x);
    return request->complete && !request->streaming && !x->replied && !x->gone;
}

void http_reply_write_early(struct request *request, int status, struct slice headers,
                            struct slice body)
{
    http_reply_count(&request->x, status);
    request->early = true;
    write_reply(request, status, headers, (struct piece){ body, NULL }, false);
}

void http_reply_write_refusal(struct request *request, struct http_fault fault)
{
    struct buf body = error_body(fault);
    report_refused(request, fault);
    write_reply(request, fault.status, SLICE(JSON_TYPE),
                (struct piece){ buf_slice(&body), NULL }, false);
    buf_finish(&body);
}

void http_reply_write_continue(struct request *request)
{
    struct piece piece = { SLICE("HTTP/1.1 100 Continue\r\n\r\n"), NULL };
    connection_send(connection_of(request), &piece, 1);
}

/* A stream needs a connection of its own; one that is carried ends here (carried.h). */
static void begin_stream(struct request *request)
{
    assert(!request->x.replied && !request->streaming);
    request->streaming = true;
    if (request->conn->carried)
        connection_close(connection_of(request));
}

void http_stream_begin(struct exchange *x, int status, struct slice headers)
{
    struct request *request = of(x);
    begin_stream(request);
    request->reply_keeps = !request->http10 && http_conn_keeps(request);
    request->reply_chunked = !request->http10 && x->method != HTTP_HEAD_;
    http_reply_count(x, status);
    if (is_closed_for_sending(request))
        return;
    struct buf *out = begin_head(request, status, headers, request->reply_keeps);
    if (!request->http10)
        buf_add(out, SLICE("transfer-encoding: chunked\r\n"));
    buf_add(out, SLICE("\r\n"));
    struct piece piece = { buf_slice(out), NULL };
    connection_count_in(connection_of(request), x->answer_quota, true);
    connection_send(connection_of(request), &piece, 1);
    note_time(request);
}

void http_stream_begin_sized(struct exchange *x, int status, struct slice headers,
                             size_t len)
{
    struct request *request = of(x);
    begin_stream(request);
    request->sized = true;
    request->reply_keeps = http_conn_keeps(request);
    http_reply_count(x, status);
    if (is_closed_for_sending(request))
        return;
    connection_count_in(connection_of(request), x->answer_quota, false);
    struct piece head = make_head(request, status, headers, len, request->reply_keeps);
    connection_send(connection_of(request), &head, 1);
    note_time(request);
}

static size_t length_of(const struct piece *pieces, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += pieces[i].text.len;
    return len;
}

static void send_pieces(struct connection *c, const struct piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i += OUTBOX_PIECES_MAX) {
        size_t left = count - i;
        connection_send_soon(c, pieces + i,
                             left < OUTBOX_PIECES_MAX ? left : OUTBOX_PIECES_MAX);
    }
}

/* Writes the content as one whole chunk. Returns false if the peer no longer reads.
 * pieces[1] to pieces[count] are the content; the pieces before and after them are for the
 * chunk's frame. */
static bool write_chunk(struct exchange *x, struct piece *pieces, size_t count)
{
    struct request *request = of(x);
    struct connection *c = connection_of(request);
    size_t len = length_of(pieces + 1, count);
    assert(request->streaming && !x->replied);
    if ((x->gone && !request->sized) || is_closed_for_sending(request))
        return false;
    if (!len || x->method == HTTP_HEAD_)
        return true;
    char size[24];
    int digits = snprintf(size, sizeof(size), "%zx\r\n", len);
    bool chunked = request->reply_chunked, was_empty = !c->outbox.backlog;
    pieces[0] = (struct piece){ { size, chunked ? (size_t)digits : 0 }, NULL };
    pieces[count + 1] = (struct piece){ { "\r\n", chunked ? 2 : 0 }, NULL };
    send_pieces(c, pieces, count + 2);
    if (was_empty && c->outbox.backlog)
        connection_set_deadline(c, c->server->options.write_timeout_ms);
    return !c->lost;
}

static bool keeps_up(struct exchange *x)
{
    const struct outbox *outbox = &connection_of(of(x))->outbox;
    return of(x)->sized || (outbox_unsent(outbox) <= STREAM_UNSENT_MAX &&
                            outbox_pieces(outbox) <= STREAM_PIECES_MAX);
}

static bool write_piece(struct exchange *x, struct piece content)
{
    struct piece pieces[] = { { { 0 }, NULL }, content, { { 0 }, NULL } };
    return write_chunk(x, pieces, 1) && keeps_up(x);
}

bool http_stream_write(struct exchange *x, struct slice content)
{
    return write_piece(x, (struct piece){ content, NULL });
}

bool http_stream_write_shared(struct exchange *x, struct bytes *content)
{
    return write_piece(x, piece_of(content));
}

bool http_stream_write_parts(struct exchange *x, struct bytes *const *parts, size_t count,
                             struct slice between, struct slice after)
{
    struct piece pieces[2 * HTTP_PARTS_MAX + 2];
    size_t used = 1;
    assert(count && count <= HTTP_PARTS_MAX);
    for (size_t i = 0; i < count; i++) {
        pieces[used++] = piece_of(parts[i]);
        pieces[used++] = (struct piece){ i + 1 < count ? between : after, NULL };
    }
    return write_chunk(x, pieces, used - 1);
}

size_t http_stream_unsent(struct exchange *x)
{
    return outbox_unsent(&connection_of(of(x))->outbox);
}

void http_stream_cut(struct exchange *x)
{
    assert(of(x)->streaming && !x->replied);
    http_conn_replied(of(x), false);
}

void http_stream_end(struct exchange *x)
{
    struct request *request = of(x);
    assert(request->streaming && !x->replied);
    if (request->reply_chunked && !is_closed_for_sending(request)) {
        struct piece piece = { SLICE("0\r\n\r\n"), NULL };
        connection_send(connection_of(request), &piece, 1);
    }
    /* A draining server closes the connection even if the head promised to keep it.
     * Otherwise the client would request its next stream there, from a process that is
     * exiting. */
    http_conn_replied(request, request->reply_keeps && http_conn_keeps(request));
}
