/* relay.h - requests to one server whose bodies and responses pass through piece by piece.
 *
 *   relay_begin ─► (an idle connection, or a new one) ─► relay_write … relay_finish
 *                                                            ▲ on_ready, after a full buffer
 *     on_head ◄─ on_piece … ◄─ on_end, once                  │
 *        └─ status 101: from now on both directions are bytes of another protocol
 *   relay_cancel, at any time before on_end
 *
 * Both sides have back-pressure. No timeout covers the whole exchange: a response may last
 * for days. The caller embeds a struct relay. No callback is made from inside a call.
 *
 * A new connection may first introduce itself (struct relay_greeter): nothing of a request
 * is sent before. */
#pragma once

#include "base/loop.h"
#include "net/client/trust.h"
#include "net/client/url.h"
#include "net/http/http.h"

struct muxer;
struct relay;
struct relay_conn;
struct relay_pool;

enum {
    RELAY_UNSENT_MAX = 64 * 1024,  /* bytes; relay_write returns false above it */
    RELAY_GREETING_MAX = 4 * 1024, /* bytes of a response to a greeting */
};

struct relay_ops {
    /* Everything written is sent; called after relay_write returned false. */
    void (*on_ready)(struct relay *relay);

    /* The head of the response; headers are borrowed for the call. */
    void (*on_head)(struct relay *relay, int status, const struct http_header *headers,
                    size_t count);
    void (*on_piece)(struct relay *relay, struct slice piece);

    /* The last callback. OK: the response is complete. Otherwise ERR_UNREACHABLE,
     * ERR_UNTRUSTED, ERR_LOST, ERR_BAD_ANSWER or ERR_NO_ANSWER, and why for an operator. */
    void (*on_end)(struct relay *relay, enum err error, const char *why);

    /* Instead of all others: the whole response of a brief request that shared a connection.
     * lines: complete header lines; both are borrowed. NULL: no request is brief. */
    void (*on_answer)(struct relay *relay, int status, struct slice lines,
                      struct slice body);
};

struct relay {
    /* For the owner to read. */
    bool was_sent; /* the kernel has taken a byte of the request */
    bool has_head; /* on_head was called */
    bool is_tunnel;
    bool is_muxed;   /* it shares a connection: write nothing */
    bool is_for_own; /* after its end: the server refused it on the shared connection */

    const struct relay_ops *ops;
    struct relay_pool *pool;
    struct relay_conn *conn; /* NULL: it has ended */
    struct buf out;          /* the head, without its last line, then what is unsent */
    size_t head_len;         /* of out; 0: the head was completed */
    size_t sent;             /* bytes of out */
    struct buf note;         /* relay_request::note */
    bool chunked, is_for_head, upgrades;
    bool is_full;          /* on_ready is due */
    bool is_finished;      /* the body is complete */
    bool leaves, has_left; /* relay_leave was called, and took effect */
    struct deferred later;

    /* While it shares a connection (muxer.h). */
    struct muxer *muxer;
    struct list link; // muxer::calls
    uint32_t id;
    int64_t began_ms;
};

/* Borrowed for the call. */
struct relay_request {
    const char *method;
    struct slice target;               /* "/path?query" */
    const struct http_header *headers; /* all but those that frame the body */
    size_t header_count;
    bool is_parsed;    /* our HTTP server has parsed them, so they need no check */
    bool chunked;      /* the length of the body is unknown */
    bool has_length;   /* neither set: the request has no body */
    uint64_t length;   /* of the body */
    bool upgrades;     /* the response may be 101; the headers ask for it */
    struct slice note; /* for relay_greeter::sign */
    /* Its response is short, and comes at once: it may share a connection with others. The
     * body is all here then; is_muxed says whether it must still be written. */
    bool is_brief;
    bool is_urgent; /* gets a new connection before others do; brief ones do so anyway */
    struct slice body;
};

enum relay_greet { RELAY_GREET_SEND, RELAY_GREET_DONE, RELAY_GREET_REFUSED };

/* How a connection introduces itself: by POSTs to a target, one after the other. */
struct relay_greeter {
    const char *target;
    void *(*create)(void *owner);
    void (*destroy)(void *greeting);
    /* Appends the body of the next POST. status: of the response to the one before; 0: this
     * is the first. RELAY_GREET_REFUSED: *why has the reason. */
    enum relay_greet (*next)(void *greeting, int status, struct slice answer,
                             struct buf *body, const char **why);
    /* Appends a header line, complete, to the head of a request: request line and headers. */
    void (*sign)(void *greeting, struct slice head, struct slice note, struct buf *line);
    /* The target that switches to messages of net/mux.h, and the note for sign; NULL:
     * requests share no connection. */
    const char *mux_target, *mux_note;
    /* The note for a server that responds to the other one with 404; NULL: none. */
    const char *mux_older_note;
    /* Writes the MAC of the next message of that connection. */
    void (*seal)(void *greeting, struct slice items, struct buf *mac);
};

/* Zero values mean the defaults. */
struct relay_pool_options {
    const struct url *url;               /* copied */
    const struct trust *trust;           /* must outlive the pool; required for https */
    const struct relay_greeter *greeter; /* NULL: none */
    void *owner;                         /* of the greeter */
    unsigned connections_max;            /* at once; default 1000 */
    /* For its turn to connect, then for name, addresses and TLS, then for the greeting; default
     * 5 s for each. */
    int64_t connect_ms;
    int64_t idle_ms;       /* default 30 s */
    int64_t first_byte_ms; /* from the end of the request to the response; default 90 s */
    int64_t stall_ms;      /* in which the server takes no byte of it; default 60 s */
};

/* ERR_INVALID: https without trust. ERR_INTERNAL: out of descriptors. */
enum err relay_pool_create(struct loop *loop, const struct relay_pool_options *options,
                           struct relay_pool **pool, struct failure *why);

/* No request may begin any more. Those in progress continue. Once the last has ended, calls
 * closed, when the pool is freed. */
void relay_pool_close(struct relay_pool *pool, void (*closed)(void *owner), void *owner);

/* Returns the number of connections that are not closing; for tests and metrics. */
unsigned relay_pool_connections(const struct relay_pool *pool);

/* Begins a request; the relay is memory of the owner until on_end or relay_cancel.
 * ERR_INVALID: malformed head. ERR_BUSY: too many connections. ERR_DRAINING: the pool is
 * closing. After an error, no callback is made. */
enum err relay_begin(struct relay_pool *pool, struct relay *relay,
                     const struct relay_request *request, const struct relay_ops *ops,
                     struct failure *why);

/* Takes a piece of the body, or bytes of a tunnel. Returns false if too many are unsent:
 * write no more before on_ready. */
bool relay_write(struct relay *relay, struct slice piece);

/* The body is complete. */
void relay_finish(struct relay *relay);

/* The client has stopped sending, maybe because it has left: so does this side, after what is
 * unsent, and the server decides what it still responds. Write nothing more. */
void relay_leave(struct relay *relay);

/* Pauses or resumes on_piece; one more piece may still come. */
void relay_pause(struct relay *relay, bool paused);

/* Sends at the end of this turn what is written until then, even in a deferred call. */
void relay_send_soon(struct relay *relay);

/* Writes the MAC of the next message, by the greeter; for muxer.c. */
void relay_seal(struct relay *relay, struct slice items, struct buf *mac);

/* Appends request line, Host and headers, without the last line; for muxer.c. */
void relay_write_head(struct buf *out, const struct relay_pool *pool,
                      const struct relay_request *request);

/* Ends the request, and its connection; no callback is made any more. */
void relay_cancel(struct relay *relay);
