/* feed.h - one client's position in the changes of its environment.
 *
 * A feed has two numbers for its live subscriptions: seen (every run whose last change is
 * <= seen has been sent) and base (the client was complete at base). A new subscription
 * catches up with two numbers of its own and joins the live ones at a moment when they are
 * complete. No feed has a queue: what a client gets is found from its position, either in
 * the ring of recent updates or by walking the orders.
 *
 * The way out is a struct feed_ops: WebSocket now, other transports the same. */
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
    /* Sends whole frames in order; false: bytes are unsent now. Frees nothing. */
    bool (*send)(struct feed *feed, struct bytes *const *frames, size_t count);
    /* Bytes are unsent: do not visit. feed_drained follows. */
    bool (*busy)(struct feed *feed);
    /* The feed cannot go on (too far behind for what memory holds): close, the client
     * comes back with its position. Not called from inside a flush of others. */
    void (*lost)(struct feed *feed);
    /* Frames are sent soon: brings into the caches what sending them looks at, beside the feed itself.
     * NULL: nothing. */
    void (*fetch)(const struct feed *feed);
    /* One send may take a good part of a turn: the flush asks for the time before each. */
    bool heavy;
};

/* Where a subscription stands that catches up. */
struct own_position {
    uint64_t seen, base;
    struct ahead *ahead; /* of its walk */
};

struct subscription {
    struct feed *feed;
    struct list link; // feed::live or feed::catching
    struct filter filter;
    struct own_position *own; /* NULL: it is live, and where the feed is */
    struct topic *topic;
    int64_t id;     /* the client's */
    uint32_t place; /* in topic::listeners */
};

/* What few feeds need: a pace, a wait for room, or live lists. */
struct feed_aside {
    struct feed *feed;
    struct timer timer;  /* of every_ms, and of a wait for room */
    int64_t every_ms;    /* least time between patches; 0: none */
    int64_t next_at;     /* monotonic ms of the next patch, with every_ms */
    int64_t watches_at;  /* the same of what watches send */
    struct list watches; // watch::link
    uint16_t watch_count;
};

struct feed {
    /* All that a visit looks at, side by side. */
    struct list visit; // round::feeds; linked while in line
    const struct feed_ops *ops;
    struct environment *env;
    struct view *view;
    uint64_t seen, base;
    struct list live;     // subscription::link
    struct list catching; // subscription::link
    uint16_t subscriptions;
    bool late : 1;         /* not complete when last visited, or not visited */
    bool cramped : 1;      /* did not go on for want of room */
    bool is_behind : 1;    /* for the log: late, and its socket has been full */
    uint8_t visited;       /* lower byte of env.applied at the last visit */
    uint32_t filter_bytes; /* names of all its filters, and those of its watches */

    struct feed_read *read;   /* a page of the store on its way; NULL: none */
    struct ahead *ahead;      /* of the walk of the live subscriptions */
    struct feed_aside *aside; /* NULL: it never needed one */
};

/* Made when it is first asked for. */
struct feed_aside *feed_aside(struct feed *feed);

static inline uint16_t feed_watch_count(const struct feed *feed)
{
    return feed->aside ? feed->aside->watch_count : 0;
}

/* Least time between patches in ms; 0: none. */
static inline int64_t feed_every_ms(const struct feed *feed)
{
    return feed->aside ? feed->aside->every_ms : 0;
}

/* The same, from now on. */
void feed_set_pace(struct feed *feed, int64_t every_ms);

/* Starts complete, with no subscription. The view's use is taken over. */
void feed_init(struct feed *feed, const struct feed_ops *ops, struct environment *env,
               struct view *view);

/* Leaves every topic; a read in flight finishes into nothing. */
void feed_finish(struct feed *feed);

/* Takes over the filter. from_seq and from_base are 0 for a snapshot. The first rows come
 * at the end of the turn. */
struct subscription *feed_subscribe(struct feed *feed, int64_t id, struct filter *filter,
                                    uint64_t from_seq, uint64_t from_base);

/* Live at once, from a position whose later changes are all in the ring: each comes as the
 * update it was. NULL: they are not, and the filter is still the caller's. Of a feed
 * without subscriptions. */
struct subscription *feed_follow(struct feed *feed, int64_t id, struct filter *filter,
                                 uint64_t seq);

void feed_unsubscribe(struct feed *feed, struct subscription *subscription);
struct subscription *feed_find(struct feed *feed, int64_t id);

/* The socket took everything: in line for a visit again. */
void feed_drained(struct feed *feed);

/* Sends what there is to send now: called by the flush. */
void feed_visit(struct feed *feed);

/* False: unread answers fill the room of its project. It begins nothing that may be long and
 * is visited again in a moment. */
bool feed_has_room(struct feed *feed);

/* It is visited in so many ms, if nothing else comes before. */
void feed_wait(struct feed *feed, int64_t ms);

/* Complete and in sync up to env.applied: what a ping may say. */
bool feed_in_sync(struct feed *feed);

/* Runs in memory that the filter matches; -1 when some may only be in the store or the
 * count would take too long. */
int64_t feed_count(struct environment *env, const struct filter *filter, uint64_t after);

/* It has no position of its own any more: live, it stands where the feed does. */
void subscription_drop_own(struct subscription *sub);

/* Of a filter by run: its run, if memory has it. */
static inline struct tracked *subscription_run(const struct subscription *sub)
{
    return environment_find(sub->feed->env, bytes_slice(sub->filter.name));
}
