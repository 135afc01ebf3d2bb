/* channel.h - one connection to a server, with or without TLS; private to client.
 *
 *   channel_init, channel_open ─► names resolved, off the loop ─► each address in turn ─► TLS
 *     ─► on_open ─► on_bytes …      channel_write: sends what the socket accepts now
 *     │             on_writable …   after a partial write, once it accepts more
 *     └─► on_end: once, after any failure, or at the peer's end of stream
 *   channel_close, at any time ─► on_closed: its memory is the owner's again
 *
 * It has no buffer: the caller keeps what was not written. No callback is made from inside
 * a call. After channel_close, only on_closed is called. */
#pragma once

#include "net/client/deadline.h"
#include "net/client/lookup.h"
#include "net/client/url.h"
#include "net/readiness.h"

struct channel;
struct tls;
struct trust;

struct channel_ops {
    void (*on_open)(struct channel *channel);
    void (*on_bytes)(struct channel *channel, struct slice bytes);
    void (*on_writable)(struct channel *channel);

    /* OK: the peer has closed its side properly. Otherwise channel->why has the reason.
     * ERR_UNREACHABLE and ERR_UNTRUSTED come before on_open, ERR_LOST after it. */
    void (*on_end)(struct channel *channel, enum err error);
    void (*on_closed)(struct channel *channel);
};

struct channel_options {
    struct loop *loop;
    struct readiness *readiness;
    const struct url *url;     /* must outlive the channel */
    const struct trust *trust; /* must outlive the channel; NULL: not for https and wss */
    int64_t connect_ms;        /* time for everything until on_open */
};

enum channel_state {
    CHANNEL_RESOLVING,
    CHANNEL_CONNECTING,
    CHANNEL_HANDSHAKE,
    CHANNEL_OPEN,
    CHANNEL_OVER, /* on_end or channel_close was called */
};

struct channel {
    struct readiness_watch watch;
    struct channel_options options;
    const struct channel_ops *ops;
    enum channel_state state;
    struct failure why; /* for on_end; before that, why the last address failed */

    struct lookup lookup;           /* of the addresses */
    const struct addrinfo *address; /* the present one */
    int64_t until_ms;               /* the deadline for opening */
    struct deadline deadline;

    struct tls *tls; /* NULL: none yet, or a plain connection */
    bool paused;
    bool blocked;          /* on_writable is due */
    bool waits_to_write;   /* TLS reads only once the socket is writable */
    bool waits_to_read;    /* TLS writes only once the socket is readable */
    bool lost;             /* the connection broke; on_end is due */
    bool closed;           /* channel_close was called; on_closed is due */
    struct deferred later; /* reads what TLS holds; calls on_writable, on_end, on_closed */
};

/* The channel is zeroed memory of the owner. It may be closed without having been opened. */
void channel_init(struct channel *channel, const struct channel_options *options,
                  const struct channel_ops *ops);
void channel_open(struct channel *channel);

/* Returns how many bytes were written. If not all, on_writable or on_end follows. Next
 * time, begin with the bytes that were not written. */
size_t channel_write(struct channel *channel, struct slice bytes);

/* Schedules on_writable for the next turn. */
void channel_write_later(struct channel *channel);

/* Pauses or resumes reading. */
void channel_pause(struct channel *channel, bool paused);

/* Ends our side of the stream; what the peer still sends is received. Write nothing more. */
void channel_finish_output(struct channel *channel);

/* Does nothing if called again. */
void channel_close(struct channel *channel);
