/* ws_conn.c - messages and control frames, the closing handshake, and one deadline.
 *
 * The deadline serves pings, pongs and stalls. */
#include "net/http/ws_conn.h"

#include <string.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "net/http/http_conn.h"
#include "net/http/http_reply.h"
#include "net/http/server_state.h"
#include "net/http/ws_key.h"
#include "runcast/protocol.h"

enum {
    CONTROLS_PER_S = 10,
    ASK_BYTES = 32 * 1024,
    READ_IN_STALL = 54 * 1000, /* sure to be read in a stall of 60 s, at 1 KiB/s */
    LUMP_BYTES = 64 * 1024,    /* a kernel reports this much free space at the latest */
    REASON_MAX = WS_CONTROL_MAX - 2,
    KEPT_MESSAGE = 16 * 1024, /* capacity that a pooled input keeps */
};

static const struct connection_ops connection_ops;

static struct ws *of(struct connection *c)
{
    return container_of(c, struct ws, c);
}

static int64_t now_ms(const struct ws *ws)
{
    return loop_now_ms(ws->c.server->loop);
}

static const struct server_options *options_of(const struct ws *ws)
{
    return &ws->c.server->options;
}

void *ws_owner(const struct ws *ws)
{
    return ws->owner;
}

bool ws_closing(const struct ws *ws)
{
    return ws->closing || ws->c.closed || ws->c.lost;
}

size_t ws_unsent(const struct ws *ws)
{
    return outbox_unsent(&ws->c.outbox);
}

void ws_count_in(struct ws *ws, struct quota *quota)
{
    connection_count_in(&ws->c, quota, true);
}

/* ---- signs of life ---- */

static void note_ping(struct ws *ws)
{
    if (ws->asked < UINT16_MAX)
        ws->asked++;
    if (ws->unpinged > ws->unpinged_max)
        ws->unpinged_max = ws->unpinged;
    ws->unpinged = 0;
}

static void note_pong(struct ws *ws)
{
    if (--ws->asked == 0)
        ws->unpinged_max = 0;
}

bool ws_reads_still(const struct ws *ws)
{
    return ws->asked;
}

/* A peer cannot answer a ping before it has read everything before it. While its kernel has
 * no space, each LUMP_BYTES that it reads are also a sign of life. */
static int64_t silence_limit(const struct ws *ws, bool kernel_is_full)
{
    int64_t stall_ms = options_of(ws)->ws_stall_ms;
    size_t unpinged_max = ws->unpinged_max > ws->unpinged ? ws->unpinged_max : ws->unpinged;
    if (kernel_is_full && unpinged_max > LUMP_BYTES)
        unpinged_max = LUMP_BYTES;
    if (unpinged_max < READ_IN_STALL)
        return stall_ms;
    return stall_ms * (int64_t)unpinged_max / READ_IN_STALL;
}

/* Adds the frames to out, with pings in between, and returns the number of entries. A ping
 * is added before each frame that would put too many bytes after the last ping. */
static size_t add_pings(struct ws *ws, struct bytes *const *frames, size_t count,
                        struct bytes **out)
{
    struct bytes *ping = ws->c.server->ping_frame;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (ws->unpinged && (size_t)ws->unpinged + frames[i]->len > ASK_BYTES) {
            note_ping(ws);
            out[used++] = ping;
        }
        ws->unpinged += frames[i]->len;
        out[used++] = frames[i];
    }
    return used;
}

/* ---- out ---- */

/* Sets the deadline for bytes that just became unsent. */
static void watch_stall(struct ws *ws)
{
    int64_t stall_ms = options_of(ws)->ws_stall_ms;
    if (ws->c.outbox.backlog && ws->c.deadline_ms > now_ms(ws) + stall_ms)
        connection_set_deadline(&ws->c, stall_ms);
}

static void on_unsent(struct connection *c)
{
    watch_stall(of(c));
}

static bool send_with_pings(struct ws *ws, struct bytes *const *frames, size_t count)
{
    struct bytes *pieces[2 * OUTBOX_PIECES_MAX];
    bool all = true;
    count = add_pings(ws, frames, count, pieces);
    for (size_t i = 0; i < count; i += OUTBOX_PIECES_MAX) {
        size_t left = count - i;
        all = connection_send_frames(&ws->c, pieces + i,
                                     left < OUTBOX_PIECES_MAX ? left : OUTBOX_PIECES_MAX);
    }
    return all;
}

bool ws_send(struct ws *ws, struct bytes *const *frames, size_t count)
{
    if (ws->closing)
        return false;
    int64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += frames[i]->len;
    metric_add(M_BYTES_SENT, total);
    bool ask = ws->unpinged + (size_t)total > ASK_BYTES;
    if (!ask)
        ws->unpinged += (uint32_t)total;
    if (ask ? send_with_pings(ws, frames, count)
            : connection_send_frames_soon(&ws->c, frames, count))
        return true;
    watch_stall(ws);
    return false;
}

bool ws_send_split(struct ws *ws, struct slice first, struct slice rest)
{
    unsigned char head[WS_SPLIT_MAX];
    size_t head_len = ws_frame_split(head, first, rest.len), total = head_len + rest.len;
    struct piece pieces[] = { { { 0 }, NULL },
                              { { (const char *)head, head_len }, NULL },
                              { rest, NULL } };
    if (ws->closing)
        return false;
    metric_add(M_BYTES_SENT, (int64_t)total);
    if (ws->unpinged && ws->unpinged + total > ASK_BYTES) {
        note_ping(ws);
        pieces[0] = piece_of(ws->c.server->ping_frame);
    }
    ws->unpinged += (uint32_t)total;
    if (connection_send(&ws->c, pieces, 3))
        return true;
    watch_stall(ws);
    return false;
}

void ws_fetch(const struct ws *ws)
{
    connection_fetch(&ws->c);
    __builtin_prefetch(&ws->unpinged);
}

static bool send_control(struct ws *ws, unsigned opcode, const void *payload, size_t len)
{
    unsigned char frame[2 + WS_CONTROL_MAX];
    size_t head_len = ws_frame_head(frame, opcode, len);
    if (len)
        memcpy(frame + head_len, payload, len);
    struct piece piece = { { (const char *)frame, head_len + len }, NULL };
    return connection_send(&ws->c, &piece, 1);
}

static void send_close(struct ws *ws, int code, struct slice reason)
{
    unsigned char payload[WS_CONTROL_MAX] = { (unsigned char)(code >> 8),
                                              (unsigned char)code };
    size_t len = reason.len < REASON_MAX ? reason.len : REASON_MAX;
    if (len)
        memcpy(payload + 2, reason.ptr, len);
    bytes_clear(&ws->pong);
    send_control(ws, WSLAY_CONNECTION_CLOSE, payload, code == 1005 ? 0 : 2 + len);
    ws->closing = true;
    connection_set_deadline(&ws->c, options_of(ws)->closing_timeout_ms);
}

void ws_close(struct ws *ws, int code, const char *reason)
{
    if (!ws_closing(ws))
        send_close(ws, code, slice_of(reason));
}

void ws_cut(struct ws *ws, int code, const char *reason)
{
    ws_close(ws, code, reason);
    connection_close(&ws->c);
}

/* Sends the close frame with the reason, and ignores further input. */
static void end(struct ws *ws, int code, const char *reason)
{
    ws_close(ws, code, reason);
    connection_linger(&ws->c);
}

/* Answers a ping. One pong may wait; a newer one replaces it (RFC 6455 §5.5.3). */
static void answer_ping(struct ws *ws)
{
    const struct ws_input *input = ws->input;
    if (ws->closing)
        return;
    if (!ws->c.outbox.backlog) {
        send_control(ws, WSLAY_PONG, input->control, input->control_len);
        watch_stall(ws);
        return;
    }
    bytes_clear(&ws->pong);
    ws->pong =
        bytes_create((struct slice){ (const char *)input->control, input->control_len });
}

/* Counts a control frame. Returns false if there were too many in this second. */
static bool count_control(struct ws *ws)
{
    uint32_t now = (uint32_t)now_ms(ws);
    if (now - ws->control_ms >= 1000) {
        ws->control_ms = now;
        ws->control_count = 0;
    }
    return ++ws->control_count <= CONTROLS_PER_S;
}

static bool count_message(struct ws *ws)
{
    const struct server_options *options = options_of(ws);
    uint32_t now = (uint32_t)now_ms(ws), burst = options->ws_messages_burst * 1000;
    uint64_t more = (uint64_t)(now - ws->credit_ms) * options->ws_messages_per_s;
    ws->credit = more < burst - ws->credit ? ws->credit + (uint32_t)more : burst;
    ws->credit_ms = now;
    if (ws->credit < 1000)
        return false;
    ws->credit -= 1000;
    return true;
}

static void take_pong(struct ws *ws)
{
    const struct ws_input *input = ws->input;
    note_pong(ws);
    if (ws->ops->on_pong)
        ws->ops->on_pong(
            ws, (struct slice){ (const char *)input->control, input->control_len });
}

static void on_control(struct ws *ws, enum ws_event event)
{
    if (event == WS_PONG && ws->asked)
        take_pong(ws);
    else if (!count_control(ws))
        end(ws, 1008, "too many control frames");
    else if (event == WS_PING)
        answer_ping(ws);
}

/* Handles the peer's close frame, which responds to ours or gets its own code back. */
static void on_close(struct ws *ws)
{
    int code;
    if (ws_input_close_code(ws->input, &code) == WS_FAULT)
        end(ws, ws->input->code, ws->input->reason);
    else
        end(ws, code, NULL);
}

static void on_message(struct ws *ws)
{
    if (ws->closing)
        return;
    if (!count_message(ws))
        end(ws, CLOSE_OVERLOAD, "overload: too many messages");
    else
        ws->ops->on_message(ws, buf_slice(&ws->input->message));
}

static void on_event(struct ws *ws, enum ws_event event)
{
    switch (event) {
    case WS_MORE: break;
    case WS_MESSAGE: on_message(ws); break;
    case WS_PING:
    case WS_PONG: on_control(ws, event); break;
    case WS_CLOSE: on_close(ws); break;
    case WS_FAULT: end(ws, ws->input->code, ws->input->reason); break;
    }
}

/* Returns the sum of incomplete messages that this connection counts in: there is one for
 * known peers and one for unauthenticated ones. */
static size_t *unfinished(struct ws *ws)
{
    struct server *server = ws->c.server;
    return ws->c.known ? &server->unfinished : &server->unauthenticated_unfinished;
}

static void hold(struct ws *ws, size_t len)
{
    *unfinished(ws) += len - ws->held;
    ws->held = (uint32_t)len;
    if (!len)
        list_remove(&ws->holding);
    else if (!ws->c.known && list_empty(&ws->holding))
        list_append(&ws->c.server->holding, &ws->holding);
}

void ws_trust(struct ws *ws)
{
    size_t held = ws->held;
    hold(ws, 0);
    connection_trust(&ws->c);
    hold(ws, held);
}

/* Returns an input. A connection keeps it from a frame's first byte to a message's end. */
static struct ws_input *pool_take(struct server *server)
{
    if (!list_empty(&server->inputs)) {
        server->input_count--;
        return container_of(list_take(&server->inputs), struct ws_input, link);
    }
    struct ws_input *input = ws_input_create();
    input->fragments_max = server->options.ws_fragments_max;
    return input;
}

/* After a fault, wslay may be anywhere in a frame: such an input is not used again. */
static void pool_give_back(struct server *server, struct ws_input *input)
{
    if (server->input_count == SERVER_POOL_MAX || !ws_input_idle(input)) {
        ws_input_destroy(input);
        return;
    }
    if (input->message.capacity > KEPT_MESSAGE)
        buf_finish(&input->message);
    list_append(&server->inputs, &input->link);
    server->input_count++;
}

static void release_input(struct ws *ws)
{
    if (ws->input)
        pool_give_back(ws->c.server, ws->input);
    ws->input = NULL;
}

static void forget_input(struct ws *ws)
{
    hold(ws, 0);
    release_input(ws);
}

static void close_unfinished(struct ws *ws)
{
    end(ws, CLOSE_OVERLOAD, "overload: too many unfinished messages");
}

/* Closes the unauthenticated peer whose message began first: it is the least likely to
 * finish, because a client needs only a moment for its hello. */
static void close_first_unauthenticated(struct server *server)
{
    struct ws *first = container_of(server->holding.next, struct ws, holding);
    close_unfinished(first);
    forget_input(first);
}

/* Limits incomplete messages, and messages waiting to be handled, because those of many
 * peers together could exhaust the memory. */
static void count_unfinished(struct ws *ws)
{
    struct server *server = ws->c.server;
    hold(ws, (ws->input->in_message ? ws->input->message.len : 0) +
                 connection_kept(&ws->c).len);
    while (server->unauthenticated_unfinished > server->options.ws_unauthenticated_max)
        close_first_unauthenticated(server);
    if (ws->held && server->unfinished > server->options.ws_unfinished_max)
        close_unfinished(ws);
}

static size_t message_max(const struct ws *ws)
{
    const struct server_options *options = options_of(ws);
    return ws->c.known ? options->ws_message_max : options->ws_unauthenticated_message_max;
}

static bool may_receive(const struct connection *c)
{
    return !c->closed && !c->lingering && !c->lost;
}

/* A peer may send many messages at once. Those that the turn has no time for are handled in
 * the next one, and nothing more is read before that. */
static void receive_later(struct connection *c, struct slice bytes)
{
    connection_keep(c, bytes);
    connection_pause(c, true);
    connection_defer(c);
}

static void on_bytes(struct connection *c, struct slice bytes)
{
    struct ws *ws = of(c);
    ws->awaits = false;
    connection_note_life(c);
    if (c->pending) {
        receive_later(c, bytes);
        return;
    }
    struct timeslice timeslice = loop_timeslice(c->server->loop);
    if (!ws->input)
        ws->input = pool_take(c->server);
    while (bytes.len && may_receive(c) && timeslice_left(&timeslice)) {
        ws->input->message_max = message_max(ws);
        on_event(ws, ws_input_next(ws->input, &bytes));
    }
    if (bytes.len && may_receive(c))
        receive_later(c, bytes);
    count_unfinished(ws);
    if (!may_receive(c))
        forget_input(ws);
    else if (ws_input_idle(ws->input))
        release_input(ws);
}

/* Handles input that arrived with the handshake, or that the last turn had no time for. */
static void on_turn(struct connection *c)
{
    struct buf pending = connection_take_kept(c);
    connection_pause(c, false);
    connection_feed(c, buf_slice(&pending));
    buf_finish(&pending);
}

static void on_drained(struct connection *c)
{
    struct ws *ws = of(c);
    if (ws->closing)
        return;
    if (ws->pong) {
        bool sent = send_control(ws, WSLAY_PONG, ws->pong->data, ws->pong->len);
        bytes_clear(&ws->pong);
        if (!sent)
            return;
    }
    ws->ops->on_drained(ws);
}

void ws_ping_with(struct ws *ws, struct slice payload)
{
    if (ws_closing(ws))
        return;
    note_ping(ws);
    send_control(ws, WSLAY_PING, payload.ptr, payload.len);
    watch_stall(ws);
}

void ws_ping(struct ws *ws)
{
    ws_ping_with(ws, (struct slice){ 0 });
}

static void set_ping(struct ws *ws, int64_t ms)
{
    ws->ping_ms = (uint32_t)(now_ms(ws) + ms);
}

static int64_t ms_to_ping(const struct ws *ws)
{
    return (int32_t)(ws->ping_ms - (uint32_t)now_ms(ws));
}

/* Requests a sign of life with a ping. A peer may have been silent because it had nothing
 * to send. */
static void await_life(struct ws *ws)
{
    set_ping(ws, options_of(ws)->ws_ping_ms);
    ws->awaits = true;
    connection_note_life(&ws->c);
    ws_ping(ws);
}

static void end_silent(struct ws *ws)
{
    if (ws->c.outbox.backlog) {
        metric_add(M_TOO_FAR_BEHIND, 1);
        ws_close(ws, CLOSE_TOO_FAR_BEHIND, "too far behind");
        return;
    }
    ws_cut(ws, 1008, "no pong in time");
}

/* Does what is due for the connection. Returns when to do so again, or 0 if the connection
 * ends. */
static int64_t look_around(struct ws *ws)
{
    int64_t now = now_ms(ws), again_ms;
    if (!ws->awaits && !ws->c.outbox.backlog && ms_to_ping(ws) > 0)
        return now + ms_to_ping(ws);
    if (!ws->awaits && !ws->c.outbox.backlog)
        await_life(ws);
    bool full = connection_look(&ws->c);
    if (!connection_is_silent(&ws->c, silence_limit(ws, full), &again_ms))
        return now + again_ms;
    end_silent(ws);
    return 0;
}

static void on_deadline(struct connection *c)
{
    struct ws *ws = of(c);
    if (ws->closing) {
        connection_close(c);
        return;
    }
    int64_t next = look_around(ws);
    if (next)
        connection_set_deadline(c, next - now_ms(ws));
}

static void on_closed(struct connection *c)
{
    struct ws *ws = of(c);
    forget_input(ws);
    bytes_clear(&ws->pong);
    metric_add(M_WS_CONNECTIONS, -1);
    ws->ops->on_closed(ws);
    server_forget(c);
}

static const struct connection_ops connection_ops = {
    .on_bytes = on_bytes,
    .on_left = connection_close,
    .on_drained = on_drained,
    .on_unsent = on_unsent,
    .on_deadline = on_deadline,
    .on_turn = on_turn,
    .on_closed = on_closed,
};

/* ---- the upgrade ---- */

#define FAULT(status, text) ((struct http_fault){ status, text })

/* Counts how often a header occurs, and returns the value of the first one. */
static unsigned count_headers(const struct exchange *x, const char *name,
                              struct slice *value)
{
    unsigned found = 0;
    *value = (struct slice){ 0 };
    for (size_t i = 0; i < x->header_count; i++) {
        if (!http_name_is(x->headers[i].name, name))
            continue;
        if (!found++)
            *value = x->headers[i].value;
    }
    return found;
}

/* Returns why the request cannot become a WebSocket (RFC 6455 §4.2); status 0: it can. */
static struct http_fault check_handshake(const struct exchange *x)
{
    struct slice key, version, upgrade, origin;
    unsigned keys = count_headers(x, "sec-websocket-key", &key);
    unsigned versions = count_headers(x, "sec-websocket-version", &version);
    unsigned upgrades = count_headers(x, "upgrade", &upgrade);
    if (x->method != HTTP_GET_)
        return FAULT(405, "Open a WebSocket with GET");
    if (!upgrades)
        return FAULT(426, "This is a WebSocket; send the header Upgrade: websocket");
    if (!x->wants_upgrade)
        return FAULT(400, "Send Upgrade: websocket and Connection: Upgrade, in HTTP/1.1");
    if (upgrades > 1 || keys > 1 || versions > 1 || count_headers(x, "origin", &origin) > 1)
        return FAULT(400, "Send each header of the WebSocket handshake once");
    if (x->chunked || x->body.len)
        return FAULT(400, "Open a WebSocket without a body");
    if (!slice_is(version, "13"))
        return FAULT(426, "Send the header Sec-WebSocket-Version: 13");
    if (!keys || !ws_key_is_one(key))
        return FAULT(400, "Send a Sec-WebSocket-Key of 16 bytes in base64");
    return FAULT(0, NULL);
}

static void ws_refuse_upgrade(struct exchange *x, struct http_fault fault)
{
    struct slice headers = { 0 };
    if (fault.status == 405)
        headers = SLICE("allow: GET\r\n");
    if (fault.status == 426)
        headers = SLICE("upgrade: websocket\r\nsec-websocket-version: 13\r\n");
    metric_add(M_HTTP_REFUSED, 1);
    http_reply_refusal(x, fault, headers);
}

static void answer(struct server *server, struct exchange *x, const char *protocol)
{
    char accept[WS_ACCEPT_LEN + 1];
    struct buf *out = &server->scratch;
    ws_key_answer(server->sha1, http_header(x, "sec-websocket-key"), accept);
    buf_clear(out);
    buf_print(out,
              "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
              "connection: Upgrade\r\nsec-websocket-accept: %s\r\n",
              accept);
    if (protocol)
        buf_print(out, "sec-websocket-protocol: %s\r\n", protocol);
    buf_add(out, SLICE("\r\n"));
}

/* Returns the time of the first ping, random in the second half of the interval, so that
 * the pings of connections opened together are spread. */
static int64_t first_ping(struct server *server)
{
    int64_t half = server->options.ws_ping_ms / 2;
    return half + (int64_t)(server->turn++ * 7919u) % (half + 1);
}

struct ws *ws_accept(struct exchange *x, const char *protocol, const struct ws_ops *ops,
                     void *owner)
{
    struct request *request = container_of(x, struct request, x);
    struct http_fault fault = check_handshake(x);
    if (!request->complete && !fault.status)
        fault = (struct http_fault){ 400, "Open a WebSocket without a body" };
    if (x->gone && !fault.status)
        fault = (struct http_fault){ 400, "The peer has left" };
    if (fault.status) {
        ws_refuse_upgrade(x, fault);
        return NULL;
    }
    struct server *server = request->conn->c.server;
    answer(server, x, protocol);
    http_reply_count(x, 101);
    struct connection *c = http_conn_hand_over(request);
    struct ws *ws = of(c);
    memset((char *)ws + sizeof(*c), 0, sizeof(*ws) - sizeof(*c));
    c->ops = &connection_ops;
    ws->ops = ops;
    ws->owner = owner;
    list_init(&ws->holding);
    ws->credit_ms = (uint32_t)now_ms(ws);
    ws->credit = server->options.ws_messages_burst * 1000;
    metric_add(M_WS_CONNECTIONS, 1);

    struct piece piece = { buf_slice(&server->scratch), NULL };
    connection_send(c, &piece, 1);
    set_ping(ws, first_ping(server));
    connection_set_deadline(c, ms_to_ping(ws));
    watch_stall(ws);
    if (c->pending)
        connection_defer(c);
    return ws;
}
