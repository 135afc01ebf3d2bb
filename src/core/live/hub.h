/* hub.h - topics of one environment: which feeds and windows a run's change concerns.
 *
 * A topic is a kind and a name: all runs, a tag, a batch or one run; for live lists also a
 * task or a queue. A topic has up to three things:
 *
 * - listeners, the subscriptions of clients that follow it (feed.h);
 * - places of windows, the live lists and counts that its runs may be part of (windows.h);
 * - an order, its runs by last change, if it is a tag, a batch or all (order.h).
 *
 *   change ──► topics of the run ─┬─► marked ──► end of turn: the flush visits listeners
 *                                 └─► windows: evaluated at once
 *
 * To visit a listener is to let its feed, the connection of that client, send what is due.
 * The flush visits feeds in rounds until the turn's time is used up, and continues in the
 * next turn. Publishing a change only marks topics: it does no I/O and makes no callbacks,
 * so no listener can leave meanwhile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/table.h"
#include "core/changes/order.h"
#include "core/live/certainty.h"
#include "core/model/filter.h"

struct environment;
struct feed;
struct subscription;
struct tracked;
struct update;

struct topic {
    enum topic_kind kind;
    bool marked;        /* one of its runs has changed since its listeners' visits began */
    bool begun;         /* its listeners are being visited, maybe over several turns */
    struct bytes *name; /* NULL for TOPIC_ALL */
    uint64_t listened_since; /* it has had a listener for every change after this seq */
    /* Empty except for TOPIC_ALL, TOPIC_TAG and TOPIC_BATCH. */
    struct order order;
    struct list places;     // window_place::link
    struct list kept_views; // kept_view::topic_link; listeners that have left a moment ago
    struct list link;       // round::topics
    struct subscription **listeners; /* subscription::place is the index of each */
    uint32_t listener_count, listener_capacity;
    uint32_t next; /* while begun: index of the next listener to visit; otherwise 0 */
};

/* Topics of one run: all, its batch, and its tags. A stored run may have more tags than
 * clients may give it. */
enum { RUN_TOPICS_MAX = 2 + 2 * RUN_TAGS_MAX };

/* The topics whose orders contain a run. A change looks them up once, for everything that
 * it does. */
struct run_topics {
    struct topic *list[RUN_TOPICS_MAX];
    uint32_t count;
};

/* Feeds to be visited, once each: the listeners of topics, then feeds that are in line
 * themselves. */
struct round {
    struct list topics; // topic::link
    struct list feeds;  // feed::visit
};

struct hub {
    struct environment *env;
    struct table topics[TOPIC_KINDS]; /* by name; the one of TOPIC_ALL is `all` */
    struct topic all;
    struct round round; /* what is left of the current round */
    struct round later; /* feeds that were added since it began */
    struct list held;   // feed::visit; until the windows have evaluated every change
    struct flusher flusher;
    /* runs_last: after the flusher that sends the frames of this turn */
    struct flusher noter;
    struct certainty_waiter silent; /* linked while a flush waits for the end of a doubt */
    /* At the end of the last flush, every feed that was not lagging had everything up to
     * this seq. */
    uint64_t flushed;
    uint32_t feeds;
    /* Times of the oldest change not flushed yet; monotonic µs. */
    int64_t marked_us; /* when it was applied; 0: every change was flushed */
    int64_t synced_us; /* when the store had synced it to disk */
};

void hub_init(struct hub *hub, struct environment *env);
void hub_finish(struct hub *hub);

/* Returns NULL if there is no such topic. A run's own topic exists only while it has
 * listeners. */
struct topic *hub_find(struct hub *hub, enum topic_kind kind, struct slice name);

/* Returns the topic, and creates it if it is missing. Call hub_release when done with
 * it. */
struct topic *hub_topic(struct hub *hub, enum topic_kind kind, struct bytes *name);

/* Returns true if a feed follows the topic, or recently did and left a kept view
 * (kept_view.h). */
static inline bool topic_has_listeners(const struct topic *topic)
{
    return !list_empty(&topic->kept_views) || topic->listener_count;
}

/* Add and remove a listener. Both may be called while the others are being visited. */
void topic_add_listener(struct topic *topic, struct subscription *sub);
void topic_drop_listener(struct topic *topic, struct subscription *sub);

/* Frees the topic if it has no runs, listeners or windows. */
void hub_release(struct hub *hub, struct topic *topic);

/* The same after a listener has left the topic. */
void hub_leave(struct hub *hub, struct topic *topic);

/* hub_remove_run removes the run from the orders of its topics; its rev and tags must still
 * be the old ones. hub_append_run adds it at their ends, and sets topics to those that it
 * is in. hub_insert_run, for use at startup, adds it anywhere. */
void hub_remove_run(struct hub *hub, struct tracked *run);
void hub_append_run(struct hub *hub, struct tracked *run, struct run_topics *topics);
void hub_insert_run(struct hub *hub, struct tracked *run);

/* Returns true if one of the run's topics, or the run itself, has a listener. */
bool hub_has_listeners(const struct hub *hub, const struct tracked *run,
                       const struct run_topics *topics);

/* Marks the topics of the run, so that their listeners are visited at the end of the
 * turn. */
void hub_mark_run(struct hub *hub, const struct tracked *run,
                  const struct run_topics *topics);

/* Puts the feed in line for a visit. */
void hub_visit(struct hub *hub, struct feed *feed);

/* Puts the feed in line for a visit once the windows have evaluated every change. Requires that
 * they have not, and that the feed is not in line. */
void hub_hold(struct hub *hub, struct feed *feed);

/* All runs have left memory, and later ones may have lower revs: forgets positions, and has
 * every listener visited, as each has to begin again. */
void hub_begin_again(struct hub *hub);

/* Returns true if no feed is left to visit. */
bool hub_is_through(const struct hub *hub);
