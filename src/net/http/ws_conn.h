/* ws_conn.h - the internals of one WebSocket connection; private to http.
 *
 *   open ─► ws_close: close frame sent, waiting for the peer's ─┐
 *     ├───► the peer closes: its code is sent back ─────────────┼─► lingering ─► closed
 *     └───► fault: close frame sent, further input is ignored ──┘
 *
 * One deadline serves everything: when it fires, the connection checks what is due. Any
 * bytes from the peer count as a sign of life, because a pong cannot overtake a message in
 * progress; so does receiving bytes. A peer that reads 1 KiB/s reads from kernel buffers,
 * and kernels do not report that. So that it can still give a sign of life, pings are part
 * of the stream, one after every ASK_BYTES of frames. */
#pragma once

#include "net/http/connection.h"
#include "net/http/ws.h"
#include "net/http/ws_input.h"

struct ws {
    struct connection c;
    const struct ws_ops *ops;
    void *owner;
    struct ws_input *input; /* NULL: between messages */
    struct bytes *pong;     /* the newest unsent pong; older ones are dropped */
    struct list holding;    // server::holding; linked while such a peer holds some
    uint32_t held;          /* bytes of an incomplete message; the server counts them */
    uint32_t unpinged;      /* bytes of frames after the last ping */
    uint32_t unpinged_max;  /* largest unpinged when an unanswered ping was sent */
    uint16_t asked;         /* unanswered pings */
    bool closing : 1;       /* our close frame was sent */
    bool awaits : 1;        /* the peer was silent, was pinged, and is still silent */
    uint8_t control_count;  /* control frames of the peer in this second */

    /* Lower halves of loop_now_ms, for the difference of two near instants. */
    uint32_t control_ms; /* when this second began */
    uint32_t ping_ms;    /* when the next ping is due */
    uint32_t credit_ms;  /* when credit was last computed */
    uint32_t credit;     /* messages that may arrive, in thousandths */
};
