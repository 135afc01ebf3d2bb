/* http_conn.c - feeds bytes to a request, calls the handler, and ends the exchange.
 *
 * Anything that may have ended a request (the reply, the body's last byte, the end of the
 * connection, in any order) calls settle(), which acts on the state that it finds. */
#include "net/http/http_conn.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "net/http/http_reply.h"
#include "net/http/http_session.h"
#include "net/http/origin.h"
#include "net/http/secure.h"
#include "net/http/server_state.h"
#include "net/proxy_header.h"

enum {
    SHORT_BODY = 64 * 1024, /* read and discarded to keep a connection */
    SLOW_BODY_MS = 15 * 60 * 1000,
};

static const struct connection_ops http_ops;

static struct http_conn *of(struct connection *c)
{
    return container_of(c, struct http_conn, c);
}

static const struct server_options *options_of(const struct http_conn *conn)
{
    return &conn->c.server->options;
}

/* Returns true if bytes can be parsed now. */
static bool ready(const struct http_conn *conn)
{
    const struct connection *c = &conn->c;
    if (c->ops != &http_ops || c->closed || c->lost || c->lingering || conn->header_due)
        return false;
    if (!conn->request)
        return !c->outbox.backlog;
    return !conn->request->complete && !conn->request->x.body_paused;
}

/* Returns true if the exchange has ended: it was received and replied to, or never will
 * be. */
static bool over(const struct http_conn *conn)
{
    const struct request *request = conn->request;
    bool ended = conn->c.lingering || conn->c.closed;
    if (!request->offered)
        return ended;
    return request->x.replied && (request->complete || ended);
}

static void end_request(struct http_conn *conn)
{
    request_give_back(conn->c.server, conn->request);
    conn->request = NULL;
    origin_end_request(conn);
}

/* A connection that has sent only empty lines so far keeps its deadline. */
static void be_idle(struct http_conn *conn)
{
    struct connection *c = &conn->c;
    connection_set_deadline(c, options_of(conn)->idle_timeout_ms);
    if (!c->known)
        return; /* it stays among the unauthenticated */
    list_remove(&c->spare);
    list_append(&c->server->idle, &c->spare);
}

/* In a drain, a peer without a valid credential gets little time. */
static bool must_finish_soon(const struct connection *c)
{
    return c->server->draining && !c->known;
}

/* A peer that sends meanwhile gets no extra time for reading the response. */
static void await_reader(struct http_conn *conn)
{
    int64_t again_ms;
    connection_is_slow(&conn->c, options_of(conn)->write_timeout_ms, &again_ms);
    if (must_finish_soon(&conn->c))
        again_ms = options_of(conn)->drain_grace_ms;
    connection_set_deadline(&conn->c, again_ms > 0 ? again_ms : 0);
}

static void wait_for_request(struct http_conn *conn)
{
    struct connection *c = &conn->c;
    if (c->outbox.backlog)
        await_reader(conn);
    else if (c->pending)
        connection_defer(c);
    else if (c->eof || c->server->draining)
        connection_close(c);
    else if (conn->asked)
        be_idle(conn);
}

static void forget(struct http_conn *conn)
{
    struct http_carried *carried = conn->carried;
    bytes_clear(&conn->peer);
    metric_add(M_HTTP_CONNECTIONS, -1);
    server_forget(&conn->c);
    if (carried)
        carried->ops->on_closed(carried);
}

/* Returns true if enough of pipelined requests is buffered that reading must pause. */
static bool is_enough(const struct http_conn *conn)
{
    const struct connection *c = &conn->c;
    size_t kept = connection_kept(c).len;
    return kept >= options_of(conn)->pipeline_bytes_max ||
           (!c->known && kept >= UNAUTHENTICATED_INPUT);
}

/* Called wherever a request may have ended. */
static void settle(struct http_conn *conn)
{
    struct connection *c = &conn->c;
    if (c->busy)
        return;
    if (conn->request && over(conn))
        end_request(conn);
    if (c->gone) {
        if (!conn->request)
            forget(conn);
        return;
    }
    if (c->closed || c->lingering)
        return;
    connection_pause(c, is_enough(conn));
    if (!conn->request)
        wait_for_request(conn);
    else if (c->pending && ready(conn))
        connection_defer(c);
}

/* Informs the handler, once, that the peer has left; its reply still ends the exchange. */
static void report_gone(struct http_conn *conn)
{
    struct server *server = conn->c.server;
    struct request *request = conn->request;
    if (!request || !request->offered || request->x.replied || request->x.gone)
        return;
    request->x.gone = true;
    if (!server->options.handler.on_gone)
        return;
    bool busy = conn->c.busy;
    conn->c.busy = true;
    server->options.handler.on_gone(server->options.owner, &request->x);
    conn->c.busy = busy;
}

static void linger(struct http_conn *conn)
{
    struct connection *c = &conn->c;
    const struct server_options *options = options_of(conn);
    if (c->lingering)
        return;
    if (c->outbox.backlog)
        await_reader(conn);
    else
        connection_set_deadline(c, options->closing_timeout_ms);
    connection_linger(c);
}

static void http_conn_refuse(struct http_conn *conn, struct http_fault fault)
{
    struct request *request = conn->request;
    metric_add(M_HTTP_REFUSED, 1);
    if (!request->x.replied && !request->streaming)
        http_reply_write_refusal(request, fault);
    linger(conn);
    report_gone(conn);
}

void http_reply_early(struct exchange *x, int status, struct slice headers,
                      struct slice body)
{
    struct request *request = container_of(x, struct request, x);
    assert(http_is_awaited(x));
    http_reply_write_early(request, status, headers, body);
    linger(request->conn);
    report_gone(request->conn);
}

/* Returns true if an unwanted body is short enough to be read to its end, so that the
 * response does not depend on how much of it has arrived. */
static bool can_skip_body(const struct request *request)
{
    return !request->x.chunked && !request->expects_continue &&
           request->length <= SHORT_BODY;
}

static void count_in(struct server *server, struct request *request)
{
    request->offered = true;
    request->is_late = server->notes_late;
    server->open_exchanges++;
    server->early_exchanges += !request->is_late;
}

static void count_out(const struct request *request)
{
    struct server *server = request->conn->c.server;
    server->open_exchanges--;
    server->early_exchanges -= !request->is_late;
}

void http_conn_replied(struct request *request, bool keep)
{
    struct http_conn *conn = request->conn;
    request->x.replied = true;
    http_body_resume(&request->x);
    count_out(request);
    if (!keep && !conn->c.closed)
        linger(conn);
    else if (!conn->c.closed && !request->complete)
        connection_set_deadline(&conn->c, options_of(conn)->body_timeout_ms);
    settle(conn);
}

bool http_conn_keeps(const struct request *request)
{
    const struct connection *c = &request->conn->c;
    if (!request->keep_alive || request->x.is_last || c->server->draining || c->lingering ||
        request->conn->carried)
        return false;
    if (c->eof && !c->pending && !c->busy) /* busy: more may be in hand */
        return false;
    return request->complete || can_skip_body(request);
}

/* ---- sessions ---- */

/* It follows the memory of the connection, so that other servers do without it. */
static struct http_session **session_place(const struct connection *c)
{
    assert(c->server->options.on_session_end);
    return (struct http_session **)((char *)c + c->server->conn_size);
}

void http_session_begin(struct exchange *x, struct http_session *session)
{
    session->conn = &container_of(x, struct request, x)->conn->c;
    assert(!*session_place(session->conn));
    *session_place(session->conn) = session;
}

struct http_session *http_session_of(const struct exchange *x)
{
    return *session_place(&container_of(x, struct request, x)->conn->c);
}

void http_session_close(struct http_session *session)
{
    connection_close(session->conn);
}

static void end_session(struct connection *c)
{
    const struct server_options *options = &c->server->options;
    struct http_session *session = options->on_session_end ? *session_place(c) : NULL;
    if (!session)
        return;
    *session_place(c) = NULL;
    options->on_session_end(options->owner, session);
}

/* ---- other protocols, and input ---- */

struct connection *http_conn_hand_over(struct request *request)
{
    struct http_conn *conn = request->conn;
    assert(request->complete && !request->x.replied && !request->x.gone);
    count_out(request);
    metric_add(M_HTTP_CONNECTIONS, -1);
    conn->forwarded = false; /* its place in the count belongs to the WebSocket now */
    end_request(conn);
    end_session(&conn->c);
    connection_count_in(&conn->c, NULL, false);
    conn->c.answering = NULL;
    bytes_clear(&conn->peer);
    connection_pause(&conn->c, false);
    return &conn->c;
}

static bool is_ours(const struct connection *c)
{
    return c->ops == &http_ops && !c->closed && !c->lingering;
}

static void complete(struct http_conn *conn)
{
    struct server *server = conn->c.server;
    struct request *request = conn->request;
    connection_clear_deadline(&conn->c);
    request->complete_ns = (int64_t)uv_hrtime();
    if (request->x.replied)
        return;
    if (!request->x.stream_body)
        request->x.body = buf_slice(&request->body);
    server->options.handler.on_request(server->options.owner, &request->x);
}

/* Returns the time within which the next bytes of the body must arrive. */
static int64_t body_window_ms(const struct http_conn *conn)
{
    const struct request *request = conn->request;
    if (conn->c.server->draining)
        return options_of(conn)->drain_grace_ms;
    return request->x.slow_body && !request->x.replied ? SLOW_BODY_MS
                                                       : options_of(conn)->body_timeout_ms;
}

static void await_body(struct http_conn *conn)
{
    conn->request->window_len = conn->request->x.body_len;
    connection_set_deadline(&conn->c, body_window_ms(conn));
}

static void offer(struct http_conn *conn)
{
    struct server *server = conn->c.server;
    struct request *request = conn->request;
    struct exchange *x = &request->x;
    struct http_fault fault = request_check(request);
    conn->asked = true;
    if (!fault.status && !origin_note_request(conn, x))
        fault = (struct http_fault){ 429, "Too many connections of this address; try again "
                                          "later" };
    if (fault.status) {
        http_conn_refuse(conn, fault);
        return;
    }
    x->admin = conn->c.admin;
    x->secure = conn->c.secure != NULL;
    x->wants_upgrade = x->wants_upgrade && !conn->carried;
    count_in(server, request);
    if (!request->complete)
        await_body(conn);
    server->options.handler.on_head(server->options.owner, x);
    if (!is_ours(&conn->c))
        return;
    if (x->slow_body && !x->replied && !request->complete)
        await_body(conn);
    if (request->complete)
        complete(conn);
    else if (!x->replied && request->length > x->body_limit)
        http_conn_refuse(conn, request_too_large(request));
    else if (!x->replied && request->expects_continue)
        http_reply_write_continue(request);
}

static size_t take_head(struct http_conn *conn, struct slice bytes)
{
    struct request *request = conn->request;
    size_t used = request_feed_head(request, bytes);
    if (request->fault.status)
        http_conn_refuse(conn, request->fault);
    else if (request->head_done)
        offer(conn);
    else if (!request->head.len)
        end_request(conn); /* it was an empty line */
    return used;
}

/* Takes at most SERVER_INPUT bytes of the body; more may be waiting. */
static size_t take_body(struct http_conn *conn, struct slice bytes)
{
    struct request *request = conn->request;
    bytes.len = bytes.len < SERVER_INPUT ? bytes.len : SERVER_INPUT;
    size_t used = request_feed_body(request, bytes);
    if (!is_ours(&conn->c))
        return used;
    if (request->fault.status)
        http_conn_refuse(conn, request->fault);
    else if (request->complete)
        complete(conn);
    return used;
}

static void begin_request(struct http_conn *conn)
{
    struct connection *c = &conn->c;
    connection_tell_delivery(c, DELIVERY_TAKEN);
    conn->request = request_take(c->server);
    conn->request->conn = conn;
    if (!conn->begun || conn->asked)
        connection_set_deadline(c, options_of(conn)->head_timeout_ms);
    conn->begun = true;
    if (c->known)
        list_remove(&c->spare); /* no longer idle */
}

static size_t step(struct http_conn *conn, struct slice bytes)
{
    if (!conn->request)
        begin_request(conn);
    return conn->request->head_done ? take_body(conn, bytes) : take_head(conn, bytes);
}

static bool in_head(const struct http_conn *conn)
{
    return conn->request && !conn->request->head_done;
}

/* Handles requests until one must wait for its reply or the turn's time runs out, and keeps
 * the rest. A handler may turn the connection into a WebSocket in here. */
static void consume(struct http_conn *conn, struct slice bytes)
{
    struct connection *c = &conn->c;
    struct timeslice timeslice = loop_timeslice(c->server->loop);
    c->busy = true;
    while (bytes.len && ready(conn) && (in_head(conn) || timeslice_left(&timeslice))) {
        bytes = slice_from(bytes, step(conn, bytes));
        if (c->ops == &http_ops && conn->request && over(conn))
            end_request(conn);
    }
    c->busy = false;
    if (!c->lingering && !c->closed)
        connection_keep(c, bytes);
    if (c->ops == &http_ops)
        settle(conn);
    else if (c->pending)
        connection_defer(c);
}

static void turn_away(struct http_conn *conn)
{
    char answer[SERVER_FULL_ANSWER];
    if (conn->c.secure) { /* a handshake would cost more than this response */
        metric_add(M_HTTP_REFUSED, 1);
        connection_close(&conn->c);
        return;
    }
    struct piece piece = { .text = { answer, server_write_full(conn->c.server, answer) } };
    connection_send(&conn->c, &piece, 1);
    linger(conn);
}

/* ---- the header of the PROXY protocol ---- */

/* The header is invalid: the proxy is misconfigured, or a client connects without it. */
static void refuse_without_header(struct http_conn *conn)
{
    char reason[128], text[ADDRESS_TEXT];
    address_print(&conn->address, text);
    snprintf(reason, sizeof(reason), "%s sent none, but this listener has ,proxy", text);
    metric_add(M_HTTP_REFUSED, 1);
    server_warn(conn->c.server,
                "closing connections without a header of the PROXY protocol 2", reason);
    connection_close(&conn->c);
}

/* Returns the number as far as it fits; bytes beyond that are read later. */
static uint16_t at_most(size_t missing)
{
    return missing < UINT16_MAX ? (uint16_t)missing : UINT16_MAX;
}

/* If TLS follows the PROXY header, reads only bytes that are sure to belong to the
 * header. */
static void await_header(struct http_conn *conn)
{
    if (conn->tls_due)
        conn->c.most = at_most(proxy_header_missing(connection_kept(&conn->c)));
}

static void take_header(struct http_conn *conn, const struct proxy_header *header)
{
    conn->header_due = false;
    conn->named = header->names_client;
    if (header->names_client)
        conn->address = header->client;
    if (!conn->tls_due)
        return;
    conn->c.most = 0;
    secure_begin(&conn->c);
}

/* Takes bytes of the header and returns true once it is complete. The connection's address
 * is then that of the client named there, and rest, which the caller must free, has the
 * bytes after the header. */
static bool read_header(struct http_conn *conn, struct slice bytes, struct buf *rest)
{
    struct connection *c = &conn->c;
    struct proxy_header header;
    connection_keep(c, bytes);
    switch (proxy_header_read(connection_kept(c), &header)) {
    case PROXY_MORE: await_header(conn); return false;
    case PROXY_BAD: refuse_without_header(conn); return false;
    case PROXY_DONE: break;
    }
    take_header(conn, &header);
    *rest = connection_take_kept(c);
    buf_drop(rest, header.len);
    return true;
}

/* The beginning of a request may follow the header of the PROXY protocol. */
static void on_header_bytes(struct http_conn *conn, struct slice bytes)
{
    struct buf rest;
    if (!read_header(conn, bytes, &rest))
        return;
    if (!origin_note(conn, &conn->address))
        turn_away(conn);
    else if (rest.len)
        consume(conn, buf_slice(&rest));
    buf_finish(&rest);
}

static void on_bytes(struct connection *c, struct slice bytes)
{
    struct http_conn *conn = of(c);
    if (conn->header_due) {
        on_header_bytes(conn, bytes);
        return;
    }
    if (!c->pending && ready(conn)) {
        consume(conn, bytes);
        return;
    }
    connection_keep(c, bytes);
    settle(conn);
}

static void on_turn(struct connection *c)
{
    struct http_conn *conn = of(c);
    if (!ready(conn))
        return;
    struct buf pending = connection_take_kept(c);
    consume(conn, buf_slice(&pending));
    buf_finish(&pending);
}

/* Handles a peer that has stopped sending. The client may still wait for the response, so
 * the reply is written, but the handler is informed that probably no client reads it. */
static void on_left(struct connection *c)
{
    struct http_conn *conn = of(c);
    struct request *request = conn->request;
    report_gone(conn);
    if (c->eof && conn->header_due)
        connection_close(c);
    else if (c->eof && request && !request->complete && !request->x.replied)
        connection_close(c);
    else if (c->eof && request && !request->complete)
        linger(conn);
    settle(conn);
}

static void report_drained(struct http_conn *conn)
{
    const struct server_options *options = options_of(conn);
    struct request *request = conn->request;
    bool receives = request->streaming && (request->sized || !request->x.gone);
    if (receives && options->handler.on_drained)
        options->handler.on_drained(options->owner, &request->x);
}

static void on_request_drained(struct http_conn *conn)
{
    connection_clear_deadline(&conn->c);
    report_drained(conn);
}

static void on_drained(struct connection *c)
{
    struct http_conn *conn = of(c);
    if (c->lingering)
        connection_set_deadline(c, options_of(conn)->closing_timeout_ms);
    else if (conn->request && conn->request->complete)
        on_request_drained(conn);
    else
        settle(conn);
}

/* Streams send little, and have their own rules for slow readers: their peer need only
 * accept anything at all. */
static void on_unsent_deadline(struct http_conn *conn)
{
    struct connection *c = &conn->c;
    int64_t again_ms = options_of(conn)->write_timeout_ms;
    bool too_slow;
    if (must_finish_soon(c)) {
        too_slow = true;
    } else if (conn->request && conn->request->streaming && !conn->request->sized) {
        connection_look(c);
        too_slow = connection_is_silent(c, again_ms, &again_ms);
    } else {
        too_slow = connection_is_slow(c, again_ms, &again_ms);
    }
    if (too_slow)
        connection_close(c);
    else
        connection_set_deadline(c, again_ms);
}

static void on_body_deadline(struct http_conn *conn)
{
    struct request *request = conn->request;
    int64_t window_ms = body_window_ms(conn);
    bool slow = window_ms == SLOW_BODY_MS;
    int64_t least = slow ? 1 : window_ms * options_of(conn)->least_bytes_per_s / 1000;
    size_t came = request->x.body_len - request->window_len;
    if ((int64_t)came < least) {
        http_conn_refuse(
            conn, (struct http_fault){ 408, "The body came too slowly; send it again" });
        settle(conn);
        return;
    }
    await_body(conn);
}

static void on_deadline(struct connection *c)
{
    struct http_conn *conn = of(c);
    struct request *request = conn->request;
    if (c->outbox.backlog) {
        on_unsent_deadline(conn);
    } else if (c->lingering || !request) {
        connection_close(c);
    } else if (!request->head_done) {
        http_conn_refuse(
            conn, (struct http_fault){ 408, "The request came too slowly; send it again" });
        settle(conn);
    } else if (!request->complete) {
        on_body_deadline(conn);
    }
}

static void on_closed(struct connection *c)
{
    struct http_conn *conn = of(c);
    connection_tell_delivery(c, conn->answering.delivered);
    report_gone(conn);
    end_session(c);
    if (conn->request && conn->request->sized && !conn->request->x.replied) {
        c->busy = true;
        report_drained(conn);
        c->busy = false;
    }
    settle(conn);
}

/* Bytes that seemed to have been sent were not. */
static void on_unsent(struct connection *c)
{
    if (c->known)
        list_remove(&c->spare); /* not idle after all */
    await_reader(of(c));
}

static const struct connection_ops http_ops = {
    .on_bytes = on_bytes,
    .on_left = on_left,
    .on_drained = on_drained,
    .on_unsent = on_unsent,
    .on_deadline = on_deadline,
    .on_turn = on_turn,
    .on_closed = on_closed,
};

struct http_conn *http_conn_create(struct server *server, int fd, size_t size)
{
    struct http_conn *conn = mem_alloc(size);
    if (!connection_open(&conn->c, server, fd, &http_ops)) {
        free(conn);
        return NULL;
    }
    conn->c.answering = &conn->answering;
    metric_add(M_HTTP_CONNECTIONS, 1);
    connection_set_deadline(&conn->c, server->options.head_timeout_ms);
    return conn;
}

struct http_conn *http_conn_create_carried(struct server *server,
                                           struct http_carried *carried, size_t size)
{
    struct http_conn *conn = mem_alloc(size);
    connection_open_carried(&conn->c, server, &http_ops);
    conn->c.answering = &conn->answering;
    conn->carried = carried;
    metric_add(M_HTTP_CONNECTIONS, 1);
    return conn;
}

bool http_conn_is_new(const struct connection *c)
{
    return is_ours(c) && !container_of(c, struct http_conn, c)->asked;
}

void http_conn_drain(struct connection *c)
{
    struct http_conn *conn = of(c);
    if (c->ops != &http_ops || c->closed)
        return;
    if (c->outbox.backlog && must_finish_soon(c))
        await_reader(conn);
    else if (is_ours(c) && conn->request && conn->request->offered &&
             !conn->request->complete)
        await_body(conn);
}

void http_conn_begin(struct http_conn *conn, struct address peer)
{
    if (conn->header_due) {
        conn->address = peer; /* counted once the header names its client */
        await_header(conn);
        return;
    }
    if (!origin_note(conn, &peer))
        turn_away(conn);
}
