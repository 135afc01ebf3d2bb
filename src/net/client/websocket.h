/* websocket.h - the client's side of one WebSocket (RFC 6455).
 *
 *   websocket_open ─► connected, requested, accepted ─► on_open ─► on_message …
 *     └─────────────── however it ends, once ─► on_closed: it is freed then
 *
 * Outgoing frames are masked with random bytes. It sends pings and answers them. The size
 * of a message and of the unsent bytes is limited. */
#pragma once

#include "base/loop.h"
#include "net/client/trust.h"
#include "net/client/url.h"
#include "net/http/http.h"

struct websocket;

/* How a WebSocket ended. */
struct websocket_end {
    enum err error;  /* OK: closing handshake; ERR_CANCELED: cut; or as for a fetch */
    const char *why; /* for an operator */
    int status;      /* of a response that rejected it; 0: no response, or 101 */
    int code;        /* of the peer's close frame; 1005: it had none; 0: no such frame */
    struct slice reason; /* the peer's reason, UTF-8 */
};

struct websocket_ops {
    void (*on_open)(struct websocket *ws);
    void (*on_message)(struct websocket *ws, struct slice message, bool is_binary);
    void (*on_closed)(struct websocket *ws, const struct websocket_end *end);
};

/* Borrowed for the call, except trust. Zero values mean the defaults. */
struct websocket_options {
    const struct url *url;     /* ws or wss; http and https mean the same */
    const struct trust *trust; /* must outlive it; required for wss */
    struct slice target;       /* "/path?query", appended to the path of the URL */
    const struct http_header *headers;
    size_t header_count;
    const char *protocol;   /* requested, and the response must name it; NULL: none */
    int64_t connect_ms;     /* for names, addresses and TLS; default 10 s */
    int64_t handshake_ms;   /* from then until it is accepted; default 30 s */
    int64_t ping_ms;        /* silence of the peer before a ping is sent; default 25 s */
    int64_t silence_ms;     /* silence after that ping before the end; default 30 s */
    size_t message_max;     /* bytes; default 1 MiB */
    unsigned fragments_max; /* of a message; default 64 */
    size_t unsent_max;      /* bytes; default 4 MiB */
};

/* ERR_INVALID: malformed request. ERR_INTERNAL: the system is out of resources. After an
 * error, no callback is made. */
enum err websocket_open(struct loop *loop, const struct websocket_options *options,
                        const struct websocket_ops *ops, void *owner, struct websocket **ws,
                        struct failure *why);

void *websocket_owner(const struct websocket *ws);

/* Sends a message. ERR_CONFLICT: not open, or closing. ERR_BUSY: too many unsent bytes;
 * nothing was sent. */
enum err websocket_send(struct websocket *ws, struct slice message, bool is_binary);

/* Sets message_max for messages that begin from now on: a peer that has proved something may
 * send more. */
void websocket_limit_messages(struct websocket *ws, size_t most);

/* Returns the number of bytes that the kernel has not accepted yet. */
size_t websocket_unsent(const struct websocket *ws);

/* Starts the closing handshake after the unsent bytes; reason has at most 123 bytes. No
 * more messages are delivered. on_closed follows within 5 s. */
void websocket_close(struct websocket *ws, int code, const char *reason);

/* Closes at once, without a close frame; on_closed follows. */
void websocket_cut(struct websocket *ws);
