/* ws_conn.h - one WebSocket connection from the inside; private to net.
 *
 *   open ─► ws_close: close frame sent, waiting for the peer's ─┐
 *     ├───► the peer closes: its code is sent back ─────────────┼─► lingering ─► closed
 *     └───► fault: close frame sent, nothing is heard any more ─┘
 *
 * One deadline serves for everything: when it comes it is looked up what is due. Any bytes
 * of the peer count as its sign of life, as a pong cannot overtake a message under way. */
#pragma once

#include "net/connection.h"
#include "net/ws.h"
#include "net/ws_input.h"

struct ws {
    struct connection c;
    const struct ws_ops *ops;
    void *owner;
    struct ws_input *input; /* NULL: between messages */
    struct bytes *pong;     /* the newest one that could not be sent; the only one */
    size_t held;            /* bytes of an unfinished message; the server counts them */
    struct list holding;    // server::holding; linked while a stranger holds some
    bool closing;           /* our close frame was sent */
    uint8_t control_count;  /* control frames of the peer in this second */
    int64_t control_ms;     /* when this second began */
    int64_t ping_ms;        /* when the next ping is due */
    int64_t pong_ms;        /* when a sign of life is due; 0: nothing is awaited */
    int64_t credit_ms;      /* when credit was counted last */
    int64_t credit;         /* messages that may come, in thousandths */
};
