/* channel.h - one connection to an origin, with or without TLS: bytes both ways; private to
 * client.
 *
 *   channel_open ─► names resolved, off the loop ─► each address in turn ─► TLS
 *     ─► on_open ─► on_bytes …      channel_write: what the socket takes now
 *     │             on_writable …   when it did not take all, and takes some again
 *     └─► on_end: once, whatever has gone wrong; or the peer has sent its end
 *   channel_close, at any time ─► on_closed: its memory is the owner's again
 *
 * It has no buffer: who writes keeps what was not taken. Nothing is called back from inside
 * a call, and nothing but on_closed after channel_close. */
#pragma once

#include "net/client/deadline.h"
#include "net/client/url.h"
#include "net/readiness.h"

struct channel;
struct tls;
struct trust;

struct channel_ops {
    void (*on_open)(struct channel *channel);
    void (*on_bytes)(struct channel *channel, struct slice bytes);
    void (*on_writable)(struct channel *channel);

    /* OK: the peer sends nothing more, and has said so. Else channel->why says what happened:
     * ERR_UNREACHABLE and ERR_UNTRUSTED before on_open, ERR_LOST behind it. */
    void (*on_end)(struct channel *channel, enum err error);
    void (*on_closed)(struct channel *channel);
};

struct channel_options {
    struct loop *loop;
    struct readiness *readiness;
    const struct url *url;     /* outlives the channel */
    const struct trust *trust; /* the same; NULL: not for https and wss */
    int64_t connect_ms;        /* for all until on_open */
};

enum channel_state {
    CHANNEL_RESOLVING,
    CHANNEL_CONNECTING,
    CHANNEL_SHAKING_HANDS,
    CHANNEL_OPEN,
    CHANNEL_OVER, /* on_end was called, or channel_close */
};

struct channel {
    struct readiness_watch watch;
    struct channel_options options;
    const struct channel_ops *ops;
    enum channel_state state;
    struct failure why; /* of on_end; what the last address said, before that */

    uv_getaddrinfo_t resolving;
    bool resolves; /* the call is under way */
    struct addrinfo *addresses, *address;
    int64_t until_ms; /* to be open by then */
    struct deadline deadline;

    struct tls *tls; /* NULL: none yet, or the URL is not a secure one */
    bool paused;
    bool blocked;          /* on_writable is due */
    bool waits_to_write;   /* TLS reads only when the socket is writable */
    bool waits_to_read;    /* TLS writes only when it is readable */
    bool lost;             /* to be told */
    bool closed, told;     /* channel_close was called; on_closed is waited for */
    struct deferred later; /* reads what TLS holds, tells on_writable, on_end, on_closed */
};

/* The channel is zeroed memory of the owner's. */
void channel_open(struct channel *channel, const struct channel_options *options,
                  const struct channel_ops *ops);

/* How many bytes were taken: when not all, on_writable comes, or on_end. Bytes that were
 * not taken come first the next time. */
size_t channel_write(struct channel *channel, struct slice bytes);

/* on_writable comes in the next turn. */
void channel_write_later(struct channel *channel);

/* No bytes are read while it is paused. */
void channel_pause(struct channel *channel, bool paused);

/* Harmless when called again. */
void channel_close(struct channel *channel);
