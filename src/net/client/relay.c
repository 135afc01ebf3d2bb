/* relay.c - pairs each request with a connection of its own, idle or new.
 *
 *   connection: waiting ─► opening ─► greeting ─► carrying ─► idle ─► carrying ─► … ─► closing
 *
 * A server knows nothing of a client before the greeting, and accepts few such clients at a time.
 * So few connections are opened at a time; the others wait for their turn.
 *
 * Bytes written in a turn are sent at its end, in one system call. */
#include "net/client/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/client/answer.h"
#include "net/client/channel.h"
#include "net/client/head.h"
#include "net/client/muxer.h"
#include "net/http/http_check.h"

enum {
    CONNECTIONS_MAX = 1000,
    OPENING_MAX = 32, /* until the end of the greeting */
    CONNECT_MS = 5 * 1000,
    IDLE_MS = 30 * 1000,
    FIRST_BYTE_MS = 90 * 1000,
    STALL_MS = 60 * 1000,
    KEPT_OUT = 16 * 1024,
    /* A server whose machine is gone says nothing: probes after 10 s end it within 30 s. */
    PROBE_AFTER_S = 10,
    PROBE_EVERY_S = 5,
    PROBES = 4,
};

struct relay_pool {
    struct loop *loop;
    struct url url;
    struct relay_pool_options options;
    struct readiness readiness;
    struct list conns;           // relay_conn::link; those that idle shortest are first
    struct list urgent, waiting; // relay_conn::turn; urgent ones are opened first
    unsigned open;               // those that are not closing
    unsigned opening;
    struct muxer *muxer; /* NULL: requests share no connection */
    struct deferred end;
    void (*closed)(void *owner); /* NULL: it is open */
    void *owner;
};

enum conn_state { CONN_OPENING, CONN_GREETING, CONN_READY, CONN_CLOSING };

struct relay_conn {
    struct channel channel;
    struct relay_pool *pool;
    struct relay *relay; /* NULL: idle, or closing */
    enum conn_state state;
    bool is_opening;  /* counted in relay_pool::opening */
    struct list turn; // relay_pool::urgent or ::waiting, until then
    struct answer answer;
    void *greeting;
    struct buf out; /* of the greeting; the first `sent` bytes are sent */
    size_t sent;
    struct buf answered; /* the body of the response to a greeting */
    struct deadline deadline;
    struct list link; // relay_pool::conns
};

static struct relay_conn *of(struct channel *channel)
{
    return container_of(channel, struct relay_conn, channel);
}

static void set_deadline(struct relay_conn *conn, int64_t ms)
{
    deadline_set(conn->pool->loop, &conn->deadline, ms);
}

static void clear_deadline(struct relay_conn *conn)
{
    deadline_clear(conn->pool->loop, &conn->deadline);
}

/* ---- turns ---- */

static void open_next(struct relay_pool *pool)
{
    while (pool->opening < OPENING_MAX) {
        struct list *line = list_empty(&pool->urgent) ? &pool->waiting : &pool->urgent;
        if (list_empty(line))
            return;
        struct relay_conn *conn = container_of(list_take(line), struct relay_conn, turn);
        clear_deadline(conn);
        conn->is_opening = true;
        pool->opening++;
        channel_open(&conn->channel);
    }
}

static void end_opening(struct relay_conn *conn)
{
    list_remove(&conn->turn);
    conn->pool->opening -= conn->is_opening;
    conn->is_opening = false;
    open_next(conn->pool);
}

/* ---- the end ---- */

static void close_conn(struct relay_conn *conn)
{
    if (conn->state == CONN_CLOSING)
        return;
    conn->state = CONN_CLOSING;
    conn->pool->open--;
    end_opening(conn);
    list_remove(&conn->link); /* idle ones are found at the front */
    list_append(&conn->pool->conns, &conn->link);
    clear_deadline(conn);
    channel_close(&conn->channel);
}

/* Takes the request off its connection, and wipes it: it contains credentials. */
static void detach(struct relay *relay)
{
    relay->conn->relay = NULL;
    relay->conn = NULL;
    loop_cancel_deferred(&relay->later);
    OPENSSL_cleanse(relay->out.ptr, relay->out.len);
    buf_finish(&relay->out);
    buf_finish(&relay->note);
}

static void fail(struct relay_conn *conn, enum err error, const char *why)
{
    struct relay *relay = conn->relay;
    if (relay)
        detach(relay);
    close_conn(conn);
    if (relay)
        relay->ops->on_end(relay, error, why);
}

static void become_idle(struct relay_conn *conn)
{
    struct relay_pool *pool = conn->pool;
    list_remove(&conn->link);
    list_append(pool->conns.next, &conn->link);
    channel_pause(&conn->channel, false);
    set_deadline(conn, pool->options.idle_ms);
}

static void end_whole(struct relay_conn *conn, bool may_stay)
{
    struct relay *relay = conn->relay;
    bool stays = may_stay && conn->answer.keeps_alive && relay->is_finished &&
                 !relay->out.len && !relay->leaves && !conn->pool->closed;
    detach(relay);
    if (stays)
        become_idle(conn);
    else
        close_conn(conn);
    relay->ops->on_end(relay, OK, "");
}

void relay_cancel(struct relay *relay)
{
    struct relay_conn *conn = relay->conn;
    if (relay->muxer)
        muxer_cancel(relay);
    if (!conn)
        return;
    detach(relay);
    close_conn(conn);
}

static void on_deadline(struct deadline *deadline)
{
    struct relay_conn *conn = container_of(deadline, struct relay_conn, deadline);
    if (conn->state == CONN_OPENING)
        fail(conn, ERR_NO_ANSWER, "timed out while waiting for a connection");
    else if (conn->state == CONN_GREETING)
        fail(conn, ERR_NO_ANSWER, "timed out while introducing this gateway");
    else if (conn->relay && conn->relay->out.len)
        fail(conn, ERR_NO_ANSWER, "the server does not read the request");
    else
        fail(conn, ERR_NO_ANSWER, "timed out while waiting for the response");
}

/* ---- sending a request ---- */

/* Sets the deadline for what the connection waits for. */
static void await(struct relay_conn *conn)
{
    const struct relay *relay = conn->relay;
    const struct relay_pool_options *options = &conn->pool->options;
    if (relay->out.len)
        set_deadline(conn, options->stall_ms);
    else if (relay->is_finished && !relay->has_head)
        set_deadline(conn, options->first_byte_ms);
    else
        clear_deadline(conn);
}

static void note_sent(struct relay *relay, size_t len)
{
    relay->sent += len;
    relay->was_sent |= len > 0;
    if (relay->sent < relay->out.len) {
        if (relay->sent > relay->out.len / 2) {
            buf_drop(&relay->out, relay->sent);
            relay->sent = 0;
        }
        return;
    }
    relay->sent = 0;
    if (relay->out.capacity > KEPT_OUT)
        buf_finish(&relay->out);
    buf_clear(&relay->out);
}

static void flush(struct relay_conn *conn)
{
    struct relay *relay = conn->relay;
    size_t len =
        channel_write(&conn->channel, slice_from(buf_slice(&relay->out), relay->sent));
    bool stalls = !len && relay->out.len;
    note_sent(relay, len);
    if (!stalls || !deadline_is_set(&conn->deadline))
        await(conn);
    if (relay->leaves && !relay->out.len && !relay->has_left) {
        relay->has_left = true;
        channel_finish_output(&conn->channel);
    }
    if (relay->out.len || !relay->is_full)
        return;
    relay->is_full = false;
    relay->ops->on_ready(relay);
}

/* Completes the head: the signature counts the requests of its connection. */
static void complete_head(struct relay_conn *conn)
{
    struct relay *relay = conn->relay;
    const struct relay_greeter *greeter = conn->pool->options.greeter;
    struct slice head = { relay->out.ptr, relay->head_len };
    struct buf all = { 0 };
    buf_add(&all, head);
    if (greeter)
        greeter->sign(conn->greeting, head, buf_slice(&relay->note), &all);
    buf_add(&all, SLICE("\r\n"));
    buf_add(&all, slice_from(buf_slice(&relay->out), relay->head_len));
    OPENSSL_cleanse(relay->out.ptr, relay->out.len);
    buf_finish(&relay->out);
    relay->out = all;
    relay->head_len = 0;
}

static void carry(struct relay_conn *conn);

static void on_later(struct deferred *deferred)
{
    struct relay *relay = container_of(deferred, struct relay, later);
    if (relay->conn->state != CONN_READY)
        return;
    if (relay->head_len)
        carry(relay->conn);
    else
        flush(relay->conn);
}

static void on_answer_piece(struct answer *answer, struct slice piece);

static void begin_answer(struct relay_conn *conn, bool is_for_head, bool may_upgrade)
{
    answer_begin(&conn->answer);
    conn->answer.is_for_head = is_for_head;
    conn->answer.may_upgrade = may_upgrade;
    conn->answer.on_piece = on_answer_piece;
}

static void carry(struct relay_conn *conn)
{
    begin_answer(conn, conn->relay->is_for_head, conn->relay->upgrades);
    complete_head(conn);
    flush(conn);
}

/* ---- introducing a connection ---- */

static void flush_greeting(struct relay_conn *conn)
{
    conn->sent +=
        channel_write(&conn->channel, slice_from(buf_slice(&conn->out), conn->sent));
}

static void send_greeting(struct relay_conn *conn, struct slice body)
{
    buf_clear(&conn->out);
    buf_clear(&conn->answered);
    conn->sent = 0;
    buf_print(&conn->out, "POST %s%s HTTP/1.1\r\nhost: ", conn->pool->url.prefix,
              conn->pool->options.greeter->target);
    url_add_authority(&conn->out, &conn->pool->url);
    buf_print(&conn->out, "\r\ncontent-length: %zu\r\n\r\n", body.len);
    buf_add(&conn->out, body);
    begin_answer(conn, false, false);
    flush_greeting(conn);
}

static void become_ready(struct relay_conn *conn)
{
    conn->state = CONN_READY;
    end_opening(conn);
    buf_finish(&conn->out);
    buf_finish(&conn->answered);
    if (conn->relay)
        carry(conn);
    else
        close_conn(conn);
}

static void greet(struct relay_conn *conn, int status)
{
    const struct relay_greeter *greeter = conn->pool->options.greeter;
    const char *why = "";
    struct buf body = { 0 };
    switch (
        greeter->next(conn->greeting, status, buf_slice(&conn->answered), &body, &why)) {
    case RELAY_GREET_SEND: send_greeting(conn, buf_slice(&body)); break;
    case RELAY_GREET_DONE: become_ready(conn); break;
    case RELAY_GREET_REFUSED: fail(conn, ERR_UNTRUSTED, why); break;
    }
    buf_finish(&body);
}

static void take_greeting(struct relay_conn *conn, struct slice bytes)
{
    enum answer_event event = ANSWER_HEAD;
    while (event == ANSWER_HEAD)
        event = answer_feed(&conn->answer, &bytes);
    if (event == ANSWER_FAULT)
        fail(conn, ERR_BAD_ANSWER, conn->answer.fault);
    else if (conn->answered.len > RELAY_GREETING_MAX)
        fail(conn, ERR_BAD_ANSWER, "the response to the greeting is too long");
    else if (event == ANSWER_WHOLE && bytes.len)
        fail(conn, ERR_BAD_ANSWER, "the server sent more than its response");
    else if (event == ANSWER_WHOLE)
        greet(conn, conn->answer.status);
}

static void on_open(struct channel *channel)
{
    struct relay_conn *conn = of(channel);
    int on = 1, after = PROBE_AFTER_S, every = PROBE_EVERY_S, count = PROBES;
    setsockopt(channel->watch.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(channel->watch.fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof(after));
    setsockopt(channel->watch.fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    setsockopt(channel->watch.fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    if (!conn->pool->options.greeter) {
        become_ready(conn);
        return;
    }
    conn->state = CONN_GREETING;
    set_deadline(conn, conn->pool->options.connect_ms);
    greet(conn, 0);
}

/* ---- receiving ---- */

static void on_answer_piece(struct answer *answer, struct slice piece)
{
    struct relay_conn *conn = container_of(answer, struct relay_conn, answer);
    if (conn->state == CONN_GREETING)
        buf_add(&conn->answered, piece);
    else if (conn->relay)
        conn->relay->ops->on_piece(conn->relay, piece);
}

static void take_head(struct relay_conn *conn)
{
    struct relay *relay = conn->relay;
    const struct answer *answer = &conn->answer;
    relay->has_head = true;
    relay->is_tunnel = answer->status == 101;
    await(conn);
    relay->ops->on_head(relay, answer->status, answer->headers, answer->header_count);
}

/* A callback may cancel the request. */
static void receive(struct relay_conn *conn, struct slice bytes)
{
    enum answer_event event = ANSWER_HEAD;
    while (event == ANSWER_HEAD && conn->relay && !conn->relay->is_tunnel) {
        event = answer_feed(&conn->answer, &bytes);
        if (event == ANSWER_HEAD)
            take_head(conn);
    }
    if (!conn->relay)
        return;
    if (event == ANSWER_FAULT)
        fail(conn, ERR_BAD_ANSWER, conn->answer.fault);
    else if (!conn->relay->is_tunnel && event == ANSWER_WHOLE)
        end_whole(conn, !bytes.len);
    else if (conn->relay->is_tunnel && bytes.len)
        conn->relay->ops->on_piece(conn->relay, bytes);
}

/* Bytes before a request are unexpected: they would look like its response. */
static void on_bytes(struct channel *channel, struct slice bytes)
{
    struct relay_conn *conn = of(channel);
    if (conn->state == CONN_GREETING)
        take_greeting(conn, bytes);
    else if (conn->relay && !conn->relay->head_len)
        receive(conn, bytes);
    else
        fail(conn, ERR_BAD_ANSWER, "the server sent a response before the request");
}

static void on_writable(struct channel *channel)
{
    struct relay_conn *conn = of(channel);
    if (conn->state == CONN_GREETING)
        flush_greeting(conn);
    else if (conn->relay && !conn->relay->head_len)
        flush(conn);
}

static void on_end(struct channel *channel, enum err error)
{
    struct relay_conn *conn = of(channel);
    const struct relay *relay = conn->relay;
    if (error)
        fail(conn, error, channel->why.text);
    else if (relay && relay->is_tunnel)
        end_whole(conn, false);
    else if (relay && relay->has_head && answer_end(&conn->answer) == ANSWER_WHOLE)
        end_whole(conn, false);
    else
        fail(conn, ERR_LOST, "the connection closed before the end of the response");
}

static void on_readiness_closed(uv_handle_t *handle)
{
    struct readiness *readiness =
        container_of((uv_poll_t *)handle, struct readiness, handle);
    struct relay_pool *pool = container_of(readiness, struct relay_pool, readiness);
    void (*closed)(void *owner) = pool->closed;
    void *owner = pool->owner;
    muxer_destroy(pool->muxer);
    free(pool);
    closed(owner);
}

static void on_pool_end(struct deferred *deferred)
{
    struct relay_pool *pool = container_of(deferred, struct relay_pool, end);
    if (pool->closed && list_empty(&pool->conns))
        readiness_close(&pool->readiness, on_readiness_closed);
}

static void on_closed(struct channel *channel)
{
    struct relay_conn *conn = of(channel);
    struct relay_pool *pool = conn->pool;
    list_remove(&conn->link);
    if (conn->greeting)
        pool->options.greeter->destroy(conn->greeting);
    answer_finish(&conn->answer);
    buf_finish(&conn->out);
    buf_finish(&conn->answered);
    free(conn);
    if (pool->closed && list_empty(&pool->conns))
        loop_defer(pool->loop, &pool->end);
}

static const struct channel_ops channel_ops = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_writable = on_writable,
    .on_end = on_end,
    .on_closed = on_closed,
};

/* ---- beginning ---- */

static struct relay_conn *open_conn(struct relay_pool *pool, bool is_urgent)
{
    const struct channel_options options = { .loop = pool->loop,
                                             .readiness = &pool->readiness,
                                             .url = &pool->url,
                                             .trust = pool->options.trust,
                                             .connect_ms = pool->options.connect_ms };
    struct relay_conn *conn = mem_new(struct relay_conn);
    conn->pool = pool;
    conn->deadline.fn = on_deadline;
    if (pool->options.greeter)
        conn->greeting = pool->options.greeter->create(pool->options.owner);
    pool->open++;
    list_append(&pool->conns, &conn->link);
    list_append(is_urgent ? &pool->urgent : &pool->waiting, &conn->turn);
    channel_init(&conn->channel, &options, &channel_ops);
    set_deadline(conn, pool->options.connect_ms);
    open_next(pool);
    return conn;
}

unsigned relay_pool_connections(const struct relay_pool *pool)
{
    return pool->open;
}

/* Idle connections are at the front. */
static struct relay_conn *find_idle(struct relay_pool *pool)
{
    struct relay_conn *first =
        list_empty(&pool->conns) ? NULL
                                 : container_of(pool->conns.next, struct relay_conn, link);
    return first && first->state == CONN_READY && !first->relay ? first : NULL;
}

static enum err find_conn(struct relay_pool *pool, bool is_urgent, struct relay_conn **conn,
                          struct failure *why)
{
    *conn = find_idle(pool);
    if (*conn) {
        list_remove(&(*conn)->link); /* the next idle one is at the front again */
        list_append(&pool->conns, &(*conn)->link);
        return OK;
    }
    if (relay_pool_connections(pool) >= pool->options.connections_max)
        return explain(why, ERR_BUSY, "too many connections to the server");
    *conn = open_conn(pool, is_urgent);
    return OK;
}

static bool are_headers_valid(const struct relay_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (!head_is_token(request->headers[i].name) ||
            !head_is_value(request->headers[i].value))
            return false;
    return true;
}

static enum err check_head(const struct relay_request *request, struct failure *why)
{
    if (!request->is_parsed && !are_headers_valid(request))
        return explain(why, ERR_INVALID, "a header has control characters");
    if (!head_is_target(request->target))
        return explain(why, ERR_INVALID,
                       "the target of the request is not a path of printable ASCII");
    return OK;
}

static char *put(char *at, struct slice text)
{
    if (text.len) /* ptr may be NULL otherwise */
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

/* Makes room once: heads are most of the work of brief requests. */
static void add_header_lines(struct buf *out, const struct http_header *headers,
                             size_t count)
{
    const struct slice colon = SLICE(": "), end = SLICE("\r\n");
    size_t len = count * (colon.len + end.len);
    for (size_t i = 0; i < count; i++)
        len += headers[i].name.len + headers[i].value.len;
    char *at = buf_reserve(out, len);
    out->len += len;
    for (size_t i = 0; i < count; i++) {
        at = put(put(at, headers[i].name), colon);
        at = put(put(at, headers[i].value), end);
    }
}

void relay_write_head(struct buf *out, const struct relay_pool *pool,
                      const struct relay_request *request)
{
    buf_add_text(out, request->method);
    buf_add_char(out, ' ');
    buf_add_text(out, pool->url.prefix);
    buf_add(out, request->target);
    buf_add(out, SLICE(" HTTP/1.1\r\n"));
    add_header_lines(out, request->headers, request->header_count);
    if (request->chunked)
        buf_add(out, SLICE("transfer-encoding: chunked\r\n"));
    else if (request->has_length) {
        buf_add(out, SLICE("content-length: "));
        buf_add_number(out, (int64_t)request->length);
        buf_add(out, SLICE("\r\n"));
    }
}

enum err relay_begin(struct relay_pool *pool, struct relay *relay,
                     const struct relay_request *request, const struct relay_ops *ops,
                     struct failure *why)
{
    struct relay_conn *conn;
    enum err refused = pool->closed ? explain(why, ERR_DRAINING, "the client is closing")
                                    : check_head(request, why);
    if (!refused && request->is_brief && pool->muxer &&
        muxer_begin(pool->muxer, relay, request, ops))
        return OK;
    if (!refused)
        refused = find_conn(pool, request->is_brief || request->is_urgent, &conn, why);
    if (refused)
        return refused;
    *relay = (struct relay){ .ops = ops,
                             .pool = pool,
                             .conn = conn,
                             .chunked = request->chunked,
                             .is_for_head = !strcmp(request->method, "HEAD"),
                             .upgrades = request->upgrades,
                             .later = { .fn = on_later } };
    list_init(&relay->later.link);
    conn->relay = relay;
    relay_write_head(&relay->out, pool, request);
    relay->head_len = relay->out.len;
    buf_add(&relay->note, request->note);
    loop_defer(pool->loop, &relay->later);
    return OK;
}

/* ---- calls of the owner ---- */

bool relay_write(struct relay *relay, struct slice piece)
{
    if (!relay->conn || !piece.len)
        return relay->conn;
    bool frames = relay->chunked && !relay->is_tunnel;
    if (frames)
        buf_print(&relay->out, "%zx\r\n", piece.len);
    buf_add(&relay->out, piece);
    if (frames)
        buf_add(&relay->out, SLICE("\r\n"));
    loop_defer(relay->pool->loop, &relay->later);
    relay->is_full |= relay->out.len - relay->sent > RELAY_UNSENT_MAX;
    return !relay->is_full;
}

void relay_finish(struct relay *relay)
{
    if (!relay->conn || relay->is_finished)
        return;
    relay->is_finished = true;
    if (relay->chunked && !relay->is_tunnel)
        buf_add(&relay->out, SLICE("0\r\n\r\n"));
    loop_defer(relay->pool->loop, &relay->later);
}

void relay_send_soon(struct relay *relay)
{
    if (relay->conn)
        loop_defer(relay->pool->loop, &relay->later);
}

void relay_seal(struct relay *relay, struct slice items, struct buf *mac)
{
    const struct relay_greeter *greeter = relay->pool->options.greeter;
    greeter->seal(relay->conn->greeting, items, mac);
}

void relay_leave(struct relay *relay)
{
    if (relay->muxer)
        muxer_leave(relay);
    if (!relay->conn || relay->leaves)
        return;
    relay->leaves = true;
    loop_defer(relay->pool->loop, &relay->later);
}

void relay_pause(struct relay *relay, bool paused)
{
    if (relay->conn)
        channel_pause(&relay->conn->channel, paused);
}

/* ---- making ---- */

static int64_t or_default(int64_t set, int64_t otherwise)
{
    return set ? set : otherwise;
}

enum err relay_pool_create(struct loop *loop, const struct relay_pool_options *options,
                           struct relay_pool **out, struct failure *why)
{
    if (options->url->secure && !options->trust)
        return explain(why, ERR_INVALID, "a URL with TLS needs certificates to trust");
    struct relay_pool *pool = mem_new(struct relay_pool);
    struct relay_pool_options *set = &pool->options;
    *set = *options;
    pool->loop = loop;
    pool->url = *options->url;
    pool->end.fn = on_pool_end;
    list_init(&pool->end.link);
    list_init(&pool->conns);
    list_init(&pool->urgent);
    list_init(&pool->waiting);
    set->connections_max = set->connections_max ? set->connections_max : CONNECTIONS_MAX;
    set->connect_ms = or_default(set->connect_ms, CONNECT_MS);
    set->idle_ms = or_default(set->idle_ms, IDLE_MS);
    set->first_byte_ms = or_default(set->first_byte_ms, FIRST_BYTE_MS);
    set->stall_ms = or_default(set->stall_ms, STALL_MS);
    if (!readiness_init(&pool->readiness, loop)) {
        explain(why, ERR_INTERNAL, "cannot watch sockets: %s", strerror(errno));
        free(pool);
        return ERR_INTERNAL;
    }
    if (set->greeter && set->greeter->mux_target)
        pool->muxer = muxer_create(loop, pool, set->greeter, set->first_byte_ms);
    *out = pool;
    return OK;
}

void relay_pool_close(struct relay_pool *pool, void (*closed)(void *owner), void *owner)
{
    pool->closed = closed;
    pool->owner = owner;
    if (pool->muxer)
        muxer_close(pool->muxer);
    list_each (link, &pool->conns) {
        struct relay_conn *conn = container_of(link, struct relay_conn, link);
        if (!conn->relay)
            close_conn(conn);
    }
    if (list_empty(&pool->conns))
        loop_defer(pool->loop, &pool->end);
}
