/* ws_input.h - bytes into messages and control frames, on either side of a WebSocket.
 *
 * Needed from the first byte of a frame to the end of its message. The head of a frame is
 * judged as soon as it is complete, before anything is stored for the frame; wslay then
 * checks it once more and unmasks the payload. Text is checked as UTF-8 while it comes.
 * Nothing is queued: each event is handed out before more bytes are looked at. */
#pragma once

#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/list.h"
#include "net/http/ws_frame.h"

enum ws_event { WS_MORE, WS_MESSAGE, WS_PING, WS_PONG, WS_CLOSE, WS_FAULT };

/* How far a UTF-8 text has been checked. */
struct utf8_state {
    uint8_t left, low, high; /* bytes of the character to come; bounds of the next one */
};

struct ws_input {
    wslay_frame_context_ptr wslay;
    struct slice source; /* what wslay may take */

    unsigned char head[WS_HEAD_MAX];
    uint8_t head_len;
    bool in_payload;
    bool fin;
    uint8_t opcode;
    uint64_t payload_left;

    /* The owner's to set: what the peer may send. */
    size_t message_max; /* bytes */
    unsigned fragments_max;
    bool from_server;  /* its frames must not be masked; those of a client must be */
    bool takes_binary; /* else only text */

    bool in_message;
    bool is_binary;
    unsigned fragments;
    struct utf8_state utf8;
    struct buf message;

    unsigned char control[WS_CONTROL_MAX];
    uint8_t control_len;

    int code; /* of WS_FAULT */
    const char *reason;
    struct list link; // server::inputs; of one that waits to be lent
};

struct ws_input *ws_input_create(void);

/* NULL is fine. */
void ws_input_destroy(struct ws_input *input);

/* Uses up bytes until something has happened. WS_MORE: all are used. The message, or the
 * control frame, is valid until the next call. */
enum ws_event ws_input_next(struct ws_input *input, struct slice *bytes);

/* Neither in a frame nor in a message: may be given back. */
bool ws_input_idle(const struct ws_input *input);

/* The code of a close frame (1005: none), or the fault of the frame: WS_FAULT. */
enum ws_event ws_input_close_code(struct ws_input *input, int *code);
