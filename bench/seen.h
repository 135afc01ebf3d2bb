/* seen.h - parses each message once, however many connections receive it.
 *
 * The server sends the same bytes to all subscribers of a topic. A message that equals one
 * of the last few is not parsed again. So a bench on one core can receive for ten thousand
 * clients without affecting the latencies by its own work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/table.h"

enum {
    SEEN_MESSAGES = 64,
    RUN_UNKNOWN = UINT32_MAX,
};

enum seen_op {
    SEEN_OTHER,
    SEEN_OK,
    SEEN_ROWS,
    SEEN_PATCH,
    SEEN_DONE,
    SEEN_ERROR,
    SEEN_DRAIN,
    SEEN_WELCOME,
    SEEN_PING,
};

struct seen_row {
    uint32_t run;     /* index of a tracked run, or RUN_UNKNOWN */
    uint32_t version; /* 0: unknown, in a long poll */
    int64_t n;        /* from the metadata; 0: none */
};

struct seen_message {
    struct buf text;
    enum seen_op op;
    bool more;
    bool resumed;   /* of ok: the given position was accepted */
    int64_t seq;    /* of rows, patch and ping */
    int64_t in_ms;  /* of drain: when to reconnect */
    char epoch[24]; /* of welcome */
    int64_t count;  /* of ok: rows that follow; of done: frames sent */
    int64_t cpu_ns; /* of done: CPU of the floor server */
    size_t row_count, row_capacity;
    struct seen_row *rows;
};

struct tracked_run {
    const char *id; /* borrowed */
    uint32_t index;
};

struct seen {
    struct table runs; /* struct tracked_run by id */
    struct seen_message messages[SEEN_MESSAGES];
    unsigned last; /* last hit: the next message is probably one of those after it */
    unsigned oldest;
};

void seen_init(struct seen *seen);
void seen_finish(struct seen *seen);

/* Borrows the run until seen_finish. */
void seen_track(struct seen *seen, struct tracked_run *run);

/* Returns the parsed message, or NULL if no gateway sends such a message. Valid until the
 * next call. */
const struct seen_message *seen_parse(struct seen *seen, struct slice text);
