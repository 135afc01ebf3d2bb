/* notice_packet.h - what a worker says on its notification socket: Engine.IO 4 around
 * Socket.IO 5.
 *
 *   4                2            /dev-worker,      7      ["run:subscribe",{…}]
 *   Engine.IO type   Socket.IO    namespace         ack    data, JSON
 *
 * The spans point into the text; nothing is copied. */
#pragma once

#include "base/error.h"
#include "base/json/scan.h"

enum notice_packet_kind {
    NOTICE_IGNORED, /* allowed, and nothing follows from it */
    NOTICE_CLOSE,
    NOTICE_PING,
    NOTICE_PONG,
    NOTICE_CONNECT,
    NOTICE_DISCONNECT,
    NOTICE_SUBSCRIBE,
    NOTICE_UNSUBSCRIBE,
};

struct notice_packet {
    enum notice_packet_kind kind;
    struct slice space;      /* the namespace: "/dev-worker"; "/" when none is named */
    struct slice data;       /* of a ping: what its pong repeats */
    struct scan_members ids; /* of both subscribes: notice_packet_next */
};

/* ERR_INVALID: not a packet that a client may send. */
enum err notice_packet_read(struct slice text, struct notice_packet *packet);

/* The ids of a subscribe, one by one; what cannot be an id is left out. */
bool notice_packet_next(struct notice_packet *packet, struct slice *id);
