/* socket_packet.h - packets of Engine.IO 4 around Socket.IO 5, from either side; pure.
 *
 *   4                2            /workload,      7      ["run:start",{…}]
 *   Engine.IO type   Socket.IO    namespace       ack    data, JSON
 *
 * The spans point into the text; nothing is copied. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum socket_packet_kind {
    SOCKET_IGNORED, /* allowed, and nothing follows from it */
    SOCKET_OPEN,    /* the first of a server */
    SOCKET_CLOSE,
    SOCKET_PING,
    SOCKET_PONG,
    SOCKET_CONNECT,    /* asked for by a client, granted by a server */
    SOCKET_DISCONNECT, /* of the namespace */
    SOCKET_EVENT,
    SOCKET_REFUSED, /* the namespace, by a server */
};

struct socket_packet {
    enum socket_packet_kind kind;
    struct slice space; /* "/workload"; "/" when none is named */
    struct slice data;  /* of a ping: what its pong repeats; of others the JSON behind it */
    struct slice name;  /* of an event, without quotes */
    struct slice run;   /* the run that an event is about, without quotes; absent: none */
};

/* ERR_INVALID: no such packet. */
enum err socket_packet_read(struct slice text, struct socket_packet *packet);

/* 42/SPACE,["NAME",{"version":"1","run":{"friendlyId":"RUN"}}] */
void socket_packet_add_notice(struct buf *out, const char *space, struct slice run);

/* 42/SPACE,["NAME",{"version":"1","runFriendlyIds":["RUN"]}] */
void socket_packet_add_wish(struct buf *out, const char *space, const char *name,
                            struct slice run);

/* 0{…}: the first of a server. */
void socket_packet_add_open(struct buf *out, int ping_ms, int pong_timeout_ms);

/* 40/SPACE,{…}: a namespace is granted. */
void socket_packet_add_granted(struct buf *out, const char *space);
