/* hub.h - who wants to hear about what, in one environment.
 *
 * A topic is (kind, name): a tag, a batch, all, or one run; for live lists also a task or a queue.
 * Tags, batches and all keep their runs ordered by last change; every topic keeps its listeners,
 * and the places of the windows that stand at it (windows.h).
 *
 *   change ──► topics of the run ─┬─► marked ──► end of turn: the flush visits listeners
 *                                 └─► windows: judged
 *
 * Publishing does no I/O and calls nobody back, so nobody can leave while it walks. The
 * flush visits feeds in rounds until the turn's time is over, and goes on in the next. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/table.h"
#include "core/live/certainty.h"
#include "core/live/order.h"
#include "core/model/filter.h"

struct environment;
struct feed;
struct subscription;
struct tracked;
struct update;

struct topic {
    enum topic_kind kind;
    bool marked; /* a run of it has changed since its listeners were begun to be visited */
    bool begun;  /* they are being visited, in turns maybe */
    struct bytes *name;              /* NULL: of TOPIC_ALL */
    uint64_t heard_from;             /* somebody listened to every change after this one */
    struct order order;              /* of TOPIC_ALL, TOPIC_TAG and TOPIC_BATCH */
    struct list places;              // window_place::link
    struct list echoes;              // echo::beside; listeners that have left a moment ago
    struct list link;                // round::topics
    struct subscription **listeners; /* each knows its place */
    uint32_t listener_count, listener_capacity;
    uint32_t next; /* when begun: the place of who is visited next; else 0 */
};

/* Of a run: all, its batch, and its tags, of which a stored run may have more than a client may
 * give it. */
enum { RUN_TOPICS_MAX = 2 + 2 * RUN_TAGS_MAX };

/* The topics in whose orders a run stands. A change finds them once, for all that it does. */
struct run_topics {
    struct topic *list[RUN_TOPICS_MAX];
    uint32_t count;
};

/* Who is visited, once each: the listeners of topics, then feeds in line for themselves. */
struct round {
    struct list topics; // topic::link
    struct list feeds;  // feed::visit
};

struct hub {
    struct environment *env;
    struct table topics[TOPIC_KINDS]; /* by name; none of TOPIC_ALL */
    struct topic all;
    struct round round; /* what is left of it */
    struct round later; /* what has come since it began */
    struct flusher flusher;
    struct flusher noter; /* late: after the flusher that sends the frames of this turn */
    struct certainty_waiter silent; /* linked while a flush waits for the end of a doubt */
    uint64_t flushed; /* when the last flush was through: every feed that was not late
                         had everything up to here */
    uint32_t feeds;
    /* Of the oldest change that is not flushed yet; monotonic µs. */
    int64_t marked_us; /* when it was applied; 0: there is none */
    int64_t synced_us; /* when it was on the disk */
};

void hub_init(struct hub *hub, struct environment *env);
void hub_finish(struct hub *hub);

/* NULL: there is none. One of a run id is there only while somebody listens. */
struct topic *hub_find(struct hub *hub, enum topic_kind kind, struct slice name);

/* The topic, made if there is none. */
struct topic *hub_topic(struct hub *hub, enum topic_kind kind, struct bytes *name);

/* A feed follows the topic, or one did a moment ago and has left an echo. */
static inline bool topic_is_heard(const struct topic *topic)
{
    return !list_empty(&topic->echoes) || topic->listener_count;
}

/* A listener comes, or leaves, also while the others are being visited. */
void topic_add_listener(struct topic *topic, struct subscription *sub);
void topic_drop_listener(struct topic *topic, struct subscription *sub);

/* Gone when it has neither runs nor listeners nor windows. */
void hub_release(struct hub *hub, struct topic *topic);

/* The same behind a listener that has left it. */
void hub_leave(struct hub *hub, struct topic *topic);

/* Takes the run out of the orders of its topics (its rev and tags as they were), or into
 * them at the end, or anywhere (at start). topics: those in which it stands then. */
void hub_remove_run(struct hub *hub, struct tracked *run);
void hub_append_run(struct hub *hub, struct tracked *run, struct run_topics *topics);
void hub_insert_run(struct hub *hub, struct tracked *run);

/* True when somebody listens to one of the run's topics, or to the run. */
bool hub_has_listeners(const struct hub *hub, const struct tracked *run,
                       const struct run_topics *topics);

/* Marks the topics of the run: their listeners are visited at the end of the turn. */
void hub_mark_run(struct hub *hub, const struct tracked *run,
                  const struct run_topics *topics);

/* Puts the feed in line for a visit. */
void hub_visit(struct hub *hub, struct feed *feed);

/* Nobody is to be visited. */
bool hub_is_through(const struct hub *hub);
