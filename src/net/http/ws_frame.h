/* ws_frame.h - frames of WebSockets (RFC 6455 §5.2) as they are written, on either side. */
#pragma once

#include "base/buf.h"

enum {
    WS_HEAD_MAX = 14,
    WS_MASK_LEN = 4,
    WS_CONTROL_MAX = 125, /* bytes that a control frame may hold */
};

/* The head of an unmasked frame that is no fragment; its length. */
size_t ws_frame_head(unsigned char out[WS_HEAD_MAX], unsigned opcode, size_t len);

/* Appends a frame as a client has to send it. Nobody may be able to foretell the mask. */
void ws_frame_add_masked(struct buf *out, unsigned opcode, struct slice payload,
                         const unsigned char mask[WS_MASK_LEN]);
