/* returning.h - many clients that reconnect, and the states of runs that they know.
 *
 *   connect ─► live ─ the server names a time, and closes ─► away ─► connect ─► live
 *
 * Six of ten clients use WebSockets, two long polls and two event streams, each on one of
 * some tags. A client that reconnects sends its position and keeps its state. So at the end
 * it knows the newest state of each run of its tag, or has missed something. It reconnects
 * at the time that the server named, or at once; after a refusal it waits with a doubling
 * pause and jitter, like the clients in pages and the SDKs. */
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
    /* its connection was closed since returning_measure; it may have reached the same
     * process again, and left it again */
    bool left;
    unsigned tries;  /* since it was live */
    int64_t due_ns;  /* when to connect; 0: it does not wait */
    int64_t back_ns; /* time from returning_measure until it was back; 0: not yet */
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

    int64_t since_ns; /* of returning_measure; 0: no connection may end yet */
    bool has_next;    /* the next process runs: a client that becomes live is back */
    size_t back;
    uint64_t refused;   /* failed reconnects */
    uint64_t snapshots; /* received instead of the missed changes */
    struct buf refusal; /* the first reason */
};

/* Borrows options and writer. */
void returning_init(struct returning *returning, struct poller *poller,
                    const struct options *options, const struct writer *writer);
void returning_finish(struct returning *returning);

/* Connects more of them, a few at a time, until returning->live is the number of all. */
void returning_connect(struct returning *returning);

/* Connections may be closed from now on, and times are measured. */
void returning_measure(struct returning *returning);

/* Connects clients that are due. */
void returning_step(struct returning *returning);

/* Counts pairs of client and run where the client does not know the newest state. */
uint64_t returning_count_missed(const struct returning *returning,
                                const uint32_t *newest_of);

/* Lists in ascending order when clients came back: of one kind, or of all with RETURNING_KINDS.
 * Returns their number; times must have space for all. */
size_t returning_list_times(const struct returning *returning, enum returning_kind kind,
                            int64_t *times);
