/* connection.h - one socket: reading, sending, deadlines, closing; private to http.
 *
 *   readable ─► on_bytes …  on_left                         (HTTP or WebSocket decides)
 *   connection_send ─► outbox ─► writable ─► on_drained
 *   connection_linger: sends what is unsent, then FIN; discards input until the peer closes
 *   connection_close: at once ─► on_closed, never from inside a call
 *
 * A connection begins as HTTP; ws_accept gives it other ops in the same memory. With TLS it
 * starts with a handshake (secure.h), which the ops do not see. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/quota.h"
#include "net/address_limit.h"
#include "net/http/http.h"
#include "net/outbox.h"
#include "net/readiness.h"
#include "net/ring.h"

struct certificates;
struct connection;
struct delivery;
struct server;

struct connection_ops {
    void (*on_bytes)(struct connection *conn, struct slice bytes);
    void (*on_left)(struct connection *conn);    /* peer has stopped sending; again, with
                                                  * eof, after its last byte */
    void (*on_drained)(struct connection *conn); /* everything was sent */
    void (*on_unsent)(struct connection *conn);  /* something sent soon is unsent */
    void (*on_deadline)(struct connection *conn);
    void (*on_turn)(struct connection *conn);   /* after connection_defer */
    void (*on_closed)(struct connection *conn); /* calls server_forget, which frees it */
};

/* TLS between the connection and its socket; secure.h. */
struct secure {
    struct connection *conn;
    struct certificates *certificates; /* a reference */
    struct tls *tls;                   /* NULL: no byte has arrived */
    bool is_open;                      /* the handshake is complete */
    bool waits_to_write; /* the handshake continues when the socket is writable */
    int end_bytes;       /* bytes sent for close_notify */
    struct list waiting; // server::handshaking, then server::unread
    struct list begun;   // server::begun
};

/* The state of HTTP responses of a connection; part of the http_conn. */
struct answering {
    struct delivery *delivery;   /* of the last response; NULL: none, or reported */
    enum delivery_end delivered; /* the outcome when the connection was closed */
    int64_t began_ms;            /* when the response began */
    int64_t handed_before;       /* bytes given to the kernel before it */
};

/* There may be ten thousand idle connections, so every byte counts. */
struct connection {
    struct readiness_watch watch; /* has the descriptor */
    const struct connection_ops *ops;
    struct server *server;

    /* Everything that sending accesses, kept together. */
    struct outbox outbox;    /* and the memory quota of unsent bytes */
    size_t counted;          /* bytes counted in that quota */
    struct secure *secure;   /* NULL: plain text */
    struct ring_sender soon; /* bytes that connection_send_soon has put into the ring */
    bool lasts : 1;          /* up to LITTLE_UNSENT bytes are not counted (base/quota.h) */
    bool lost : 1;           /* it broke during a send: it closes at the end of the turn */
    bool lingering : 1;
    bool closed : 1;    /* connection_close was called */
    bool gone : 1;      /* on_closed was called */
    bool known : 1;     /* a valid credential was sent */
    bool admin : 1;     /* accepted by an admin listener */
    bool busy : 1;      /* inside on_bytes; completed requests are handled after it */
    bool paused : 1;    /* not reading; the peer's end is still noticed */
    bool left : 1;      /* the peer has closed its side */
    bool eof : 1;       /* and everything before that was read */
    uint16_t most;      /* bytes read at once; 0: the limits of a turn */
    struct timer timer; /* never later than the deadline */
    int64_t deadline_ms;
    int64_t life_ms;     /* last sign of life, or start of awaiting one */
    int64_t taken;       /* bytes that the peer had received when last checked */
    struct buf *pending; /* received, not handled yet; NULL: nothing */
    struct list link;    // server::connections
    struct list spare; // server::unauthenticated; once known, server::idle between requests
    struct deferred later;
    struct answering *answering; /* NULL: it is a WebSocket */
    struct address_slot place;   /* in the count of its address */
};

/* Starts reading. Returns false if the socket is unusable; it is closed then. */
bool connection_open(struct connection *conn, struct server *server, int fd,
                     const struct connection_ops *ops);

/* The same without a socket: bytes are fed, and nothing can be sent (carried.h). */
void connection_open_carried(struct connection *conn, struct server *server,
                             const struct connection_ops *ops);

/* Updates the events that the socket is watched for. */
void connection_watch(struct connection *conn);

/* Reads what TLS or the socket has, unless the connection is paused or has ended. */
void connection_read(struct connection *conn);

/* Drops TLS: bytes go through the socket as plain text from now on. */
void connection_drop_secure(struct connection *conn);

/* Handles the bytes as if they had been read from the socket. */
void connection_feed(struct connection *conn, struct slice bytes);

/* Returns true if the kernel accepted everything and nothing was unsent before. */
bool connection_send(struct connection *conn, const struct piece *pieces, size_t count);
bool connection_send_frames(struct connection *conn, struct bytes *const *frames,
                            size_t count);

/* The same, but the bytes may leave as late as the end of the turn, together with
 * everything else that this connection sends this way, and in one system call with those of
 * other connections (net/ring.h). Also returns true while they wait in the ring; on_unsent
 * follows if the kernel then does not accept all of them. Any other operation on the
 * connection takes effect after them. */
bool connection_send_soon(struct connection *conn, const struct piece *pieces,
                          size_t count);
bool connection_send_frames_soon(struct connection *conn, struct bytes *const *frames,
                                 size_t count);

/* Prefetches the memory that sending accesses. */
static inline void connection_fetch(const struct connection *conn)
{
    __builtin_prefetch(&conn->watch);
    __builtin_prefetch(&conn->soon);
}

/* The callback of a server's ring. */
ring_sent_fn connection_on_sent;

/* Checks whether the peer has received any of the unsent bytes since the last check, as far
 * as the kernel can tell. If so, notes a sign of life. Returns true while bytes wait. */
bool connection_look(struct connection *conn);

/* Returns true if no sign of life was noted for limit_ms. Otherwise *again_ms is the time
 * after which to check again. */
bool connection_is_silent(struct connection *conn, int64_t limit_ms, int64_t *again_ms);

/* Notes a sign of life, or that one is awaited from now on. */
void connection_note_life(struct connection *conn);

/* Returns true if the peer reads the response below the least rate, as far as the kernel
 * can tell. grace_ms: for this long, a peer need not read anything. Otherwise *again_ms is
 * the time after which to check again. */
bool connection_is_slow(struct connection *conn, int64_t grace_ms, int64_t *again_ms);

/* Begins a response: from now on, unsent bytes count in the quota, and so do the bytes that
 * they refer to (outbox_count_in); NULL: nothing counts. lasts: it is a socket or a stream,
 * of which up to LITTLE_UNSENT bytes do not count. */
void connection_count_in(struct connection *conn, struct quota *quota, bool lasts);

/* Appends a copy of the bytes to the pending input. */
void connection_keep(struct connection *conn, struct slice bytes);

/* Returns the pending input, which stays pending. */
struct slice connection_kept(const struct connection *conn);

/* Returns the pending input, which the caller then owns. */
struct buf connection_take_kept(struct connection *conn);

void connection_pause(struct connection *conn, bool paused);

/* Calls on_turn at the end of this turn. */
void connection_defer(struct connection *conn);

/* Calls on_deadline in ms milliseconds; replaces an earlier deadline. */
void connection_set_deadline(struct connection *conn, int64_t ms);
void connection_clear_deadline(struct connection *conn);

/* Notes that the peer has sent a valid credential. */
void connection_trust(struct connection *conn);

/* Reports the outcome of the last response, if http_follow_reply was called. Not for a
 * WebSocket. */
void connection_tell_delivery(struct connection *conn, enum delivery_end end);

/* Stops sending and receiving, except for unsent bytes. The caller sets the deadline. */
void connection_linger(struct connection *conn);

/* Does nothing if called again. */
void connection_close(struct connection *conn);

/* The kind of timer for server::deadline_kind. */
void connection_on_timer(struct timer *timer);
