/* seen.h - messages parsed once, however many connections bring them.
 *
 * The server sends the same bytes to all subscribers of a topic. A message that equals one
 * of the last few is not parsed again, so a bench on one core can listen for ten thousand
 * and its own work does not show in the latencies. */
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
    uint32_t version; /* 0: a long poll does not say it */
    int64_t n;        /* of the metadata; 0: none */
};

struct seen_message {
    struct buf text;
    enum seen_op op;
    bool more;
    bool resumed;   /* of ok: the position that was brought holds */
    int64_t seq;    /* of rows, patch and ping */
    int64_t in_ms;  /* of drain: when to come back */
    char epoch[24]; /* of welcome */
    int64_t count;  /* of ok: rows to come; of done: frames sent */
    int64_t cpu_ns; /* of done: what the floor server used */
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
    unsigned last; /* hit: the next one is likely behind it */
    unsigned oldest;
};

void seen_init(struct seen *seen);
void seen_finish(struct seen *seen);

/* The run is borrowed until seen_finish. */
void seen_track(struct seen *seen, struct tracked_run *run);

/* The parsed message, or NULL if it is none that a gateway sends. Valid until the next
 * call. */
const struct seen_message *seen_parse(struct seen *seen, struct slice text);
