/* websocket.h - the client's side of one WebSocket (RFC 6455).
 *
 *   websocket_open ─► connected, asked, accepted ─► on_open ─► on_message …
 *     └─────────────── whatever ends it, once ─► on_closed: it is gone then
 *
 * Frames of ours are masked with random bytes; pings are answered and sent; a message, and
 * what is unsent, is bounded. */
#pragma once

#include "base/loop.h"
#include "net/client/trust.h"
#include "net/client/url.h"
#include "net/http/http.h"

struct websocket;

/* How a WebSocket ended. */
struct websocket_end {
    enum err error;  /* OK: by a closing handshake; else as of a fetch. ERR_CANCELED:
                           websocket_cut */
    const char *why; /* in words for an operator */
    int status;      /* of the answer when it was not accepted; 0: there was none, or 101 */
    int code;        /* of the peer's close frame; 1005: it had none; 0: no frame came */
    struct slice reason; /* the peer's, UTF-8 */
};

struct websocket_ops {
    void (*on_open)(struct websocket *ws);
    void (*on_message)(struct websocket *ws, struct slice message, bool is_binary);
    void (*on_closed)(struct websocket *ws, const struct websocket_end *end);
};

/* Borrowed for the call, but for trust. Zero values mean the defaults. */
struct websocket_options {
    const struct url *url;     /* ws or wss; http and https mean the same */
    const struct trust *trust; /* outlives it; needed for wss */
    struct slice target;       /* "/path?query", behind the path of the URL */
    const struct http_header *headers;
    size_t header_count;
    const char *protocol;   /* asked for, and the answer must name it; NULL: none */
    int64_t connect_ms;     /* names, addresses and TLS; default 10 s */
    int64_t handshake_ms;   /* then until it is accepted; default 30 s */
    int64_t ping_ms;        /* without a byte of the peer, a ping is sent; default 25 s */
    int64_t silence_ms;     /* without one behind the ping: lost; default 30 s */
    size_t message_max;     /* bytes; default 1 MiB */
    unsigned fragments_max; /* of a message; default 64 */
    size_t unsent_max;      /* bytes; default 4 MiB */
};

/* ERR_INVALID: a part of the request is not well-formed; ERR_INTERNAL: the system is out of
 * something. Then nothing is called back. */
enum err websocket_open(struct loop *loop, const struct websocket_options *options,
                        const struct websocket_ops *ops, void *owner, struct websocket **ws,
                        struct failure *why);

void *websocket_owner(const struct websocket *ws);

/* A message. ERR_CONFLICT: it is not open, or closes. ERR_BUSY: too much is unsent: nothing
 * was sent. */
enum err websocket_send(struct websocket *ws, struct slice message, bool is_binary);

/* Bytes that the kernel did not take yet. */
size_t websocket_unsent(const struct websocket *ws);

/* Starts the closing handshake behind what is unsent; at most 123 bytes of reason. No message
 * is heard any more; on_closed follows, at the latest 5 s later. */
void websocket_close(struct websocket *ws, int code, const char *reason);

/* At once, without a word; on_closed follows. */
void websocket_cut(struct websocket *ws);
