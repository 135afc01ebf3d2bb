/* queue_parts.h - queues, limits, subqueues and sets of limits, and what they consist of.
 *
 *   queue ── offers (by audience) ── classes (by set of limits) ── shares ── items
 *   queue ── subqueues (by concurrencyKey) ── the same shares
 *   group of limits ── group offers (by audience) ── the same classes
 *   limit ── subqueues: its pools
 *
 * Shared by queue.c, queue_parts.c and queue_limits.c only. */
#pragma once

#include "core/model/queue.h"

/* A limit that a group needs. */
struct group_need {
    struct list link; // queue::groups, of the limit
    struct slot_group *group;
    struct queue *limit;
};

/* Limits that runs of many queues need together. The limit of a task alone is in no group:
 * it belongs to the task's class. So a limit that is full concerns few groups, however many
 * queues have items that need it. */
struct slot_group {
    uint32_t refs;      /* of sets and group offers */
    struct list offers; // group_offer::link
    uint32_t count;
    struct group_need needs[SLOT_SET_MAX];
    size_t text_len;
    char text[];
};

/* The classes of a group for one audience. */
struct group_offer {
    struct slot_group *group;
    uint32_t audience;
    struct queue_heap ready; /* heads of classes that have a free slot, but for the group */
    uint32_t ready_place;    /* index in queues::ready */
    uint32_t classes;
    struct list link; // slot_group::offers
};

/* A limit of its own that a class needs. */
struct class_need {
    struct list link; // queue::classes, of the limit
    struct slot_class *class;
    struct queue *limit;
};

/* The items of an offer that need the same limits. */
struct slot_class {
    struct offer *offer;
    struct group_offer *among;
    struct slot_set *set;    /* NULL: they need none */
    struct queue_heap ready; /* heads of the shares that have a free slot everywhere */
    uint32_t ready_place;    /* index in group_offer::ready */
    uint32_t shares;
    struct list link; // offer::classes
    struct class_need needs[];
};

/* A pool that a share needs; in subqueue::users of the pool. */
struct share_need {
    struct list link; // subqueue::users
    struct subqueue_share *share;
    struct subqueue *pool;
};

/* The items of a class that wait in a subqueue. */
struct subqueue_share {
    struct slot_class *class;
    struct subqueue *subqueue;
    struct queue_heap items;
    uint32_t ready_place; /* index in slot_class::ready */
    struct list link;     // subqueue::shares
    struct share_need needs[];
};

/* The items that a queue has for one audience. */
struct offer {
    struct queue *queue;
    uint32_t audience;
    uint64_t round;      /* of the share that was served last */
    uint64_t turn;       /* round of the queue among all queues */
    uint32_t heads;      /* how many of its classes are in a heap */
    struct list link;    // queue::offers
    struct list classes; // slot_class::link
};

/* Limits of which an item needs a slot each, in addition to the slot of its queue. */
struct slot_set {
    uint32_t refs; /* of items and classes */
    uint32_t count;
    struct queue *limits[SLOT_SET_MAX];
    uint32_t own; /* how many of them, the first, are limits of the task alone */
    struct slot_group *group; /* of the others */
    size_t text_len;
    char text[];
};

/* A concurrencyKey of a queue, or of a limit: then it is a pool. */
struct subqueue {
    struct queue *queue;
    struct list shares; // subqueue_share::link; each has an item
    struct list users;  // share_need::link; of a limit: shares that need a slot of this
    uint32_t running;
    uint32_t override; /* of a limit: replaces its limit for this key; UINT32_MAX: none */
    int64_t override_until; /* Unix ms */
    struct list busy;       // queue::busy
    size_t key_len;
    char key[];
};

/* A queue, or a limit: items hold slots of it, and wait in none of its subqueues. */
struct queue {
    bool is_limit;
    struct table subqueues;
    struct table overridden; /* of a limit: pools with an override; also in subqueues */
    struct list offers;      // offer::link
    struct list classes; // class_need::link; of the limit of a task: classes that need it
    struct list groups;  // group_need::link; of another limit: groups that need it
    struct list busy;    // subqueue::busy; subqueues with something running
    struct ranked place; /* in queue_names::names */
    uint32_t running, waiting;
    uint32_t uses;  /* of a limit: how many slot sets name it */
    uint32_t base;  /* the limit of a subqueue as registered */
    uint32_t total; /* the limit of all subqueues together, as registered */
    struct queue_settings settings;
    /* How many worker versions declare it; the queue stays while above 0. */
    uint32_t registered;
    size_t name_len;
    char name[];
};

/* ---- free slots ---- */

static inline uint32_t queue_limit_of(const struct queue *queue)
{
    return queue->settings.overridden ? queue->settings.override : queue->base;
}

static inline uint32_t queue_total_of(const struct queue *queue)
{
    return queue->settings.total_overridden ? queue->settings.total_override : queue->total;
}

static inline uint32_t subqueue_limit(const struct subqueue *subqueue)
{
    return subqueue->override != UINT32_MAX ? subqueue->override
                                            : queue_limit_of(subqueue->queue);
}

/* Returns true if the queue or limit has a free slot for some key. */
static inline bool queue_is_open(const struct queue *queue, uint32_t audience)
{
    return queue->running < queue_total_of(queue) &&
           (!queue->settings.paused || audience == AUDIENCE_RESUMED);
}

/* ---- queues, limits and subqueues ---- */

/* Without a concurrencyKey, the name of the subqueue is empty. */
static inline struct slice queue_name_present(struct slice name)
{
    return name.ptr ? name : SLICE("");
}

struct slice queue_key(const void *value);
struct slice subqueue_key(const void *value);
struct slice queue_place_key(const struct ranked *place);
struct queue_names *queue_names_of(struct queues *queues, const struct queue *queue);
bool queue_is_configured(const struct queue *queue);

/* Returns NULL if there is none. */
struct queue *queue_find(const struct queue_names *names, struct slice name);

/* These make what is missing. */
struct queue *queue_named(struct queue_names *names, struct slice name);
struct subqueue *queue_subqueue(struct queue *queue, struct slice key);

/* Requires that it has no subqueues. */
void queue_free(struct queue *queue);
void queue_free_if_unused(struct queues *queues, struct queue *queue);
void subqueue_free_if_empty(struct queues *queues, struct subqueue *subqueue);

/* ---- sets of limits ---- */

static inline uint32_t slot_set_count(const struct slot_set *set)
{
    return set ? set->count : 0;
}

struct slice slot_set_key(const void *value);
struct slice slot_group_key(const void *value);

/* Returns how many limits of the set belong to the class. */
static inline uint32_t slot_set_own(const struct slot_set *set)
{
    return set ? set->own : 0;
}

/* Returns the set with this text, a JSON array of names; NULL if it is absent. Makes a
 * missing one, without a reference. */
struct slot_set *slot_set_named(struct queues *queues, struct slice text);

/* These accept NULL. */
struct slot_set *slot_set_ref(struct slot_set *set);
void slot_set_unref(struct queues *queues, struct slot_set *set);

/* ---- shares ---- */

struct subqueue_share *subqueue_share_for(struct queues *queues, struct subqueue *subqueue,
                                          uint32_t audience, struct slot_set *set);
/* Requires that the share is in no heap. */
void subqueue_share_free_if_empty(struct queues *queues, struct subqueue_share *share);

/* ---- queue.c ---- */

/* The slots of all keys of a queue together, or its settings, have changed. */
void queue_refresh_offers(struct queues *queues, struct queue *queue);

/* The slots of a pool have changed. */
void queue_refresh_pool(struct queues *queues, struct subqueue *pool);

/* The settings of a queue or limit have changed. was: its limit for each key before. */
void queue_refresh_all(struct queues *queues, struct queue *queue, uint32_t was);
