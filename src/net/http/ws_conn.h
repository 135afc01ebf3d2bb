/* ws_conn.h - one WebSocket connection from the inside; private to http.
 *
 *   open ─► ws_close: close frame sent, waiting for the peer's ─┐
 *     ├───► the peer closes: its code is sent back ─────────────┼─► lingering ─► closed
 *     └───► fault: close frame sent, nothing is heard any more ─┘
 *
 * One deadline serves for everything: when it comes it is looked up what is due. Any bytes
 * of the peer count as its sign of life, as a pong cannot overtake a message under way, and
 * so does that it takes bytes. A peer that reads a KiB a second has what waits for it in
 * buffers that no kernel tells about: so that it can give a sign all the same, pings stand
 * in the stream, one after every ASK_BYTES of frames. */
#pragma once

#include "net/http/connection.h"
#include "net/http/ws.h"
#include "net/http/ws_input.h"

struct ws {
    struct connection c;
    const struct ws_ops *ops;
    void *owner;
    struct ws_input *input; /* NULL: between messages */
    struct bytes *pong;     /* the newest one that could not be sent; the only one */
    struct list holding;    // server::holding; linked while a stranger holds some
    uint32_t held;          /* bytes of an unfinished message; the server counts them */
    uint32_t unasked;       /* bytes of frames behind the last ping */
    uint32_t stretch;       /* most bytes before one of the pings that were not answered */
    uint16_t asked;         /* pings that were not answered */
    bool closing : 1;       /* our close frame was sent */
    bool awaits : 1;        /* the peer was pinged because it was silent, and still is */
    uint8_t control_count;  /* control frames of the peer in this second */

    /* Lower halves of loop_now_ms, which say how far apart two near instants are. */
    uint32_t control_ms; /* when this second began */
    uint32_t ping_ms;    /* when the next ping is due */
    uint32_t credit_ms;  /* when credit was counted last */
    uint32_t credit;     /* messages that may come, in thousandths */
};
