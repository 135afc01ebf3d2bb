/* ws_frame.h - writes frames of WebSockets (RFC 6455 §5.2), for clients and servers. */
#pragma once

#include "base/buf.h"

enum {
    WS_HEAD_MAX = 14,
    WS_MASK_LEN = 4,
    WS_CONTROL_MAX = 125, /* bytes that a control frame may hold */
    WS_SPLIT_MAX = WS_CONTROL_MAX + 2 * WS_HEAD_MAX,
};

/* Writes the head of an unmasked, unfragmented frame and returns its length. */
size_t ws_frame_head(unsigned char out[WS_HEAD_MAX], unsigned opcode, size_t len);

/* Writes everything of ws_frame_begin and ws_frame_end before the rest of the message, and
 * returns its length. first has at most WS_CONTROL_MAX bytes. */
size_t ws_frame_split(unsigned char out[WS_SPLIT_MAX], struct slice first, size_t rest_len);

/* Appends a masked frame, as clients must send it. The mask must be unpredictable. */
void ws_frame_add_masked(struct buf *out, unsigned opcode, struct slice payload,
                         const unsigned char mask[WS_MASK_LEN]);
