/* http.h - one request and its reply: what a handler sees of HTTP/1.1.
 *
 *   bytes ─► head complete: on_head ─► body (whole, or in pieces: on_body) ─► on_request
 *                     │                                                          │
 *                     └────────── http_reply, now or any time later ◄────────────┘
 *
 * A connection has one exchange at a time; what is pipelined behind it waits unparsed. An
 * exchange lives until it was replied to, also when the peer has left meanwhile: then
 * on_gone says so once and the reply goes nowhere. Everything a request refers to is
 * borrowed until the reply. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/room.h"
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
    struct slice name;  /* as sent; compare with http_header */
    struct slice value; /* trimmed */
};

/* As it is written in a request; "other" for HTTP_OTHER_. */
const char *http_method_name(enum http_method method);

/* Bytes that are kept of a body that is too long (exchange.body_keep). */
enum { HTTP_BEGINNING = 4096 };

/* How many answers had a status of each class, from 1xx to 5xx. */
enum { HTTP_CLASSES = 5 };
struct http_answers {
    int64_t by_class[HTTP_CLASSES];
};

struct exchange {
    enum http_method method;
    struct slice path;  /* raw: split first, decode the segments after */
    struct slice query; /* raw, without the question mark; absent when there is none */
    const struct http_header *headers;
    size_t header_count;
    struct slice body; /* complete in on_request, unless it came in pieces */
    bool has_body_length;
    bool chunked;
    bool wants_upgrade;      /* Connection: upgrade and Upgrade: websocket */
    bool admin;              /* it came by a listener for those who run the server */
    bool secure;             /* it came through TLS */
    char peer[ADDRESS_TEXT]; /* address of the client, for logs */
    bool hidden; /* that is of a proxy which is not trusted: whom it speaks for is
                                not known */

    /* Set by on_head. */
    size_t body_limit;        /* bytes; more is 413; default 0 */
    struct room *body_room;   /* that bodies under way share; without any left 503. NULL:
                                 nothing of the body is kept */
    struct room *answer_room; /* that unsent bytes of the answer take, unless it is a
                                 stream; NULL: they count nowhere */
    size_t body_keep; /* bytes of exchange.body, at least HTTP_BEGINNING. A longer body is
                         read and discarded but for its first HTTP_BEGINNING bytes, and
                         body_len says how many came. 0: body_limit */
    bool stream_body; /* on_body instead of exchange.body; body_limit still counts */
    bool slow_body;   /* pieces may be minutes apart: 408 only after 15 without any */
    struct http_answers *answers; /* the answer counts there, too; NULL: nowhere else */

    size_t body_len;  /* bytes of the body that have come */
    bool body_paused; /* http_body_pause */
    bool replied, gone;
    void *call; /* the handler's own */
};

/* Microseconds since the request was complete; 0 before that. */
int64_t http_elapsed_us(const struct exchange *x);

/* How the server calls its owner; the owner pointer is the server's option. After a reply
 * nothing more is called for that exchange, not even on_request. */
struct http_handler {
    void (*on_head)(void *owner, struct exchange *x);
    void (*on_body)(void *owner, struct exchange *x, struct slice piece); /* stream_body */
    void (*on_request)(void *owner, struct exchange *x);

    /* The peer has left, or this layer has refused the body. A reply is still due: it ends
     * the exchange, and is written when the peer has only stopped sending. May be NULL. */
    void (*on_gone)(void *owner, struct exchange *x);

    /* Of a stream: nothing is unsent any more; may come unasked. Of one with a length also:
     * nobody takes anything any more. May be NULL. */
    void (*on_drained)(void *owner, struct exchange *x);

    /* This layer answers itself, with an error; before or behind on_head, and what the
     * request refers to is there as far as it was read. May be NULL. */
    void (*on_refused)(void *owner, const struct exchange *x, int status);
};

/* The value of a header, name without regard to case; absent when there is none. The first
 * one if it repeats. */
struct slice http_header(const struct exchange *x, const char *name);

/* One after the other of those that repeat; at begins with 0. */
bool http_next_header(const struct exchange *x, const char *name, size_t *at,
                      struct slice *value);

/* Replies and ends the exchange. headers are complete lines ("name: value\r\n"), the
 * handler's; status line, date, content-length and connection are added. A reply from
 * on_head, before the body, closes the connection unless the body is empty or short.
 * HEAD gets no body; 204 and 304 neither. */
void http_reply(struct exchange *x, int status, struct slice headers, struct slice body);

/* The same in the handler's stead, when its reply may be long in coming: the client is answered
 * and the connection closes, but the exchange stays. on_gone says so, and the reply that is still
 * due ends the exchange and goes nowhere. Of one whose request is complete, see
 * http_is_awaited. */
void http_reply_early(struct exchange *x, int status, struct slice headers,
                      struct slice body);

/* The client has sent everything, has not left, and was not answered with anything yet. */
bool http_is_awaited(const struct exchange *x);

/* A peer that resets the connection may have read the reply before: proxies end connections so
 * that nobody needs any more. Or it has not, and the reset is how its kernel answers the reply. */
enum delivery_end {
    DELIVERY_TAKEN,   /* by the peer's kernel */
    DELIVERY_LOST,    /* the peer closed before that */
    DELIVERY_UNKNOWN, /* the connection was reset when all of the reply had left */
};

/* What became of a reply, told once: at the latest when the peer asks for more or closes.
 * Embedded by who asks, who begins no reply in done. */
struct delivery {
    void (*done)(struct delivery *delivery, enum delivery_end end);
};

/* Right before the reply. False: the connection has ended, and nothing will be told. */
bool http_follow_reply(struct exchange *x, struct delivery *delivery);

/* The same with a body that others share; borrowed reference, taken while it is sent. */
void http_reply_shared(struct exchange *x, int status, struct slice headers,
                       struct bytes *body);

/* The same with a long body in parts, so that none of it is copied; at least one. */
void http_reply_parts(struct exchange *x, int status, struct slice headers,
                      struct bytes *const *parts, size_t count);

/* The peer has shown a valid credential: when connections run short, this one is closed
 * behind those that never did, and only while it is idle. */
void http_trust(struct exchange *x);

/* The body comes on later: what was read at once may still come, then no piece before
 * http_body_resume. */
void http_body_pause(struct exchange *x);
void http_body_resume(struct exchange *x);

/* A reply that goes on: event streams. Pieces are written at once, chunked; false when the
 * peer reads too slowly (1 MiB unsent) or has gone: end it then. */
void http_stream_begin(struct exchange *x, int status, struct slice headers);
bool http_stream_write(struct exchange *x, struct slice piece);
/* The same of bytes that others share, referenced while they are unsent. */
bool http_stream_write_shared(struct exchange *x, struct bytes *content);
/* Shared parts with a text between each two and one behind the last, as one piece: all of it
 * is written, however large it is. For who writes only when nothing is unsent. False when
 * the peer has gone: end it then. */
enum { HTTP_PARTS_MAX = 64 };
bool http_stream_write_parts(struct exchange *x, struct bytes *const *parts, size_t count,
                             struct slice between, struct slice behind);

/* An answer of known length that is written in pieces, with http_stream_write_shared, each
 * when on_drained has told that the last was sent; as an answer it takes room, must be read
 * at the least rate, and goes on when the peer only stops sending. A write is false when
 * nobody takes it any more: cut it then. */
void http_stream_begin_sized(struct exchange *x, int status, struct slice headers,
                             size_t len);

/* Bytes that the peer has not taken. */
size_t http_stream_unsent(struct exchange *x);
void http_stream_end(struct exchange *x);
/* Ends in the middle, so that the client knows that this was not the end. */
void http_stream_cut(struct exchange *x);
