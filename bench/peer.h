/* peer.h - the other servers that fanout can measure: what each of them says by WebSocket.
 *
 *   open ─► hello ─► … ─► the answer that says "subscribed" ─► message, message …
 *                └─ what it asks meanwhile (pings, a handshake of its own) gets its reply
 *
 * All of them carry messages of runs.v1, as the floor sends them: what is a peer's own lies
 * around those, and is put there and taken off here. One topic, no receipts (MQTT: QoS 0).
 * Nothing here knows a connection: bytes come in, bytes go out (ws_client.h does the rest). */
#pragma once

#include <stdbool.h>

#include "base/buf.h"

/* What stood in front of what a peer has sent. */
struct peer_word {
    struct slice message; /* of runs.v1; ptr NULL: it is none */
    struct slice reply;   /* what to send back; "": nothing */
    bool subscribed;      /* from now on messages come */
};

struct peer {
    const char *name; /* of --peer */
    const char *path;
    const char *subprotocol; /* of the upgrade; "": none is asked for */
    bool binary;             /* its frames are binary: their bytes are one stream */
    struct slice hello;      /* what a subscriber says first; "": nothing */
    bool subscribes_itself;  /* who is connected is subscribed */

    /* Takes what is complete in front of the input: the bytes of it, 0 for nothing yet. */
    size_t (*take)(struct slice in, struct peer_word *word);
    /* Writes what tells the server a message that everybody is to get. */
    void (*publish)(struct slice message, struct buf *out);
};

/* The peer of that name; ends the program for any other name. */
const struct peer *peer_find(const char *name);
