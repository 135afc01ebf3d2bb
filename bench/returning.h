/* returning.h - many clients that come back when their connection ends, and what they know.
 *
 *   connect ─► live ─ the server says when to come back, and closes ─► away ─► connect ─► live
 *
 * Six of ten are WebSockets, two long polls, two event streams, each on one of some tags. A
 * client that comes back brings its position and keeps what it knew; so at the end it knows
 * the newest state of each run of its tag, or has missed something. It comes back when the
 * server said so, if not at once; when it is refused, after a while that doubles, with
 * jitter: as the clients do that pages and the SDKs have. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "report.h"
#include "seen.h"
#include "writer.h"

enum returning_kind { RETURNING_WS, RETURNING_POLL, RETURNING_EVENTS, RETURNING_KINDS };

struct returning_client {
    struct client client;
    enum returning_kind kind;
    size_t tag;
    bool live;
    bool left;       /* since returning_measure its connection has ended; maybe it found the
                        same process once more, and left that again */
    unsigned tries;  /* since it was live */
    int64_t due_ns;  /* connects then; 0: it does not wait */
    int64_t back_ns; /* since returning_measure; 0: it is not back */
};

struct returning {
    struct client_group groups[RETURNING_KINDS];
    struct options options[RETURNING_KINDS]; /* of the groups */
    struct client_handler handler;
    struct seen seen;
    const struct writer *writer;
    struct returning_client *all;
    size_t count, begun, live;
    uint32_t *newest; /* number of the newest change seen: count x WRITER_SLOTS */

    int64_t since_ns; /* of returning_measure; 0: nobody's connection may end */
    bool has_next;    /* who is live from now on is so at the next process, and back */
    size_t back;
    uint64_t refused;   /* connections on the way back that came to nothing */
    uint64_t snapshots; /* that came instead of what was missed */
    struct buf refusal; /* the first reason */
};

/* Options and writer are borrowed. */
void returning_init(struct returning *returning, struct poller *poller,
                    const struct options *options, const struct writer *writer);
void returning_finish(struct returning *returning);

/* Connects more of them, a few at a time, until returning->live is all. */
void returning_connect(struct returning *returning);

/* From here on connections may end, and the time is taken. */
void returning_measure(struct returning *returning);

/* Connects those that are due. */
void returning_step(struct returning *returning);

/* Pairs of client and run that the client knows another state of than the newest. */
uint64_t returning_count_missed(const struct returning *returning,
                                const uint32_t *newest_of);

/* When they came back, in order; of one kind, or of all with RETURNING_KINDS. Returns their
 * number; times has room for all. */
size_t returning_list_times(const struct returning *returning, enum returning_kind kind,
                            int64_t *times);
