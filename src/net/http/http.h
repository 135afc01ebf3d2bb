/* http.h - one request and its response: HTTP/1.1 as a handler sees it.
 *
 *   bytes ─► head complete: on_head ─► body (whole, or in pieces: on_body) ─► on_request
 *                     │                                                          │
 *                     └────────── http_reply, now or any time later ◄────────────┘
 *
 * An exchange is a request with its reply. A connection has one at a time; pipelined
 * requests wait unparsed. An exchange lives until it is replied to, even if the peer has
 * left: then on_gone is called once, and the reply is discarded. Everything that a request
 * refers to is borrowed until the reply. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/quota.h"
#include "base/slice.h"
#include "net/address.h"

struct exchange;

enum http_method {
    HTTP_GET_,
    HTTP_HEAD_,
    HTTP_POST_,
    HTTP_PUT_,
    HTTP_PATCH_,
    HTTP_DELETE_,
    HTTP_OPTIONS_,
    HTTP_OTHER_
};

struct http_header {
    struct slice name;  /* as sent; compare it with http_header */
    struct slice value; /* trimmed */
};

/* Returns the method as written in a request; "other" for HTTP_OTHER_. */
const char *http_method_name(enum http_method method);

/* Bytes kept of a body that is too long (exchange.body_keep). */
enum { HTTP_BEGINNING = 4096 };

/* Counts responses by class of their status, from 1xx to 5xx. */
enum { HTTP_CLASSES = 5 };
struct http_answers {
    int64_t by_class[HTTP_CLASSES];
};

struct exchange {
    enum http_method method;
    struct slice path;  /* raw: split it first, then decode the segments */
    struct slice query; /* raw, without the question mark; absent if there is none */
    const struct http_header *headers;
    size_t header_count;
    struct slice body; /* complete in on_request, unless it came in pieces */
    bool has_body_length;
    bool chunked;
    bool wants_upgrade;      /* Connection: upgrade and Upgrade: websocket */
    bool admin;              /* it came through an admin listener */
    bool secure;             /* it came through TLS */
    char peer[ADDRESS_TEXT]; /* the client's address, for logs */
    bool hidden; /* the peer is an untrusted proxy, so its clients are unknown */

    /* Set by a handler at any time. */
    bool is_last; /* the connection closes after the reply */
    bool relayed; /* another gateway has forwarded the request, and peer is its client */

    /* Set by on_head. */
    size_t body_limit;        /* bytes; more is 413; default 0 */
    struct quota *body_quota; /* quota for bodies in progress; full: 503; NULL: no quota */
    struct quota *answer_quota; /* quota for unsent bytes, except of streams; NULL: none */
    size_t body_keep; /* max bytes of exchange.body, at least HTTP_BEGINNING; 0: body_limit.
                       * A longer body is read and discarded except for its first
                       * HTTP_BEGINNING bytes; body_len has its length */
    bool stream_body; /* on_body instead of exchange.body; body_limit still applies */
    bool slow_body;   /* pieces may be minutes apart: 408 only after 15 without any */
    struct http_answers *answers; /* counts the response, too; NULL: not counted */

    size_t body_len;  /* bytes of the body so far */
    bool body_paused; /* set by http_body_pause */
    bool replied, gone;
    void *call; /* the handler's data */
};

/* Returns the microseconds since the request was complete; 0 before that. */
int64_t http_elapsed_us(const struct exchange *x);

/* A server's callbacks; owner is the pointer in its options. After a reply, none is called
 * for that exchange, not even on_request. */
struct http_handler {
    void (*on_head)(void *owner, struct exchange *x);
    void (*on_body)(void *owner, struct exchange *x, struct slice piece); /* stream_body */
    void (*on_request)(void *owner, struct exchange *x);

    /* The peer has left, or this layer has rejected the body. May be NULL. A reply is still
     * due: it ends the exchange, and is written if the peer has merely stopped sending. */
    void (*on_gone)(void *owner, struct exchange *x);

    /* Everything written to a stream was sent; spurious calls are possible. May be NULL. If
     * the stream has a length, this is also called when it can no longer be delivered. */
    void (*on_drained)(void *owner, struct exchange *x);

    /* This layer responds with an error by itself. May be NULL. Called before or after
     * on_head; the exchange has the request as far as it was read. */
    void (*on_refused)(void *owner, const struct exchange *x, int status);
};

/* Returns the value of a header, the first one if it repeats; absent if there is none. The
 * case of the name is ignored. */
struct slice http_header(const struct exchange *x, const char *name);

/* Yields the values of a repeated header one by one; start with *at = 0. */
bool http_next_header(const struct exchange *x, const char *name, size_t *at,
                      struct slice *value);

/* Replies and ends the exchange. headers are the handler's complete lines ("name:
 * value\r\n"). Status line, date, content-length and connection are added. A reply from
 * on_head, before the body, closes the connection unless the body is empty or short. HEAD,
 * 204 and 304 get no body. */
void http_reply(struct exchange *x, int status, struct slice headers, struct slice body);

/* Replies on behalf of a handler whose own reply may take long. The client gets the
 * response and the connection closes, but the exchange stays: on_gone is called, and the
 * reply that is still due ends the exchange and is discarded. Requires http_is_awaited. */
void http_reply_early(struct exchange *x, int status, struct slice headers,
                      struct slice body);

/* Returns true if the request is complete, the peer is connected, and no response has begun. */
bool http_is_awaited(const struct exchange *x);

/* The outcome of a reply. A peer that resets the connection may have read the reply first,
 * since proxies close connections that they no longer need this way. Or it has not, and the
 * reset is its kernel's reaction to the reply. */
enum delivery_end {
    DELIVERY_TAKEN,   /* the peer's kernel has it */
    DELIVERY_LOST,    /* the peer closed before that */
    DELIVERY_UNKNOWN, /* the connection was reset after the whole reply was sent */
};

/* Reports the outcome of a reply: done is called once, at the latest when the peer sends
 * more or closes. Embedded by the caller. No reply may be begun in done. */
struct delivery {
    void (*done)(struct delivery *delivery, enum delivery_end end);
};

/* Call this right before the reply. Returns false if the connection has ended; done is then
 * not called. */
bool http_follow_reply(struct exchange *x, struct delivery *delivery);

/* Like http_reply, with a shared body; a reference is taken while it is sent. */
void http_reply_shared(struct exchange *x, int status, struct slice headers,
                       struct bytes *body);

/* Like http_reply, with a long body in parts, at least one; none of it is copied. */
void http_reply_parts(struct exchange *x, int status, struct slice headers,
                      struct bytes *const *parts, size_t count);

/* Notes that the peer has sent a valid credential. When connections run short, this one is
 * closed only while idle, and after those that never sent one. */
void http_trust(struct exchange *x);

/* Pauses the body until http_body_resume. Bytes that were read may still be delivered. */
void http_body_pause(struct exchange *x);
void http_body_resume(struct exchange *x);

/* A response of unknown length, such as an event stream. Pieces are sent at once, chunked.
 * A write returns false if the peer reads too slowly (1 MiB unsent) or has left: then end
 * the stream. */
void http_stream_begin(struct exchange *x, int status, struct slice headers);
bool http_stream_write(struct exchange *x, struct slice piece);
/* The same for shared bytes, referenced while they are unsent. */
bool http_stream_write_shared(struct exchange *x, struct bytes *content);
/* Writes shared parts as one piece, with `between` between them and `after` at the end.
 * All of it is written, however large, so call this only if nothing is unsent. Returns
 * false if the peer has left: then end the stream. */
enum { HTTP_PARTS_MAX = 64 };
bool http_stream_write_parts(struct exchange *x, struct bytes *const *parts, size_t count,
                             struct slice between, struct slice after);

/* Begins a response of known length that is written in pieces. Write each with
 * http_stream_write_shared, after on_drained for the one before. Like any response it
 * counts in its quota, must be read at the least rate, and continues if the peer merely
 * stops sending. A write returns false if the response can no longer be delivered: then cut
 * it. */
void http_stream_begin_sized(struct exchange *x, int status, struct slice headers,
                             size_t len);

/* Returns the number of bytes that the peer has not received. */
size_t http_stream_unsent(struct exchange *x);
void http_stream_end(struct exchange *x);
/* Ends it in the middle, so that the client can tell that the response is incomplete. */
void http_stream_cut(struct exchange *x);
