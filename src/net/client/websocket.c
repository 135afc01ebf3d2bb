/* websocket.c - the opening handshake, messages in and out, and one deadline.
 *
 *   opening ─► open ─► websocket_close: our close frame is sent, the peer's awaited ─┐
 *      │        ├────► the peer's close frame: its code is sent back ────────────────┼─► end
 *      └────────┴────► a fault, a silence, a lost connection ────────────────────────┘
 *
 * The deadline is for whatever the state waits for: the response, a byte from the peer, or
 * the end. */
#include "net/client/websocket.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/mem.h"
#include "net/client/answer.h"
#include "net/client/channel.h"
#include "net/client/head.h"
#include "net/http/http_check.h"
#include "net/http/ws_input.h"
#include "net/http/ws_key.h"

enum {
    CONNECT_MS = 10 * 1000,
    HANDSHAKE_MS = 30 * 1000,
    PING_MS = 25 * 1000,
    SILENCE_MS = 30 * 1000,
    CLOSING_MS = 5 * 1000,
    MESSAGE_MAX = 1 << 20,
    FRAGMENTS_MAX = 64,
    UNSENT_MAX = 4 << 20,
    PONG_MAX = 64 * 1024, /* with more unsent bytes, a pong is omitted */
    KEPT_UNSENT = 64 * 1024,
    REASON_MAX = WS_CONTROL_MAX - 2,
    NO_CODE = 1005,
};

enum websocket_state { WS_OPENING, WS_OPEN, WS_CLOSING, WS_OVER };

struct websocket {
    struct channel channel;
    struct readiness readiness;
    struct loop *loop;
    const struct websocket_ops *ops;
    void *owner;
    struct url url;
    struct websocket_options options; /* only the numbers are used */
    char *protocol;                   /* NULL: none was requested */
    struct evp_md_st *sha1;
    char key[WS_KEY_LEN + 1];
    enum websocket_state state;
    struct answer answer; /* to the handshake */
    struct ws_input *input;
    struct buf out; /* outgoing bytes; the first `sent` of them are sent */
    size_t sent;
    struct buf pending; /* received; to be parsed in another turn */
    struct deferred later;
    struct deadline deadline;
    bool awaits;        /* a ping was sent because the peer was silent */
    struct failure why; /* code: how it ended */
    int status, code;
    char reason[REASON_MAX];
    size_t reason_len;
};

static struct websocket *of(struct channel *channel)
{
    return container_of(channel, struct websocket, channel);
}

void *websocket_owner(const struct websocket *ws)
{
    return ws->owner;
}

void websocket_limit_messages(struct websocket *ws, size_t most)
{
    ws->input->message_max = most;
}

size_t websocket_unsent(const struct websocket *ws)
{
    return ws->out.len - ws->sent;
}

/* ---- the end ---- */

/* Ends the connection; only the first outcome counts. */
static void end(struct websocket *ws, enum err error, const char *why)
{
    if (ws->state == WS_OVER)
        return;
    explain(&ws->why, error, "%s", why);
    ws->state = WS_OVER;
    deadline_clear(ws->loop, &ws->deadline);
    loop_cancel_deferred(&ws->later);
    channel_close(&ws->channel);
}

static void destroy(struct websocket *ws)
{
    OPENSSL_cleanse(ws->out.ptr, ws->out.capacity);
    buf_finish(&ws->out);
    buf_finish(&ws->pending);
    answer_finish(&ws->answer);
    ws_input_destroy(ws->input);
    ws_key_free_digest(ws->sha1);
    free(ws->protocol);
    free(ws);
}

static void on_readiness_closed(uv_handle_t *handle)
{
    struct readiness *readiness =
        container_of((uv_poll_t *)handle, struct readiness, handle);
    struct websocket *ws = container_of(readiness, struct websocket, readiness);
    const struct websocket_end ended = {
        .error = ws->why.code,
        .why = ws->why.text,
        .status = ws->status,
        .code = ws->code,
        .reason = { ws->reason, ws->reason_len },
    };
    ws->ops->on_closed(ws, &ended);
    destroy(ws);
}

static void on_channel_closed(struct channel *channel)
{
    readiness_close(&of(channel)->readiness, on_readiness_closed);
}

/* ---- out ---- */

static void flush(struct websocket *ws)
{
    struct slice unsent = slice_from(buf_slice(&ws->out), ws->sent);
    ws->sent += channel_write(&ws->channel, unsent);
    if (ws->sent == ws->out.len) {
        ws->sent = 0;
        if (ws->out.capacity > KEPT_UNSENT)
            buf_finish(&ws->out);
        buf_clear(&ws->out);
    } else if (ws->sent > ws->out.len / 2) {
        buf_drop(&ws->out, ws->sent);
        ws->sent = 0;
    }
}

static void send_frame(struct websocket *ws, unsigned opcode, struct slice payload)
{
    unsigned char mask[WS_MASK_LEN];
    if (RAND_bytes(mask, sizeof(mask)) != 1)
        abort();
    ws_frame_add_masked(&ws->out, opcode, payload, mask);
    flush(ws);
}

enum err websocket_send(struct websocket *ws, struct slice message, bool is_binary)
{
    if (ws->state != WS_OPEN)
        return ERR_CONFLICT;
    if (message.len > ws->options.unsent_max ||
        websocket_unsent(ws) > ws->options.unsent_max - message.len)
        return ERR_BUSY;
    send_frame(ws, is_binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, message);
    return OK;
}

static void send_close(struct websocket *ws, int code, struct slice reason)
{
    unsigned char payload[WS_CONTROL_MAX] = { (unsigned char)(code >> 8),
                                              (unsigned char)code };
    size_t len = reason.len < REASON_MAX ? reason.len : REASON_MAX;
    if (len)
        memcpy(payload + 2, reason.ptr, len);
    ws->state = WS_CLOSING;
    deadline_set(ws->loop, &ws->deadline, CLOSING_MS);
    send_frame(ws, WSLAY_CONNECTION_CLOSE,
               (struct slice){ (const char *)payload, code == NO_CODE ? 0 : 2 + len });
}

void websocket_close(struct websocket *ws, int code, const char *reason)
{
    if (ws->state == WS_OPEN)
        send_close(ws, code, slice_of(reason));
    else if (ws->state == WS_OPENING)
        end(ws, ERR_CANCELED, "closed before it was open");
}

void websocket_cut(struct websocket *ws)
{
    end(ws, ERR_CANCELED, "connection cut");
}

/* ---- in ---- */

static void await_life(struct websocket *ws)
{
    ws->awaits = false;
    if (ws->state == WS_OPEN)
        deadline_set(ws->loop, &ws->deadline, ws->options.ping_ms);
}

/* Ends the connection because the peer broke the protocol or exceeded a limit. */
static void websocket_refuse(struct websocket *ws, int code, const char *reason)
{
    if (ws->state == WS_OPEN)
        send_close(ws, code, slice_of(reason));
    end(ws, code == 1009 ? ERR_TOO_LARGE : ERR_BAD_ANSWER, reason);
}

static void on_close_frame(struct websocket *ws)
{
    struct ws_input *input = ws->input;
    if (ws_input_close_code(input, &ws->code) == WS_FAULT) {
        websocket_refuse(ws, input->code, input->reason);
        return;
    }
    ws->reason_len = input->control_len > 2 ? input->control_len - 2u : 0;
    memcpy(ws->reason, input->control + 2, ws->reason_len);
    if (ws->state == WS_OPEN)
        send_close(ws, ws->code, (struct slice){ 0 });
}

static void on_event(struct websocket *ws, enum ws_event event)
{
    const struct ws_input *input = ws->input;
    switch (event) {
    case WS_MORE:
    case WS_PONG: break;
    case WS_MESSAGE:
        if (ws->state == WS_OPEN)
            ws->ops->on_message(ws, buf_slice(&input->message), input->is_binary);
        break;
    case WS_PING:
        if (ws->state == WS_OPEN && websocket_unsent(ws) <= PONG_MAX)
            send_frame(ws, WSLAY_PONG,
                       (struct slice){ (const char *)input->control, input->control_len });
        break;
    case WS_CLOSE: on_close_frame(ws); break;
    case WS_FAULT: websocket_refuse(ws, input->code, input->reason); break;
    }
}

/* Returns false after the end or a close frame: later bytes are ignored. */
static bool may_receive(const struct websocket *ws)
{
    return ws->state != WS_OVER && !ws->code;
}

static void receive(struct websocket *ws, struct slice bytes)
{
    struct timeslice timeslice = loop_timeslice(ws->loop);
    while (bytes.len && may_receive(ws) && timeslice_left(&timeslice))
        on_event(ws, ws_input_next(ws->input, &bytes));
    if (!bytes.len || !may_receive(ws))
        return;
    buf_add(&ws->pending, bytes);
    channel_pause(&ws->channel, true);
    loop_defer(ws->loop, &ws->later);
}

static void on_later(struct deferred *deferred)
{
    struct websocket *ws = container_of(deferred, struct websocket, later);
    struct buf pending = ws->pending;
    ws->pending = (struct buf){ 0 };
    channel_pause(&ws->channel, false);
    receive(ws, buf_slice(&pending));
    buf_finish(&pending);
}

/* ---- the handshake ---- */

static void ignore_piece(struct answer *answer, struct slice piece)
{
    (void)answer, (void)piece;
}

/* Returns true if the header occurs once, with that value; NULL: if it does not occur. */
static bool has_once(const struct answer *answer, const char *name, const char *value)
{
    unsigned found = 0;
    for (size_t i = 0; i < answer->header_count; i++)
        if (http_name_is(answer->headers[i].name, name))
            found++;
    return found == (value ? 1 : 0) &&
           (!value || slice_is(answer_header(answer, name), value));
}

static const char *check_acceptance(const struct websocket *ws)
{
    const struct answer *answer = &ws->answer;
    char accept[WS_ACCEPT_LEN + 1];
    ws_key_answer(ws->sha1, slice_of(ws->key), accept);
    if (!http_name_is(answer_header(answer, "upgrade"), "websocket") ||
        !http_list_has(answer_header(answer, "connection"), "upgrade"))
        return "the server switches to a protocol other than WebSocket";
    if (!has_once(answer, "sec-websocket-accept", accept))
        return "the server's Sec-WebSocket-Accept does not match the key";
    if (!has_once(answer, "sec-websocket-extensions", NULL))
        return "the server uses an extension that was not offered";
    if (!has_once(answer, "sec-websocket-protocol", ws->protocol))
        return "the server does not support the requested protocol";
    return NULL;
}

static void on_answer(struct websocket *ws)
{
    char text[80];
    ws->status = ws->answer.status == 101 ? 0 : ws->answer.status;
    if (ws->status) {
        snprintf(text, sizeof(text),
                 "the server responded with status %d instead of a WebSocket", ws->status);
        end(ws, ERR_BAD_ANSWER, text);
        return;
    }
    const char *fault = check_acceptance(ws);
    if (fault) {
        end(ws, ERR_BAD_ANSWER, fault);
        return;
    }
    ws->state = WS_OPEN;
    await_life(ws);
    ws->ops->on_open(ws);
}

/* Handles received bytes. */
static void on_bytes(struct channel *channel, struct slice bytes)
{
    struct websocket *ws = of(channel);
    if (ws->state == WS_OPENING) {
        enum answer_event event = answer_feed(&ws->answer, &bytes);
        if (event == ANSWER_FAULT)
            end(ws, ERR_BAD_ANSWER, ws->answer.fault);
        else if (event == ANSWER_HEAD)
            on_answer(ws);
        if (ws->state == WS_OPENING)
            return;
    }
    await_life(ws);
    receive(ws, bytes);
}

static void on_open(struct channel *channel)
{
    struct websocket *ws = of(channel);
    deadline_set(ws->loop, &ws->deadline, ws->options.handshake_ms);
    flush(ws);
}

static void on_writable(struct channel *channel)
{
    flush(of(channel));
}

static void on_end(struct channel *channel, enum err error)
{
    struct websocket *ws = of(channel);
    if (ws->code)
        end(ws, OK, "closed");
    else if (error)
        end(ws, error, channel->why.text);
    else
        end(ws, ERR_LOST, "the connection ended without a closing handshake");
}

static void on_deadline(struct deadline *deadline)
{
    struct websocket *ws = container_of(deadline, struct websocket, deadline);
    if (ws->state == WS_OPENING) {
        end(ws, ERR_NO_ANSWER, "timed out while waiting for the response");
    } else if (ws->state == WS_CLOSING) {
        if (ws->code)
            end(ws, OK, "closed");
        else
            end(ws, ERR_NO_ANSWER, "the server did not answer the closing handshake");
    } else if (ws->awaits) {
        end(ws, ERR_NO_ANSWER, "the server sent nothing in time");
    } else {
        ws->awaits = true;
        deadline_set(ws->loop, &ws->deadline, ws->options.silence_ms);
        send_frame(ws, WSLAY_PING, (struct slice){ "", 0 });
    }
}

static const struct channel_ops channel_ops = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_writable = on_writable,
    .on_end = on_end,
    .on_closed = on_channel_closed,
};

/* ---- making ---- */

static int64_t or_default(int64_t set, int64_t otherwise)
{
    return set ? set : otherwise;
}

static struct websocket_options with_defaults(const struct websocket_options *set)
{
    return (struct websocket_options){
        .connect_ms = or_default(set->connect_ms, CONNECT_MS),
        .handshake_ms = or_default(set->handshake_ms, HANDSHAKE_MS),
        .ping_ms = or_default(set->ping_ms, PING_MS),
        .silence_ms = or_default(set->silence_ms, SILENCE_MS),
        .message_max = set->message_max ? set->message_max : MESSAGE_MAX,
        .fragments_max = set->fragments_max ? set->fragments_max : FRAGMENTS_MAX,
        .unsent_max = set->unsent_max ? set->unsent_max : UNSENT_MAX,
    };
}

static void generate_key(char key[WS_KEY_LEN + 1])
{
    unsigned char drawn[WS_KEY_LEN / 4 * 3 - 2];
    if (RAND_bytes(drawn, sizeof(drawn)) != 1)
        abort();
    EVP_EncodeBlock((unsigned char *)key, drawn, sizeof(drawn));
}

static enum err write_request(struct websocket *ws, const struct websocket_options *options,
                              struct failure *why)
{
    struct buf upgrade = { 0 };
    buf_print(&upgrade,
              "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
              "sec-websocket-key: %s\r\n",
              ws->key);
    if (ws->protocol)
        buf_print(&upgrade, "sec-websocket-protocol: %s\r\n", ws->protocol);
    buf_add_char(&upgrade, 0);
    const struct head_request request = {
        .method = "GET",
        .url = &ws->url,
        .target = options->target,
        .headers = options->headers,
        .header_count = options->header_count,
        .upgrade = upgrade.ptr,
    };
    enum err err = head_write(&ws->out, &request, why);
    buf_finish(&upgrade);
    return err;
}

static enum err set_up(struct websocket *ws, const struct websocket_options *options,
                       struct failure *why)
{
    if (ws->url.secure && !options->trust)
        return explain(why, ERR_INVALID, "a URL with TLS needs certificates to trust");
    if (options->protocol && !head_is_token(slice_of(options->protocol)))
        return explain(why, ERR_INVALID, "the WebSocket protocol is not a valid token");
    ws->protocol = options->protocol ? mem_text(slice_of(options->protocol)) : NULL;
    enum err err = ws_key_fetch_digest(&ws->sha1, why);
    if (err)
        return err;
    generate_key(ws->key);
    err = write_request(ws, options, why);
    if (err)
        return err;
    if (!readiness_init(&ws->readiness, ws->loop))
        return explain(why, ERR_INTERNAL, "cannot watch sockets: %s", strerror(errno));
    return OK;
}

enum err websocket_open(struct loop *loop, const struct websocket_options *options,
                        const struct websocket_ops *ops, void *owner, struct websocket **ws,
                        struct failure *why)
{
    struct websocket *made = mem_new(struct websocket);
    made->loop = loop;
    made->ops = ops;
    made->owner = owner;
    made->url = *options->url;
    made->options = with_defaults(options);
    made->later.fn = on_later;
    made->deadline.fn = on_deadline;
    answer_begin(&made->answer);
    made->answer.may_upgrade = true;
    made->answer.on_piece = ignore_piece;
    made->input = ws_input_create();
    made->input->message_max = made->options.message_max;
    made->input->fragments_max = made->options.fragments_max;
    made->input->from_server = made->input->takes_binary = true;
    enum err err = set_up(made, options, why);
    if (err) {
        destroy(made);
        return err;
    }
    const struct channel_options channel = {
        .loop = loop,
        .readiness = &made->readiness,
        .url = &made->url,
        .trust = options->trust,
        .connect_ms = made->options.connect_ms,
    };
    channel_init(&made->channel, &channel, &channel_ops);
    channel_open(&made->channel);
    *ws = made;
    return OK;
}
