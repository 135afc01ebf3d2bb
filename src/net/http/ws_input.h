/* ws_input.h - parses messages and control frames, for WebSocket clients and servers.
 *
 * A parser is needed from the first byte of a frame to the end of its message. A frame's
 * head is checked as soon as it is complete, before anything is stored for the frame. wslay
 * then checks it again and unmasks the payload. Text is checked as UTF-8 while it arrives.
 * Nothing is queued: each event is delivered before more bytes are parsed. */
#pragma once

#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/list.h"
#include "net/http/ws_frame.h"

enum ws_event { WS_MORE, WS_MESSAGE, WS_PING, WS_PONG, WS_CLOSE, WS_FAULT };

/* The state of checking a UTF-8 text. */
struct utf8_state {
    uint8_t left, low, high; /* missing bytes of the character; bounds of the next one */
};

struct ws_input {
    wslay_frame_context_ptr wslay;
    struct slice source; /* what wslay may read */

    unsigned char head[WS_HEAD_MAX];
    uint8_t head_len;
    bool in_payload;
    bool fin;
    uint8_t opcode;
    uint64_t payload_left;

    /* Set by the owner: what the peer may send. */
    size_t message_max; /* bytes */
    unsigned fragments_max;
    bool from_server;  /* its frames must not be masked; those of a client must be */
    bool takes_binary; /* false: only text */

    bool in_message;
    bool is_binary;
    unsigned fragments;
    struct utf8_state utf8;
    struct buf message;

    unsigned char control[WS_CONTROL_MAX];
    uint8_t control_len;

    int code; /* of WS_FAULT */
    const char *reason;
    struct list link; // server::inputs; of one in the pool
};

struct ws_input *ws_input_create(void);

/* Ignores NULL. */
void ws_input_destroy(struct ws_input *input);

/* Parses bytes until there is an event; WS_MORE: all were used. The message, or the control
 * frame, is valid until the next call. */
enum ws_event ws_input_next(struct ws_input *input, struct slice *bytes);

/* Returns true if it is not inside a frame or message, so that the pool may take it
 * back. */
bool ws_input_idle(const struct ws_input *input);

/* Reads the code of a close frame (1005: none). Returns WS_FAULT if the frame is
 * invalid. */
enum ws_event ws_input_close_code(struct ws_input *input, int *code);
