/* pg_link.h - a connection that comes back: one statement at a time, on the loop.
 *
 *            ┌──────────── lost, or no answer in time ───────────┐
 *            ▼                                                   │
 *   ─► WAITING ── time is over ─► OPENING ── connected ─► IDLE ─ sent ─► BUSY
 *         ▲        (back-off)    on a worker │              ▲              │
 *         └────────── failed ────────────────┘              └── answered ──┘
 *
 * How long it waits grows with each try since a statement was answered, not since a connection
 * was made: a pooler lets clients connect while its server is away.
 *
 * What a COPY sends comes row by row, while the link is busy, and only as fast as it is taken: the
 * server waits meanwhile. */
#pragma once

#include <uv.h>

#include "base/work.h"
#include "store/pg/pg_connect.h"

enum pg_state { PG_WAITING, PG_OPENING, PG_IDLE, PG_BUSY, PG_CLOSED };

struct pg_statement {
    const char *sql;
    const struct pg_params *params;
    int64_t stop_ms;      /* of a link that reads: the server ends it then; 0: never */
    int64_t lock_ms;      /* the same while it waits for a lock */
    unsigned deadline_ms; /* without a byte: then the connection is given up; 0: never */
};

struct pg_socket;

struct pg_link {
    uv_loop_t *loop;
    const struct pg_options *options;
    bool reads;               /* each statement goes with what limits it, in one segment */
    unsigned back_off_max_ms; /* 0: 5 s */
    /* The owner's; each may send. */
    void (*on_ready)(struct pg_link *link); /* connected, and idle */
    /* The answer, or what the server refuses it with, which is taken over; the link is idle. */
    void (*on_answer)(struct pg_link *link, PGresult *answer);
    /* Rows of a COPY have come: to be taken until there is none, or the link is paused. */
    void (*on_rows)(struct pg_link *link);
    /* The connection is gone; if it was busy nobody knows what became of the statement. */
    void (*on_lost)(struct pg_link *link, bool was_busy);
    /* A notification of a channel that the link listens to; the link may be busy. NULL: none comes. */
    void (*on_notified)(struct pg_link *link);
    void (*on_closed)(struct pg_link *link);

    enum pg_state state;
    struct pg_hello hello; /* of the connection that there is */
    PGconn *conn;          /* the worker's while opening */
    struct pg_socket *socket;
    PGresult *answer;  /* as much as has come */
    bool copies;       /* the statement is a COPY, */
    bool in_rows;      /* and its rows come now */
    uv_timer_t timer;  /* of the back-off, or of the deadline */
    uint64_t heard_ms; /* uv_now when bytes came; 0: never */
    struct work work;
    struct failure why; /* the last one */
    unsigned tries;     /* since a statement was answered */
    unsigned handles;   /* of libuv, not closed yet */
    bool closing;
};

/* The caller has set loop, options, reads and the callbacks, and conn and hello if it has a
 * connection, which is taken over; else one is opened. */
void pg_link_begin(struct pg_link *link);

/* The link is idle. What the statement borrows is not needed any more when this returns. */
void pg_link_send(struct pg_link *link, const struct pg_statement *statement);

/* The same for COPY … TO STDOUT, whose text has all values in it: of a link that reads, and that
 * has on_rows. on_answer comes when all rows were taken. */
void pg_link_copy(struct pg_link *link, const char *sql);

/* The next row, to be freed by PQfreemem; absent: none has come. */
struct slice pg_link_take_row(struct pg_link *link);

/* Nothing more is read from the server; resume may call on_rows. */
void pg_link_pause(struct pg_link *link);
void pg_link_resume(struct pg_link *link);

/* Gives the connection up for another one, after the back-off; on_lost is not called. */
void pg_link_reopen(struct pg_link *link);

/* on_closed comes later, nothing else any more. */
void pg_link_close(struct pg_link *link);
