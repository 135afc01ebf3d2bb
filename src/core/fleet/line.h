/* line.h - dequeues waiting for a run of an environment: first come, first served.
 *
 *   outside of dev: one line            in dev: one line per session (dev_sessions.h); the
 *                                       version that a worker names belongs to a session
 *
 * A seat is a dequeue's place in one line. The dequeue of a worker that serves several
 * environments waits in the line of each, so it has several seats. */
#pragma once

#include "core/fleet/fleet.h"

struct dequeue;
struct session;

/* The seat of a dequeue in the line of one environment. The owner initializes link. */
struct dequeue_seat {
    struct dequeue *dequeue; /* the owner's */
    struct environment *env;
    bool deployed_only;      /* it takes no run of a plain registration */
    struct slice request_id; /* its key in fleet::named; absent: it is not in that table */
    struct session *session; /* in dev, while in this session's line; otherwise NULL */
    struct list link;        // fleet::line or session::dequeues
    /* Called when the version that the worker names is about to change: must leave the line
     * and respond to the dequeue by then (monotonic ms). */
    void (*shorten_wait)(struct dequeue_seat *seat, int64_t until);
};

/* Returns the key of an entry of fleet::named. */
struct slice line_key(const void *value);

/* Names the seat after its request; for workers outside of dev. Borrows request_id until
 * the seat loses its name. Returns the seat that had the name until now; NULL: none had
 * it. */
struct dequeue_seat *line_name(struct dequeue_seat *seat, struct slice request_id);
void line_clear_name(struct dequeue_seat *seat);

/* worker: the id of the version that it names; "": none. Returns false, and joins no line,
 * if in dev no session dequeues with that version any longer. */
bool line_join(struct dequeue_seat *seat, struct slice worker);

/* Does nothing if the seat is in no line. */
void line_leave(struct dequeue_seat *seat);
