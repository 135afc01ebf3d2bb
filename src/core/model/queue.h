/* queue.h - which run is next.
 *
 * An environment has queues; a queue has one lane per concurrencyKey. A lane is a
 * heap of items by position, then id. A run is offered when its
 * environment, its queue (not paused) and its lane have a free slot.
 *
 * Of all queues that can offer one each gets its turn, and so does each lane of a queue:
 * neither a long queue nor a high priority makes others wait for more than a round. In a
 * round the oldest position is first.
 *
 *   queues ──► queue "task/a" (limit 3, paused?) ──► lane key "x": heap, running
 *                                                └─► lane key "":  heap, running
 *
 * Not every worker may have every item: an item waits for an audience, and who asks names
 * the one that it belongs to. A lane has a heap for each; slots are common to all.
 *
 * Pure: it knows no run; items are embedded in what they belong to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/ranking.h"
#include "base/room.h"
#include "base/slice.h"
#include "base/table.h"

enum {
    QUEUES_CONFIGURED_MAX = 10000, /* queues with settings, of one environment */
    PROJECT_QUEUES_CONFIGURED_MAX = 4 * QUEUES_CONFIGURED_MAX,
};

struct lane;
struct queue;
struct lane_share;

/* Embedded. Waiting (place > 0) or holding a slot (running) or neither. */
struct queue_item {
    struct lane *lane;        /* NULL: neither */
    struct lane_share *share; /* of the lane, while it waits */
    int64_t position;         /* Unix ms */
    uint32_t place;           /* in the share's heap, from 1 */
    uint16_t audience;        /* the caller's, before queues_wait: small, from 0 */
    bool running;
    struct list in_line; // queues::line, while it waits
};

typedef struct slice queue_item_id_fn(const struct queue_item *item);

/* A heap of items: those that wait in one lane for one audience, or heads of such. */
struct queue_heap {
    struct queue_node *nodes;
    uint32_t count, capacity;
    uint64_t round; /* of the node that was served last */
};

struct queues {
    struct table by_name;
    struct ranking names;   /* the same, in the order of their names */
    struct room configured; /* queues with settings; outer: that of the project, or NULL */
    struct queue_heap *ready; /* by audience: heads of the queues that may offer one */
    uint32_t *waiting_for;    /* by audience: how many items wait for it */
    uint32_t audiences;
    uint32_t limit; /* of the environment */
    uint32_t running, waiting;
    struct list line;     // queue_item::in_line; all that wait, who waits longest first
    queue_item_id_fn *id; /* breaks ties of position */
};

/* What users set, beyond the limit that the worker's version brings along. */
struct queue_settings {
    bool paused;
    bool overridden;
    uint32_t override;     /* the limit instead of its own */
    int64_t overridden_at; /* Unix ms */
    uint32_t version;      /* of the document that says so; 0: there is none */
};

/* What a queue shows, all its lanes together. */
struct queue_figures {
    uint32_t running, waiting;
    uint32_t limit; /* that counts; UINT32_MAX: none of its own */
    uint32_t base;  /* without an override */
    struct queue_settings settings;
    bool known;      /* registered, configured, or in use now */
    bool registered; /* by a worker version that is not forgotten */
};

void queues_init(struct queues *queues, uint32_t limit, queue_item_id_fn *id);

/* Every item has left. */
void queues_finish(struct queues *queues);

/* Puts a waiting item into its lane, or moves it there. */
void queues_wait(struct queues *queues, struct queue_item *item, struct slice queue,
                 struct slice key, int64_t position);

/* Counts the item as holding a slot, whatever the limits say (it was taken before a
 * restart, or has just been chosen). */
void queues_run(struct queues *queues, struct queue_item *item, struct slice queue,
                struct slice key);

/* Leaves: no longer waiting, slot given back. Harmless when it was neither. */
void queues_leave(struct queues *queues, struct queue_item *item);

/* The next item that may run and waits for this audience; NULL when there is none. */
struct queue_item *queues_next(const struct queues *queues, uint32_t audience);

/* How many items wait for this audience, whatever holds them. */
static inline uint32_t queues_waiting_for(const struct queues *queues, uint32_t audience)
{
    return audience < queues->audiences ? queues->waiting_for[audience] : 0;
}

/* The item that has waited for longest, whatever holds it; NULL when none waits. */
const struct queue_item *queues_oldest(const struct queues *queues);

/* The same of one queue, looked for among the `most` items that have waited for longest; NULL
 * also when it is none of them. */
const struct queue_item *queues_oldest_of(const struct queues *queues, struct slice queue,
                                          uint32_t most);

/* What stands between a waiting item and a slot, but the limit of the environment. */
struct queue_standing {
    bool paused;
    uint32_t limit, running; /* of its lane; UINT32_MAX: no limit of its own */
    uint32_t ahead; /* items before it in its lane, for the same audience; at most `most` */
};
struct queue_standing queues_standing(const struct queues *queues,
                                      const struct queue_item *item, uint32_t most);

/* A worker version has registered the queue with this limit of each lane. UINT32_MAX: none of
 * its own, the environment's counts. 0 blocks. What runs above a lowered limit goes on. */
void queues_set_limit(struct queues *queues, struct slice queue, uint32_t limit);

/* Of the limits that versions have registered the queue with, another one counts than that of
 * the last. Nothing happens if none has. */
void queues_change_limit(struct queues *queues, struct slice queue, uint32_t limit);

/* A worker version has registered the queue without a limit: the limit stays as it is. */
void queues_register(struct queues *queues, struct slice queue);

/* One of the versions that have registered the queue is forgotten: with the last one its limit
 * goes, and the queue stays only as long as something needs it. */
void queues_forget_limit(struct queues *queues, struct slice queue);

/* Neither paused nor overridden: the queue stays only as long as something needs it. */
void queues_configure(struct queues *queues, struct slice queue,
                      const struct queue_settings *settings);
struct queue_figures queues_figures(const struct queues *queues, struct slice queue);

/* Returns true while a worker version that is not forgotten has registered the queue. */
static inline bool queues_is_registered(const struct queues *queues, struct slice queue)
{
    return queues_figures(queues, queue).registered;
}

/* By name, from 0 on; absent behind the last. Borrowed until the queues change. */
struct slice queues_name_at(const struct queues *queues, uint64_t place);
static inline uint32_t queues_count(const struct queues *queues)
{
    return ranking_count(&queues->names);
}
