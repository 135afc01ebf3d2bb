/* watch.h - one client's live list: the newest runs of a query, and counts by status.
 *
 *   window ── marked ──► hub_visit ──► feed_visit ──► watch_visit_all: a frame at a time
 *
 * Watches of equal queries share a window (window.h), which has the newest runs that match.
 * A client is sent the difference between the window as it was when the client was complete
 * (`seen`) and as it is now: runs that left, entered or changed. So a slow client skips
 * states, but never the last one. A client that lags further than the window remembers
 * departures gets the whole list again. A watch ends with its connection: the client cannot
 * resume it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/live/window.h"

struct feed;
struct watch_page;

enum {
    WATCHES_MAX = 16,      /* of one feed; those for counts of subscriptions included */
    WATCH_COUNTS_MS = 250, /* least time between two messages of counts */
};

struct watch {
    int64_t id; /* chosen by the client; for counts of a subscription, the id of that */
    struct feed *feed;
    struct window *window;
    uint32_t limit; /* rows; 0: counts only */
    bool counts;
    bool fresh;    /* no row was sent yet, or the client must forget its rows */
    bool open;     /* the last frame said `more` */
    bool begun;    /* a frame of the pass was built, with the rows that left */
    uint64_t seen; /* step of the window at which the client had everything */
    uint64_t base; /* seq of the same moment */
    uint64_t pass_step, pass_seq; /* of the difference that is being sent; 0: none */
    char at[RUN_ID_MAX];          /* the last run of it that was sent; "": none yet */
    struct watch_page *page;      /* runs that are not in memory; NULL: none needed */
    uint64_t sent_step;           /* step of the tally that was sent last; 0: none */
    int64_t counts_at;            /* monotonic ms, when counts may be sent again */
    struct list link;             // feed_extras::watches
    struct list window_link;      // window::watches
};

/* Opens a watch, and takes ownership of the caller's reference to the query. limit 0:
 * counts only. Returns NULL if too many queries are watched in the environment. The first
 * frame is sent at the end of the turn. */
struct watch *watch_open(struct feed *feed, int64_t id, struct query *query, uint32_t limit,
                         bool counts);

void watch_close(struct watch *watch);

/* Memory was loaded again: forgets what was read for the watch. Its window has it begin again. */
void watch_begin_again(struct watch *watch);

/* Returns NULL if the feed has none with this id. */
struct watch *watch_find(struct feed *feed, int64_t id);

/* Sends what is due, while the socket accepts it. */
void watch_visit_all(struct feed *feed);
