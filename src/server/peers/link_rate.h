/* link_rate.h - how many bytes a second a follower reads from its link.
 *
 *   bytes sent:  ────────┬───────────┬───────────┬──────── unread ───┤
 *                      mark        mark        mark
 *                        │ answered  │ answered  └ not yet
 *                        └── rate ───┘
 *
 * The follower answers a mark once it has read everything before it. So bytes count that wait
 * anywhere: in this process, in both kernels, or in between. A link is late if an answer takes
 * longer than the fastest one so far by LINK_DELAY_MS: only then is its rate that of the link,
 * otherwise that of the sender. From the rate follows how many bytes may be unread: what is sent
 * after them waits for them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LINK_DELAY_MS = 250,
    LINK_MARK = 32 << 10, /* bytes from one mark to the next, at least */
    /* Bytes that may be unread, however slow or fast the link is. */
    LINK_LEAST = 64 << 10,
    LINK_MOST = 4 << 20,
    /* Bytes a second: before anything was measured, and at least. */
    LINK_ASSUMED = 1 << 20,
    LINK_SLOWEST = 16 << 10,
};

struct link_point {
    int64_t at_ms; /* monotonic */
    uint64_t read; /* bytes */
};

/* Zeroed before the first call. */
struct link_rate {
    size_t rate;      /* bytes a second; 0: LINK_ASSUMED */
    uint64_t marked;  /* bytes before the last mark */
    uint64_t read;    /* bytes before the last mark that was answered */
    int64_t least_ms; /* of the fastest answer; 0: none */
    /* While a mark has no answer: */
    int64_t heard_ms;        /* when the last answer arrived, or the first mark was sent */
    struct link_point begun; /* when the first mark was sent */
    struct link_point points[2]; /* the same or later, the older one first */
};

/* Returns true if a mark is due after that many bytes. The first one is due at once. */
bool link_rate_is_due(const struct link_rate *link, uint64_t bytes);

/* A mark was sent after that many bytes. before: how many had been sent before those that were
 * sent together with the mark. */
void link_rate_mark(struct link_rate *link, int64_t now_ms, uint64_t before,
                    uint64_t bytes);

/* The mark after that many bytes was answered. since_ms: when the last bytes before it were to be
 * sent. Both are from the network, without a proof: ignores an answer that cannot be. */
void link_rate_answer(struct link_rate *link, int64_t now_ms, uint64_t bytes,
                      int64_t since_ms);

/* Call it when bytes are sent: marks may stay without an answer. */
void link_rate_look(struct link_rate *link, int64_t now_ms);

/* Returns how many bytes may be unread, so that others do not wait much longer than
 * LINK_DELAY_MS. */
size_t link_rate_most(const struct link_rate *link);

/* Returns the bytes a second that the link carries. */
size_t link_rate_of(const struct link_rate *link);
