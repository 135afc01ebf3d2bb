/* ws_input.c - checks heads of frames; wslay unmasks their payloads.
 *
 *   head ─► checked ─► payload in pieces ─► end ─► message, ping, pong or close */
#include "net/http/ws_input.h"

#include "base/cursor.h"
#include "base/eight.h"
#include "base/mem.h"
#include "base/utf8.h"

static ssize_t give_wslay(uint8_t *buffer, size_t len, int flags, void *owner)
{
    struct ws_input *input = owner;
    (void)flags;
    if (len > input->source.len)
        len = input->source.len;
    if (!len)
        return -1;
    memcpy(buffer, input->source.ptr, len);
    input->source = slice_from(input->source, len);
    return (ssize_t)len;
}

struct ws_input *ws_input_create(void)
{
    static const struct wslay_frame_callbacks callbacks = { .recv_callback = give_wslay };
    struct ws_input *input = mem_new(struct ws_input);
    list_init(&input->link);
    if (wslay_frame_context_init(&input->wslay, &callbacks, input))
        mem_exhausted();
    return input;
}

void ws_input_destroy(struct ws_input *input)
{
    if (!input)
        return;
    wslay_frame_context_free(input->wslay);
    buf_finish(&input->message);
    free(input);
}

bool ws_input_idle(const struct ws_input *input)
{
    return !input->head_len && !input->in_payload && !input->in_message && !input->code;
}

static enum ws_event fault(struct ws_input *input, int code, const char *reason)
{
    input->code = code;
    input->reason = reason;
    return WS_FAULT;
}

/* Continues to check UTF-8. Returns false at the first invalid byte (RFC 3629). */
static bool check_utf8(struct utf8_state *state, const uint8_t *at, size_t len)
{
    for (const uint8_t *end = at + len; at < end;) {
        if (!state->left && end - at >= 8 && !eight_have_wide(eight_bytes(at))) {
            at += 8;
        } else if (state->left) {
            if (*at < state->low || *at > state->high)
                return false;
            state->left--;
            state->low = 0x80;
            state->high = 0xBF;
            at++;
        } else if (*at++ >= 0x80) {
            state->left = utf8_lead(at[-1], &state->low, &state->high);
            if (!state->left)
                return false;
        }
    }
    return true;
}

static size_t head_len(const struct ws_input *input)
{
    unsigned len = input->head[1] & 0x7F;
    return 2 + (len == 126 ? 2 : len == 127 ? 8 : 0) + (input->head[1] & 0x80 ? 4 : 0);
}

/* Returns true once the head is complete. */
static bool take_head(struct ws_input *input, struct slice *bytes)
{
    while (bytes->len) {
        input->head[input->head_len++] = (unsigned char)bytes->ptr[0];
        *bytes = slice_from(*bytes, 1);
        if (input->head_len >= 2 && input->head_len == head_len(input))
            return true;
    }
    return false;
}

static uint64_t announced(const struct ws_input *input)
{
    unsigned len = input->head[1] & 0x7F;
    struct slice head = { (const char *)input->head + 2, WS_HEAD_MAX - 2 };
    struct cursor cursor = cursor_over(head);
    return len < 126 ? len : cursor_number(&cursor, len == 126 ? 2 : 8);
}

static enum ws_event check_control(struct ws_input *input)
{
    if (!input->fin)
        return fault(input, 1002, "control frames cannot be fragmented");
    if (input->payload_left > WS_CONTROL_MAX)
        return fault(input, 1002, "control frames hold at most 125 bytes");
    input->control_len = 0;
    return WS_MORE;
}

static enum ws_event check_data(struct ws_input *input)
{
    bool continues = input->opcode == WSLAY_CONTINUATION_FRAME;
    if (continues != input->in_message)
        return fault(input, 1002,
                     continues ? "a continuation without a message"
                               : "a new message inside an unfinished one");
    if (input->opcode == WSLAY_BINARY_FRAME && !input->takes_binary)
        return fault(input, 1003, "send text messages");
    if (!continues) {
        buf_clear(&input->message);
        input->fragments = 0;
        input->utf8 = (struct utf8_state){ 0 };
        input->in_message = true;
        input->is_binary = input->opcode == WSLAY_BINARY_FRAME;
    }
    if (input->payload_left > input->message_max - input->message.len)
        return fault(input, 1009, "the message is too large");
    if (++input->fragments > input->fragments_max)
        return fault(input, 1008, "too many fragments in one message");
    return WS_MORE;
}

static enum ws_event check_head(struct ws_input *input)
{
    input->fin = input->head[0] & 0x80;
    input->opcode = input->head[0] & 0x0F;
    input->payload_left = announced(input);
    if (input->head[0] & 0x70)
        return fault(input, 1002, "reserved bits are set without an extension");
    if ((input->opcode & 0x07) > WSLAY_BINARY_FRAME)
        return fault(input, 1002, "unknown opcode");
    bool masked = input->head[1] & 0x80;
    if (masked == input->from_server)
        return fault(input, 1002,
                     masked ? "frames of a server must not be masked"
                            : "frames of a client must be masked");
    return wslay_is_ctrl_frame(input->opcode) ? check_control(input) : check_data(input);
}

static enum ws_event store(struct ws_input *input, const struct wslay_frame_iocb *frame)
{
    size_t len = frame->data_length;
    input->payload_left -= len;
    if (wslay_is_ctrl_frame(input->opcode)) {
        memcpy(input->control + input->control_len, frame->data, len);
        input->control_len += (uint8_t)len;
        return WS_MORE;
    }
    if (!input->is_binary && !check_utf8(&input->utf8, frame->data, len))
        return fault(input, 1007, "the text is not UTF-8");
    buf_add(&input->message, (struct slice){ (const char *)frame->data, len });
    return WS_MORE;
}

/* Feeds wslay the whole head, or a part of the payload. */
static enum ws_event feed_wslay(struct ws_input *input, struct slice bytes)
{
    struct wslay_frame_iocb frame;
    input->source = bytes;
    for (;;) {
        ssize_t len = wslay_frame_recv(input->wslay, &frame);
        if (len == WSLAY_ERR_WANT_READ)
            return WS_MORE;
        if (len < 0)
            return fault(input, 1002, "the length of the frame is not well-formed");
        enum ws_event event = store(input, &frame);
        if (event || !input->payload_left)
            return event;
    }
}

static enum ws_event end_frame(struct ws_input *input)
{
    input->in_payload = false;
    switch (input->opcode) {
    case WSLAY_PING: return WS_PING;
    case WSLAY_PONG: return WS_PONG;
    case WSLAY_CONNECTION_CLOSE: return WS_CLOSE;
    }
    if (!input->fin)
        return WS_MORE;
    if (input->utf8.left)
        return fault(input, 1007, "the text is not UTF-8");
    input->in_message = false;
    return WS_MESSAGE;
}

static enum ws_event begin_frame(struct ws_input *input)
{
    struct slice head = { (const char *)input->head, input->head_len };
    enum ws_event event = check_head(input);
    if (event)
        return event;
    input->head_len = 0;
    input->in_payload = true;
    event = feed_wslay(input, head);
    return event || input->payload_left ? event : end_frame(input);
}

enum ws_event ws_input_next(struct ws_input *input, struct slice *bytes)
{
    while (bytes->len) {
        enum ws_event event;
        if (!input->in_payload) {
            if (!take_head(input, bytes))
                return WS_MORE;
            event = begin_frame(input);
        } else {
            struct slice piece = *bytes;
            if (piece.len > input->payload_left)
                piece.len = input->payload_left;
            *bytes = slice_from(*bytes, piece.len);
            event = feed_wslay(input, piece);
            if (!event && !input->payload_left)
                event = end_frame(input);
        }
        if (event)
            return event;
    }
    return WS_MORE;
}

static bool may_be_sent(int code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

enum ws_event ws_input_close_code(struct ws_input *input, int *code)
{
    struct utf8_state utf8 = { 0 };
    *code = 1005;
    if (!input->control_len)
        return WS_CLOSE;
    if (input->control_len == 1)
        return fault(input, 1002, "the close code is cut off");
    *code = input->control[0] << 8 | input->control[1];
    if (!may_be_sent(*code))
        return fault(input, 1002, "this close code may not be sent");
    if (!check_utf8(&utf8, input->control + 2, input->control_len - 2u) || utf8.left)
        return fault(input, 1007, "the reason is not UTF-8");
    return WS_CLOSE;
}
