/* line.h - the workers that wait for a run of an environment: first come, first served.
 *
 *   outside dev: one line               in dev: a line of each session (dev_sessions.h),
 *                                       which the version that a worker names belongs to
 *
 * A worker that serves several environments has a seat in the line of each. */
#pragma once

#include "core/fleet/fleet.h"

struct dequeue;
struct session;

/* The place of a worker in the line of one environment. The link is initialised. */
struct dequeue_seat {
    struct dequeue *dequeue; /* the owner's */
    struct environment *env;
    bool deployed_only;      /* it takes no run of a plain registration */
    struct slice request_id; /* fleet::named has it under that; absent: it does not */
    struct session *session; /* in dev, while it stands in its line; else NULL */
    struct list link;        // fleet::line or session::dequeues
    /* The version that the worker names is about to change: the dequeue leaves the line, and
     * is answered by then (monotonic ms). */
    void (*hurry)(struct dequeue_seat *seat, int64_t until);
};

/* The key of fleet::named. */
struct slice line_key(const void *value);

/* Names the request that the seat is for, of a worker outside of dev; borrowed until the seat
 * loses its name. The seat that had it, which loses it; NULL: there was none. */
struct dequeue_seat *line_name(struct dequeue_seat *seat, struct slice request_id);
void line_unname(struct dequeue_seat *seat);

/* worker: the id of the version that it names; "": none. False: in dev nobody has a run for a
 * version that has gone; the seat stands in no line. */
bool line_join(struct dequeue_seat *seat, struct slice worker);

/* Nothing happens if the seat stands in no line. */
void line_leave(struct dequeue_seat *seat);
