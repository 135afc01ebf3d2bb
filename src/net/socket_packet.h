/* socket_packet.h - reads and writes packets of Engine.IO 4 around Socket.IO 5; pure.
 *
 *   4                2            /worker,      7      ["run:subscribe",{…}]
 *   Engine.IO type   Socket.IO    namespace     ack    data, JSON
 *
 * The spans of a packet point into its text; nothing is copied. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum socket_packet_kind {
    SOCKET_IGNORED, /* allowed, but has no effect */
    SOCKET_OPEN,    /* the first packet of a server */
    SOCKET_CLOSE,
    SOCKET_PING,
    SOCKET_PONG,
    SOCKET_CONNECT,    /* a client asks for the namespace, or a server grants it */
    SOCKET_DISCONNECT, /* from the namespace */
    SOCKET_EVENT,
    SOCKET_REFUSED, /* a server refuses the namespace */
};

struct socket_packet {
    enum socket_packet_kind kind;
    struct slice space; /* the namespace: "/worker"; "/" if none is named */
    struct slice data;  /* of a ping: data for its pong; of a message: its JSON */
    struct slice name;  /* of an event, without quotes; may have escapes (scan_key_is) */
    struct slice body;  /* of an event: the JSON after its name; absent: none */
};

/* Reads a packet. ERR_INVALID: not a packet, or one with binary parts. */
enum err socket_packet_read(struct slice text, struct socket_packet *packet);

/* Returns true if only a server may send such a packet. */
static inline bool socket_packet_is_servers(const struct socket_packet *packet)
{
    return packet->kind == SOCKET_OPEN || packet->kind == SOCKET_REFUSED;
}

/* Each appends one packet. */

/* 0{…}: the first packet of a server, with its intervals and the max bytes of a message. */
void socket_packet_add_open(struct buf *out, int ping_ms, int pong_timeout_ms,
                            int message_max);

/* 3…: the reply to a ping, whose data it repeats. */
void socket_packet_add_pong(struct buf *out, struct slice data);

/* 40/SPACE,{…}: a server grants the namespace. */
void socket_packet_add_granted(struct buf *out, const char *space);

/* 44/SPACE,{…}: a server refuses the namespace, with the reason. */
void socket_packet_add_refused(struct buf *out, struct slice space, const char *reason);

/* 42/SPACE,["NAME",BODY]: the caller appends the body between the two calls. */
void socket_packet_begin_event(struct buf *out, const char *space, const char *name);
void socket_packet_end_event(struct buf *out);
