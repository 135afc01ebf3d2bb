/* feed.h - one client's position in the changes of its environment.
 *
 * A feed has two positions for its live subscriptions: `seen` (every run whose last change
 * is at or below it was sent) and `base` (where the client had everything). A new
 * subscription catches up with its own two positions, and joins the live ones at a moment
 * when they are complete. A feed has no queue: its position determines the rows to send,
 * either from the ring of recent updates (recent.h) or by a walk over the orders (order.h).
 *
 * A feed sends through a struct feed_ops, the same for WebSockets and every other
 * transport. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/timers.h"
#include "core/live/ahead.h"
#include "core/live/environment.h"
#include "core/model/filter.h"

struct feed;

struct feed_ops {
    /* Sends whole frames in order. Returns false if bytes are unsent now. Does not free the
     * frames. */
    bool (*send)(struct feed *feed, struct bytes *const *frames, size_t count);
    /* Returns true while bytes are unsent: the feed is not visited, and feed_drained
     * follows. */
    bool (*busy)(struct feed *feed);
    /* Called when the store failed to deliver runs to send: close the connection, and the
     * client comes back with its position. Only called during a visit to this feed. */
    void (*lost)(struct feed *feed);
    /* Memory was loaded again, so each subscription gets a snapshot. Informs the client of
     * that, before the first row is sent. Called during a visit to this feed. */
    void (*begins_again)(struct feed *feed);
    /* Called shortly before frames are sent: prefetches the memory that sending accesses,
     * apart from the feed itself. May be NULL. */
    void (*fetch)(const struct feed *feed);
    /* One send may take a good part of a turn, so the flush checks the time before each. */
    bool heavy;
};

/* The position of a subscription that catches up. */
struct own_position {
    uint64_t seen, base;
    struct ahead *ahead; /* rows sent ahead of its walk */
};

struct subscription {
    struct feed *feed;
    struct list link; // feed::live or feed::catching
    struct filter filter;
    struct own_position *own; /* NULL: it is live, at the feed's position */
    struct topic *topic;
    int64_t id;     /* chosen by the client */
    uint32_t place; /* in topic::listeners */
};

/* State that few feeds need: a pace, waits for memory, or live lists. */
struct feed_extras {
    struct feed *feed;
    struct timer timer;  /* for every_ms, and to wait for memory */
    int64_t every_ms;    /* least time between patches; 0: no limit */
    int64_t next_at;     /* monotonic ms; with every_ms, when the next patch may be sent */
    int64_t watches_at;  /* the same for messages of watches */
    struct list watches; // watch::link
    uint16_t watch_count;
    struct reach reach; /* linked while a page that was read is ahead of memory */
};

struct feed {
    /* The fields that a visit accesses, next to each other. */
    struct list visit; // round::feeds; linked while in line
    const struct feed_ops *ops;
    struct environment *env;
    struct view *view;
    uint64_t seen, base;
    struct list live;     // subscription::link
    struct list catching; // subscription::link
    uint16_t subscriptions;
    bool lagging : 1; /* incomplete at its last visit, or not visited yet */
    /* Made no progress because unsent responses take too much memory. */
    bool lacks_quota : 1;
    bool is_behind : 1; /* for the log: lagging, and its socket was full */
    /* That of env, when the feed began, or began again. A feed that cannot be visited ends long
     * before memory was loaded that often. */
    uint8_t generation : GENERATION_BITS;
    uint8_t visited;       /* lowest byte of env.applied at the last visit */
    uint32_t filter_bytes; /* of the names of all its filters, including watches */

    /* The page from the store that is being read or sent; NULL: none. */
    struct feed_read *read;
    struct ahead *ahead;        /* rows sent ahead of the walk of the live subscriptions */
    struct feed_extras *extras; /* NULL: not needed so far */
};

/* Returns feed->extras, which the first call creates. */
struct feed_extras *feed_extras(struct feed *feed);

static inline uint16_t feed_watch_count(const struct feed *feed)
{
    return feed->extras ? feed->extras->watch_count : 0;
}

/* Returns the least time between patches in ms; 0: no limit. */
static inline int64_t feed_every_ms(const struct feed *feed)
{
    return feed->extras ? feed->extras->every_ms : 0;
}

/* Sets the least time between patches. */
void feed_set_pace(struct feed *feed, int64_t every_ms);

/* The feed begins complete, without subscriptions. Takes ownership of one use of the
 * view. */
void feed_init(struct feed *feed, const struct feed_ops *ops, struct environment *env,
               struct view *view);

/* Leaves every topic. A read in flight is freed when it ends. */
void feed_finish(struct feed *feed);

/* Adds a subscription, which takes ownership of the filter. from_seq and from_base are its
 * position; 0 requests a snapshot. The first rows are sent at the end of the turn. */
struct subscription *feed_subscribe(struct feed *feed, int64_t id, struct filter *filter,
                                    uint64_t from_seq, uint64_t from_base);

/* Adds a subscription that is live at once, to a feed without subscriptions. Each change
 * after seq then arrives as a separate update. Returns NULL if the ring does not have all
 * of them; the caller then keeps the filter. Otherwise takes ownership of the filter. */
struct subscription *feed_follow(struct feed *feed, int64_t id, struct filter *filter,
                                 uint64_t seq);

void feed_unsubscribe(struct feed *feed, struct subscription *subscription);
struct subscription *feed_find(struct feed *feed, int64_t id);

/* The socket has sent everything: the feed may be visited again. */
void feed_drained(struct feed *feed);

/* Sends what is due now. Called by the hub's flush. */
void feed_visit(struct feed *feed);

/* Returns false while unsent responses take all the memory that the project may use for
 * them. The feed then begins nothing that may be long, and is visited again shortly. */
bool feed_has_quota(struct feed *feed);

/* Visits the feed in this many ms, unless it is visited earlier. */
void feed_wait(struct feed *feed, int64_t ms);

/* A page that the feed has read includes every change up to seq. Until memory has them too,
 * no subscription of the feed gets to the end of its walk: a run that has left memory may
 * have changed since the position that the page ends with. Does nothing at a gateway that
 * decides: there, a run with a commit in flight does not leave memory. */
void feed_reach(struct feed *feed, uint64_t seq);

/* Returns true until then. */
static inline bool feed_is_ahead(const struct feed *feed)
{
    return feed->extras && reach_waits(&feed->extras->reach);
}

/* Returns true if the client has everything up to env.applied, as a ping may then state. */
bool feed_in_sync(struct feed *feed);

/* Returns how many runs in memory match the filter and changed after `after`; -1 if more of
 * them may be in the store, or if counting takes too long. */
int64_t feed_count(struct environment *env, const struct filter *filter, uint64_t after);

/* Forgets the subscription's own position: it is now live, at the feed's. */
void subscription_drop_own(struct subscription *sub);

/* For a filter by run: returns its run, or NULL if it is not in memory. */
static inline struct tracked *subscription_run(const struct subscription *sub)
{
    return environment_find(sub->feed->env, bytes_slice(sub->filter.name));
}
