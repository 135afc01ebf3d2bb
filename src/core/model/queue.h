/* queue.h - chooses which run is next.
 *
 * An environment has queues, and a queue has one subqueue for each concurrencyKey. A
 * subqueue is a heap of items ordered by position, then by id. A run is offered when its
 * environment, its queue (not paused) and its subqueue have a free slot. A queue may limit
 * each of its subqueues, and all of them together.
 *
 * Queues that can offer a run take turns, and so do the subqueues of a queue: neither a
 * long queue nor a high priority makes others wait for more than a round. Within a round,
 * the oldest position comes first.
 *
 *   queues ──► queue "task/a" (limit 3, paused?) ──► subqueue key "x": heap, running
 *                                                └─► subqueue key "":  heap, running
 *
 * Not every worker may have every item. An item waits for one audience, and a caller that
 * requests the next item names its audience. A subqueue has a heap for each audience; they
 * share its slots.
 *
 * An item whose slot was given back while it waited for something else may need a slot
 * again. AUDIENCE_RESUMED is for these items. They do not count as waiting, and even a
 * paused queue offers them: pausing stops no run that has begun.
 *
 * Pure: this code does not know runs. Items are embedded in their owners. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/quota.h"
#include "base/ranking.h"
#include "base/slice.h"
#include "base/table.h"

enum {
    QUEUES_CONFIGURED_MAX = 10000, /* queues with settings in one environment */
    PROJECT_QUEUES_CONFIGURED_MAX = 4 * QUEUES_CONFIGURED_MAX,
    AUDIENCE_RESUMED = 63, /* above those that callers set */
};

struct subqueue;
struct queue;
struct subqueue_share;

/* An item that waits (place > 0), has a slot (running), or neither. Embed it. */
struct queue_item {
    struct subqueue *subqueue;    /* NULL: neither */
    struct subqueue_share *share; /* of the subqueue; while it waits */
    int64_t position;             /* Unix ms */
    uint32_t place;               /* index in the share's heap, from 1 */
    uint16_t audience; /* set by the caller before queues_wait; below AUDIENCE_RESUMED */
    bool running;
    struct list in_line; // queues::line, while it waits
};

typedef struct slice queue_item_id_fn(const struct queue_item *item);

/* A heap of items: those waiting in one subqueue for one audience, or the heads of these
 * heaps. */
struct queue_heap {
    struct queue_node *nodes;
    uint32_t count, capacity;
    uint64_t round; /* that of the last node served */
};

struct queues {
    struct table by_name;
    struct ranking names; /* the same queues, ordered by name */
    /* Counts queues with settings; outer: that of the project, or NULL. */
    struct quota configured;
    struct queue_heap *ready; /* by audience: heads of the queues that may offer an item */
    uint32_t *waiting_for;    /* by audience: how many items wait */
    uint32_t audiences;
    uint32_t limit; /* slots of the environment */
    uint32_t running, waiting;
    struct list line;     // queue_item::in_line; all that wait, who waits longest first
    queue_item_id_fn *id; /* breaks ties of position */
};

/* Settings made by users, in addition to the limit that the worker's version declares. */
struct queue_settings {
    bool paused;
    bool overridden;
    uint32_t override;     /* replaces the declared limit */
    int64_t overridden_at; /* Unix ms */
    uint32_t version;      /* of the document with these settings; 0: none */
};

/* The state of a queue for display, all its subqueues together. */
struct queue_figures {
    uint32_t running, waiting;
    uint32_t limit; /* the effective one; UINT32_MAX: none of its own */
    uint32_t base;  /* the limit without an override */
    uint32_t total; /* of all subqueues together; UINT32_MAX: none */
    struct queue_settings settings;
    bool known;      /* registered, configured, or in use now */
    bool registered; /* by a worker version that still exists */
};

void queues_init(struct queues *queues, uint32_t limit, queue_item_id_fn *id);

/* Requires that every item has left. */
void queues_finish(struct queues *queues);

/* Adds a waiting item to its subqueue, or moves it there. */
void queues_wait(struct queues *queues, struct queue_item *item, struct slice queue,
                 struct slice key, int64_t position);

/* Adds an item that needs a slot again, whatever its audience was. */
void queues_wait_again(struct queues *queues, struct queue_item *item, struct slice queue,
                       struct slice key, int64_t position);

/* Returns true if an item with this queue and key would get a slot now. */
bool queues_has_slot(const struct queues *queues, struct slice queue, struct slice key);

/* Counts the item as having a slot, whatever the limits are: it had one before a restart,
 * or was chosen just now. */
void queues_run(struct queues *queues, struct queue_item *item, struct slice queue,
                struct slice key);

/* The item no longer waits, and its slot is free again. Does nothing if it had neither. */
void queues_leave(struct queues *queues, struct queue_item *item);

/* Returns the next item that may run and waits for this audience, or NULL. The next of
 * AUDIENCE_RESUMED goes before those of all others. */
struct queue_item *queues_next(const struct queues *queues, uint32_t audience);

/* Returns how many items wait for this audience, whatever holds them. */
static inline uint32_t queues_waiting_for(const struct queues *queues, uint32_t audience)
{
    return audience < queues->audiences ? queues->waiting_for[audience] : 0;
}

/* Returns the item that has waited longest, even if it may not run; NULL: none is
 * waiting. */
const struct queue_item *queues_oldest(const struct queues *queues);

/* The same for one queue, searched among the `most` items that have waited longest. Also
 * returns NULL if none of these is in the queue. */
const struct queue_item *queues_oldest_of(const struct queues *queues, struct slice queue,
                                          uint32_t most);

/* Obstacles between a waiting item and a slot, apart from the limit of the environment. */
struct queue_standing {
    bool paused;
    uint32_t limit, running; /* slots of its subqueue; UINT32_MAX: no limit of its own */
    uint32_t total, total_running; /* the same for all subqueues of its queue */
    uint32_t ahead; /* items of its audience before it in its subqueue; at most `most` */
};
struct queue_standing queues_standing(const struct queues *queues,
                                      const struct queue_item *item, uint32_t most);

/* A worker version has registered the queue with this limit for each subqueue. UINT32_MAX:
 * only the environment's limit counts. 0 blocks the queue. Items running above a lowered
 * limit continue. */
void queues_set_limit(struct queues *queues, struct slice queue, uint32_t limit);

/* Makes another registered version's limit the effective one. Does nothing if the queue is
 * not registered. */
void queues_change_limit(struct queues *queues, struct slice queue, uint32_t limit);

/* Sets how many slots all subqueues have together; UINT32_MAX: as many as the environment.
 * Does nothing if the queue is not registered. */
void queues_set_total(struct queues *queues, struct slice queue, uint32_t total);

/* A worker version has registered the queue without a limit: its limit does not change. */
void queues_register(struct queues *queues, struct slice queue);

/* A version that had registered the queue was removed. The declared limit goes with the
 * last one, and the queue stays only while something needs it. */
void queues_forget_limit(struct queues *queues, struct slice queue);

/* Sets the settings. A queue that is neither paused nor overridden stays only while
 * something needs it. */
void queues_configure(struct queues *queues, struct slice queue,
                      const struct queue_settings *settings);
struct queue_figures queues_figures(const struct queues *queues, struct slice queue);

/* Returns true while a worker version has registered the queue. */
static inline bool queues_is_registered(const struct queues *queues, struct slice queue)
{
    return queues_figures(queues, queue).registered;
}

/* Returns the name at this place in alphabetical order, from 0; absent after the last.
 * Borrowed until the queues change. */
struct slice queues_name_at(const struct queues *queues, uint64_t place);
static inline uint32_t queues_count(const struct queues *queues)
{
    return ranking_count(&queues->names);
}
