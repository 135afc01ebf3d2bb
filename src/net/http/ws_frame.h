/* ws_frame.h - writes frames of WebSockets (RFC 6455 §5.2), for clients and servers. */
#pragma once

#include "base/buf.h"

enum {
    WS_HEAD_MAX = 14,
    WS_MASK_LEN = 4,
    WS_CONTROL_MAX = 125, /* bytes that a control frame may hold */
};

/* Writes the head of an unmasked, unfragmented frame and returns its length. */
size_t ws_frame_head(unsigned char out[WS_HEAD_MAX], unsigned opcode, size_t len);

/* Appends a masked frame, as clients must send it. The mask must be unpredictable. */
void ws_frame_add_masked(struct buf *out, unsigned opcode, struct slice payload,
                         const unsigned char mask[WS_MASK_LEN]);
