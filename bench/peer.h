/* peer.h - other servers that fanout can measure: the WebSocket protocol of each.
 *
 *   open ─► hello ─► … ─► the response that means "subscribed" ─► message, message …
 *                └─ requests of the server (pings, its own handshake) get their response
 *
 * All of them carry messages of runs.v1, as the floor sends them, wrapped in the peer's own
 * protocol. One topic, no receipts (MQTT: QoS 0). Nothing here knows a connection: bytes go
 * in, bytes come out (ws_client.h does the rest). */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* The first complete packet of what a peer has sent. */
struct peer_word {
    struct slice message; /* of runs.v1; ptr NULL: none */
    struct slice reply;   /* to send back; "": nothing */
    bool subscribed;      /* messages arrive from now on */
};

struct peer {
    const char *name; /* of --peer */
    const char *path;
    const char *subprotocol; /* of the upgrade; "": none */
    bool binary;             /* its frames are binary: their bytes are one stream */
    struct slice hello;      /* a subscriber's first message; "": none */
    bool subscribes_itself;  /* connecting is subscribing */

    /* Takes the first packet of the input; returns its length, 0 while it is incomplete. */
    size_t (*take)(struct slice in, struct peer_word *word);
    /* Writes the packet that publishes a message to all subscribers. */
    void (*publish)(struct slice message, struct buf *out);
};

/* Returns the peer of that name; exits the program if the name is unknown. */
const struct peer *peer_find(const char *name);
