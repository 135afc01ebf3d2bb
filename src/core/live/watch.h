/* watch.h - a live list of one client: the newest runs of a query, rows as they change, and how
 * many there are by status.
 *
 *   window ── marked ──► hub_visit ──► feed_visit ──► watch_visit_all: a frame at a time
 *
 * A client is told the difference between the window as it was when the client was complete
 * (`seen`) and as it is: what left, what came, what changed. So who is slow skips states, never
 * the last one; and who was away for longer than the window remembers departures gets it anew,
 * whole. A watch has no position that outlives its connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/live/window.h"

struct feed;
struct watch_page;

enum {
    WATCHES_MAX = 16,      /* of one feed; counts of subscriptions are among them */
    WATCH_COUNTS_MS = 250, /* between two messages of counts, at least */
};

struct watch {
    int64_t id; /* the client's; of counts, that of their subscription */
    struct feed *feed;
    struct window *window;
    uint32_t limit; /* rows; 0: counts alone */
    bool counts;
    bool fresh;    /* nothing was sent yet, or the client has to forget it */
    bool open;     /* the last frame said `more` */
    bool begun;    /* a frame of the pass was made, with what has left */
    uint64_t seen; /* step of the window at which the client had everything */
    uint64_t base; /* seq, the same */
    uint64_t pass_step, pass_seq; /* of the difference that is being sent; 0: none is */
    char at[RUN_ID_MAX];          /* the last run of it that was sent; "": none yet */
    struct watch_page *page;      /* runs that memory does not have; NULL: none needed */
    uint64_t told;                /* step of the tally that was sent last; 0: none was */
    int64_t counts_at;            /* monotonic ms, from which counts may be sent again */
    struct list link;             // feed_aside::watches
    struct list beside;           // window::watches
};

/* Takes over the caller's reference of the query. limit 0: counts alone. NULL: too many queries
 * are watched in the environment. The first frame comes at the end of the turn. */
struct watch *watch_open(struct feed *feed, int64_t id, struct query *query, uint32_t limit,
                         bool counts);

void watch_close(struct watch *watch);

/* NULL: the feed has none of this id. */
struct watch *watch_find(struct feed *feed, int64_t id);

/* Sends what there is to send, while the socket takes it. */
void watch_visit_all(struct feed *feed);
