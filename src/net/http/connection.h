/* connection.h - one socket: reading, sending, deadlines and its end; private to http.
 *
 *   readable ─► on_bytes …  on_left                         (HTTP or WebSocket decides)
 *   connection_send ─► outbox ─► writable ─► on_drained
 *   connection_linger: what is unsent, FIN, and input is thrown away until the peer closes
 *   connection_close: at once ─► on_closed, never from inside a call
 *
 * A connection begins as HTTP; ws_accept gives it other ops in the same memory. With TLS it is
 * first of all a handshake (secure.h), which none of the ops hears of. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/room.h"
#include "net/crowd.h"
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
    void (*on_left)(struct connection *conn);    /* the peer sends nothing more; again when
                                                    what it sent before has been read: eof */
    void (*on_drained)(struct connection *conn); /* nothing is unsent any more */
    void (*on_unsent)(struct connection *conn);  /* of what was sent soon: there is */
    void (*on_deadline)(struct connection *conn);
    void (*on_turn)(struct connection *conn);   /* asked for by connection_defer */
    void (*on_closed)(struct connection *conn); /* frees, with server_forget */
};

/* TLS between the connection and its socket; secure.h. */
struct secure {
    struct connection *conn;
    struct certificates *certificates; /* a reference */
    struct tls *tls;                   /* NULL: nothing has come yet */
    bool is_open;                      /* the handshake is over */
    bool waits_to_write; /* the handshake goes on when the socket is writable */
    int end_bytes;       /* that were sent to say that nothing more comes */
    struct list waiting; // server::shaking, then server::unread
    struct list begun;   // server::begun
};

/* What a connection needs for answers of HTTP; in the http_conn. */
struct answering {
    struct delivery *delivery;   /* of the last answer; NULL: nobody asks, or was told */
    enum delivery_end delivered; /* what had become of it when the connection was closed */
    int64_t began_ms;            /* when the answer began */
    int64_t handed_before;       /* bytes that the kernel had been given by then */
};

/* There may be ten thousand that only wait: its size is counted in bytes. */
struct connection {
    struct readiness_watch watch; /* has the descriptor */
    const struct connection_ops *ops;
    struct server *server;

    /* All that sending looks at, side by side. */
    struct outbox outbox;    /* and the room that unsent bytes take */
    size_t counted;          /* bytes taken there */
    struct secure *secure;   /* NULL: bytes go through the socket as they are */
    struct ring_sender soon; /* what connection_send_soon has put into the ring */
    bool lasts : 1;          /* a little that is unsent takes none (base/room.h) */
    bool lost : 1; /* as the kernel said; while sending: closes at the turn's end */
    bool lingering : 1;
    bool closed : 1;    /* connection_close was called */
    bool gone : 1;      /* on_closed was called */
    bool known : 1;     /* has shown a valid credential */
    bool admin : 1;     /* came by a listener of theirs */
    bool busy : 1;      /* inside on_bytes: ends of requests are looked at behind it */
    bool paused : 1;    /* not reading; the peer's leaving is still noticed */
    bool left : 1;      /* the peer has sent its end */
    bool eof : 1;       /* and it was read */
    uint16_t most;      /* bytes that are read at once; 0: what a turn takes */
    struct timer timer; /* never later than the deadline */
    int64_t deadline_ms;
    int64_t life_ms;     /* when something was last awaited anew, or the peer gave a sign */
    int64_t taken;       /* bytes that the peer had taken when it was last looked at */
    struct buf *pending; /* read, and waiting for its turn; NULL: nothing */
    struct list link;    // server::connections
    struct list spare;   // server::strangers, then server::idle or none; leaves to close
    struct deferred later;
    struct answering *answering; /* NULL: it is a WebSocket */
    struct crowd_place place;    /* among the connections of its address */
};

/* Starts reading. False: the socket is of no use, and closed. */
bool connection_open(struct connection *conn, struct server *server, int fd,
                     const struct connection_ops *ops);

/* Watches the socket for what the connection waits for. */
void connection_watch(struct connection *conn);

/* Reads, unless it is paused or over, what TLS holds or the socket has. */
void connection_read(struct connection *conn);

/* The bytes go through the socket as they are from now on. */
void connection_drop_secure(struct connection *conn);

/* As if the bytes had been read from the socket. */
void connection_feed(struct connection *conn, struct slice bytes);

/* True when the kernel took everything and nothing was unsent before. */
bool connection_send(struct connection *conn, const struct piece *pieces, size_t count);
bool connection_send_frames(struct connection *conn, struct bytes *const *frames,
                            size_t count);

/* The same, but all may leave only at the end of the turn: with what else this connection sends so,
 * and with what others do, by one system call (net/ring.h). True, too, when the kernel need not have
 * taken it yet: on_unsent says later if it did not. Whatever else is done with the connection comes
 * behind it. */
bool connection_send_soon(struct connection *conn, const struct piece *pieces,
                          size_t count);
bool connection_send_frames_soon(struct connection *conn, struct bytes *const *frames,
                                 size_t count);

/* Brings what sending looks at into the caches. */
static inline void connection_fetch(const struct connection *conn)
{
    __builtin_prefetch(&conn->watch);
    __builtin_prefetch(&conn->soon);
}

/* Of the ring of a server. */
ring_sent_fn connection_on_sent;

/* Notes a sign of life if bytes wait for the peer and it has taken some since it was looked
 * at last, as far as the kernel tells. True while bytes wait for it. */
bool connection_look(struct connection *conn);

/* True when no sign of life was noted for limit_ms; else again_ms says in how many ms to look
 * again. */
bool connection_is_silent(struct connection *conn, int64_t limit_ms, int64_t *again_ms);

/* A sign of life of the peer, or something is awaited from now on. */
void connection_note_life(struct connection *conn);

/* Whether the peer reads the answer more slowly than the least rate, as far as the kernel
 * tells; grace_ms: what nobody need take anything in. Else when to look again. */
bool connection_is_slow(struct connection *conn, int64_t grace_ms, int64_t *again_ms);

/* An answer begins: what is unsent takes room there from now on, and what it refers to
 * (outbox_count_in); NULL: nowhere. lasts: it is a socket or a stream, of
 * which up to LITTLE_UNSENT bytes take none. */
void connection_count_in(struct connection *conn, struct room *room, bool lasts);

/* Copies the bytes behind what is pending already. */
void connection_keep(struct connection *conn, struct slice bytes);

/* What is pending, and waits on. */
struct slice connection_kept(const struct connection *conn);

/* What was pending; the caller's now. */
struct buf connection_take_kept(struct connection *conn);

void connection_pause(struct connection *conn, bool paused);

/* on_turn comes at the end of this turn. */
void connection_defer(struct connection *conn);

/* on_deadline comes then; each call replaces the one before. */
void connection_set_deadline(struct connection *conn, int64_t ms);
void connection_clear_deadline(struct connection *conn);

/* The peer has shown a valid credential. */
void connection_trust(struct connection *conn);

/* Who asks what becomes of the last answer is told; not of a WebSocket. */
void connection_tell_delivery(struct connection *conn, enum delivery_end end);

/* Nothing more is sent or heard; the deadline is the caller's. */
void connection_linger(struct connection *conn);

/* Harmless when called again. */
void connection_close(struct connection *conn);

/* The kind of timer for server::deadline_kind. */
void connection_on_timer(struct timer *timer);
