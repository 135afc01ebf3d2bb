/* pg_link.h - a connection that reconnects by itself: one statement at a time, on the loop.
 *
 *            ┌──────────── lost, or no answer in time ───────────┐
 *            ▼                                                   │
 *   ─► WAITING ── back-off ───► OPENING ── connected ─► IDLE ─ sent ─► BUSY
 *         ▲        has ended    on a worker │              ▲              │
 *         └────────── failed ───────────────┘              └── answered ──┘
 *
 * The back-off grows with each attempt since a statement last got its result, not since a
 * connection was made: a pooler accepts clients while its server is unreachable.
 *
 * The rows of a COPY arrive one by one while the link is busy, and only as fast as they are
 * taken: the server waits. */
#pragma once

#include <uv.h>

#include "base/work.h"
#include "store/pg/pg_connect.h"

enum pg_state { PG_WAITING, PG_OPENING, PG_IDLE, PG_BUSY, PG_CLOSED };

struct pg_statement {
    const char *sql;
    const struct pg_params *params;
    int64_t stop_ms; /* only if the link reads: time limit in the server; 0: none */
    int64_t lock_ms; /* only if the link reads: limit for waiting for a lock; 0: none */
    /* the connection is dropped after this time without a byte; 0: never */
    unsigned deadline_ms;
};

struct pg_socket;

struct pg_link {
    uv_loop_t *loop;
    const struct pg_options *options;
    bool reads; /* each statement is sent with its limits, in one transaction */
    unsigned back_off_max_ms; /* 0: 5 s */
    /* Callbacks to the owner; each may send. */
    void (*on_ready)(struct pg_link *link); /* connected and idle */
    /* Passes ownership of the result, or of the server's error. The link is idle. */
    void (*on_answer)(struct pg_link *link, PGresult *answer);
    /* Rows of a COPY have arrived. Take them until there are none, or pause the link. */
    void (*on_rows)(struct pg_link *link);
    /* The connection was lost. was_busy: the outcome of the statement is unknown. */
    void (*on_lost)(struct pg_link *link, bool was_busy);
    /* A notification has arrived on a channel that the link listens to. The link may be
     * busy. The payload is borrowed. NULL: the link does not listen. */
    void (*on_notified)(struct pg_link *link, const char *payload);
    void (*on_closed)(struct pg_link *link);

    enum pg_state state;
    struct pg_hello hello; /* from the current connection */
    PGconn *conn;          /* the worker's while opening */
    struct pg_socket *socket;
    PGresult *answer;          /* received so far */
    bool copies;               /* the statement is a COPY */
    bool in_rows;              /* its rows are arriving */
    uv_timer_t timer;          /* for the back-off or the deadline */
    uint64_t last_received_ms; /* uv_now when bytes last arrived; 0: never */
    struct work work;
    struct failure why; /* of the last failure to connect */
    unsigned tries;     /* attempts since a statement got its result */
    unsigned handles;   /* libuv's, still open */
    bool closing;
};

/* Begins with a connection, or opens one.
 *
 * The caller must have set loop, options, reads and the callbacks. If conn and hello are
 * set, takes ownership of that connection. */
void pg_link_begin(struct pg_link *link);

/* Requires an idle link. The statement is borrowed only until this returns. */
void pg_link_send(struct pg_link *link, const struct pg_statement *statement);

/* Like pg_link_send, for COPY … TO STDOUT with all values in the text.
 *
 * Requires a link that reads and has on_rows. on_answer is called after all rows were
 * taken. */
void pg_link_copy(struct pg_link *link, const char *sql);

/* Returns the next row, to be freed by PQfreemem; absent if none has arrived. */
struct slice pg_link_take_row(struct pg_link *link);

/* Pause and resume reading from the server. Resuming may call on_rows. */
void pg_link_pause(struct pg_link *link);
void pg_link_resume(struct pg_link *link);

/* Drops the connection and opens another one after the back-off; on_lost is not called. */
void pg_link_reopen(struct pg_link *link);

/* Calls on_closed later, and no other callback. */
void pg_link_close(struct pg_link *link);
