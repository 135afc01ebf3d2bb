/* queue_parts.h - queues, limits, subqueues and sets of limits, and what they consist of.
 *
 *   queue ── offers (by audience) ── classes (by set of limits) ── shares ── items
 *   queue ── subqueues (by concurrencyKey) ── the same shares
 *   group of limits ── group offers (by audience) ── the same classes
 *   limit ── subqueues: its pools
 *   share ── lanes (by the keys that gates name) ── items
 *
 * A gate stands where a limit with a name does. Its pool is a need of
 *
 *   the share   for the item's own key: as many pools as subqueues
 *   the group   for a key that is pinned: few pools, that items of many subqueues need
 *   a lane      for another key: many pools, that few items need each
 *
 * Lanes take no turns: of those with a free slot, the one with the oldest item comes first. So a
 * key with many items delays another key by older items, and never by younger ones. An item
 * whose pools are hardly ever free at the same time has slots kept (queue_reserve.h), in a lane
 * as well.
 *
 * Whatever becomes full or has a slot again visits few of the others. A key that turns
 * out to be needed in many subqueues or lanes (queues::lanes_max) is pinned for further items.
 *
 * Shared by queue.c and the files queue_*.c only. */
#pragma once

#include "base/buf.h"
#include "base/timers.h"
#include "core/queues/queue.h"

/* A limit that a group needs, and perhaps one pool of it. */
struct group_need {
    struct list link; // queue::groups, of the limit
    struct slot_group *group;
    struct queue *limit;
    struct subqueue *pool; /* NULL: the pool depends on the item */
    struct list in_pool;   // subqueue::groups, of the pool
};

/* Limits that runs of many queues need together. The limit of a task alone is in no group:
 * it belongs to the task's class. So a limit that is full concerns few groups, however many
 * queues have items that need it. */
struct slot_group {
    uint32_t refs;      /* of sets and group offers, and how often it was counted */
    bool is_crowded;    /* it is there because a pool had many users */
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

/* The items of a class that wait in a subqueue. If their gates name keys, the share has
 * lanes, which are shares as well: `items` then has the heads of the lanes that have a free
 * slot in the pools of these keys. */
struct subqueue_share {
    struct slot_class *class;
    struct subqueue *subqueue;
    struct subqueue_share *within; /* of a lane; otherwise NULL */
    struct slot_demand *demand;    /* of its items; NULL: none, or it has lanes */
    struct table *lanes;           /* by text of the demand; NULL: none */
    struct queue_heap items;
    uint32_t ready_place; /* index in slot_class::ready; of a lane, in the share's items */
    uint32_t passes;      /* how often its head was passed over (queue_reserve.h) */
    uint64_t keeps;       /* number of its reservation; 0: none; never of one with lanes */
    struct list keeping;  // queues::keepers, while it keeps
    struct list link;     // subqueue::shares; not of a lane
    uint32_t count;
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

/* Limits and gates of which an item needs a slot each, in addition to the slot of its
 * queue; apart from keys that only lanes know. */
struct slot_set {
    uint32_t refs; /* of demands and classes */
    uint32_t count;
    struct queue *limits[SLOT_SET_MAX]; /* each once */
    uint32_t own; /* how many of them, the first, are limits of the task alone */
    uint32_t keyed_count;
    struct queue *keyed[SLOT_SET_MAX]; /* those whose pool has the item's own key */
    struct slot_group *group;          /* of all but the limits of the task alone */
    size_t text_len;
    char text[];
};

/* A gate that names a key. */
struct keyed_gate {
    struct queue *queue;
    struct slice key; /* in slot_demand::needs */
    bool is_pinned;
};

enum {
    WIDE_MAX = 16,    /* demands whose keys are pinned because they had many lanes */
    CROWDED_MAX = 64, /* groups with a key that is pinned because its pool had many users */
};

/* The needs of an item. */
struct slot_demand {
    uint32_t refs;  /* of items */
    uint32_t lanes; /* that it has now */
    bool is_wide;
    struct slot_set *set;
    uint32_t count, lane_count; /* lane_count: of gates that are not pinned */
    struct keyed_gate gates[SLOT_SET_MAX];
    struct buf keys;
    size_t text_len;
    char text[];
};

/* The tokens of a queue or limit, or of a key of it, while there are not all of them. */
struct rate_bucket {
    struct queues *queues;
    struct queue *queue;
    struct subqueue *subqueue; /* NULL: of all keys together */
    int64_t full_at;           /* monotonic ns */
    struct timer timer;        /* in queue_rates::next: when it has a token, or is full */
    bool is_dry;               /* without a token */
};

/* All buckets. */
struct queue_rates {
    struct timers next; // rate_bucket::timer
    uint32_t kind;      /* of its timers */
    int64_t now_ms;     /* of the last refill; monotonic */
    uint32_t keys;      /* how many of them are of keys */
    bool is_full;       /* there are too many of those */
};

/* A concurrencyKey of a queue, or of a limit: then it is a pool. */
struct subqueue {
    struct queue *queue;
    struct list shares; // subqueue_share::link; each has an item
    struct list users;  // share_need::link; shares and lanes that need a slot of this
    uint32_t user_count;
    struct list groups; // group_need::in_pool; groups that need one
    uint32_t running;
    uint32_t waiting; /* items that need a slot of this pool, but no key that is pinned */
    uint32_t in_line; /* items that wait in this subqueue, but not to resume */
    struct subqueue_share *keeper; /* a slot is kept for its head; NULL: for none */
    bool is_held;                  /* an item has just left it, and may return */
    uint32_t override; /* of a limit: replaces its limit for this key; UINT32_MAX: none */
    int64_t override_until;     /* Unix ms */
    struct list busy;           // queue::busy
    struct list link;           // queue::fresh or stale
    struct rate_bucket *bucket; /* NULL: it is full, or there is no rate */
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
    struct list groups;  // group_need::link; of another limit, or gate: groups that need it
    struct list busy;    // subqueue::busy; subqueues with something running
    struct list fresh;   // subqueue::link; all but those that are stale
    struct list stale; // subqueue::link; to be visited, as their limit or rate has changed
    bool is_stale;     /* some are left: no key may start or resume anything now */
    bool has_stale_rate;  /* the visits also bring buckets up to date */
    struct list in_stale; // queues::stale, while is_stale
    struct ranked place;  /* in queue_names::names */
    uint32_t running, waiting;
    uint32_t uses;                 /* how many sets and groups name it */
    uint32_t base;                 /* the limit of a subqueue as registered */
    uint32_t total;                /* the limit of all subqueues together, as registered */
    struct subqueue_share *keeper; /* a slot is kept for its head; NULL: for none */
    struct queue_settings settings;
    struct rate_bucket *bucket; /* of all keys together; NULL as above */
    bool is_closed;             /* no key may start anything now */
    /* How many worker versions declare it; the queue stays while above 0. */
    uint32_t registered;
    size_t name_len;
    char name[];
};

/* ---- free slots ---- */

static inline uint32_t queue_limit_of(const struct queue *queue)
{
    uint32_t limit = queue->settings.overridden ? queue->settings.override : queue->base;
    return queue->settings.singleton && limit > 1 ? 1 : limit;
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

/* Requires a keeper. Returns true if each of its subqueues or pools of the queue has room. */
bool queue_keeper_has_room(const struct queue *queue);

/* Returns how many slots are kept from the share, which may be NULL. While a pool of the
 * keeper is full, none is: when that has a free slot, so have all keys together. */
static inline uint32_t queue_kept_from(const struct queue *queue,
                                       const struct subqueue_share *share)
{
    return queue->keeper && queue->keeper != share && queue_keeper_has_room(queue);
}

/* The same for the slots of one key. */
static inline uint32_t subqueue_kept_from(const struct subqueue *subqueue,
                                          const struct subqueue_share *share)
{
    return subqueue->keeper && subqueue->keeper != share;
}

static inline bool share_resumes(const struct subqueue_share *share)
{
    return share->class->offer->audience == AUDIENCE_RESUMED;
}

/* Returns true if the share needs a token of this bucket, which has none. NULL needs none. */
static inline bool subqueue_is_dry(const struct subqueue *subqueue,
                                   const struct subqueue_share *share)
{
    return share && subqueue->bucket && subqueue->bucket->is_dry && !share_resumes(share);
}

/* Returns true if the queue or limit has a free slot for some key of the share's class. */
static inline bool queue_is_open(const struct queue *queue,
                                 const struct subqueue_share *share)
{
    return !queue->is_stale &&
           queue->running + queue_kept_from(queue, share) < queue_total_of(queue) &&
           ((!queue->settings.paused && !queue->is_closed) || share_resumes(share));
}

/* Returns true if the pool has a free slot for the share. */
static inline bool pool_is_open(const struct subqueue *pool,
                                const struct subqueue_share *share)
{
    return pool->running + subqueue_kept_from(pool, share) < subqueue_limit(pool) &&
           !subqueue_is_dry(pool, share);
}

static inline bool group_need_is_open(const struct group_need *need,
                                      const struct subqueue_share *share)
{
    return queue_is_open(need->limit, share) &&
           (!need->pool || pool_is_open(need->pool, share));
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

/* Also frees the subqueue if nothing else needs it. */
void rate_bucket_free(struct queues *queues, struct rate_bucket *bucket);

/* Frees all buckets. */
void queue_rates_finish(struct queues *queues);

/* ---- sets of limits ---- */

static inline uint32_t slot_set_count(const struct slot_set *set)
{
    return set ? set->count : 0;
}

struct slice slot_demand_key(const void *value);
struct slice slot_set_key(const void *value);
struct slice slot_group_key(const void *value);

/* Returns how many limits of the set belong to the class. */
static inline uint32_t slot_set_own(const struct slot_set *set)
{
    return set ? set->own : 0;
}

static inline struct slot_set *slot_demand_set(const struct slot_demand *demand)
{
    return demand ? demand->set : NULL;
}

/* Returns its text; that of a wide one is the text of the demand with many lanes. */
static inline struct slice slot_demand_text(const struct slot_demand *demand)
{
    return slice_from((struct slice){ demand->text, demand->text_len }, demand->is_wide);
}

/* Returns true if the text names anything. Texts without a quote do not: [], [null], [{}]. */
bool slot_demand_is_stated(struct slice text);

/* Returns the demand with this text (queue_needs.h); NULL: nothing is needed. Makes a missing
 * one. Adds a reference. */
struct slot_demand *slot_demand_named(struct queues *queues, struct slice text);

/* As limits_count_set, however many sets count. Returns NULL if the text names none. */
struct slot_group *slot_group_counted(struct queues *queues, struct slice limits);

/* Accepts NULL. */
void slot_demand_unref(struct queues *queues, struct slot_demand *demand);

/* Sets pools to those of which an item of this subqueue needs a slot in addition to the
 * subqueue's, each once. Returns how many. Makes those that are missing. */
uint32_t slot_demand_pools(const struct slot_demand *demand, const struct subqueue *own,
                           struct subqueue *pools[SLOT_SET_MAX]);

/* ---- shares ---- */

struct subqueue_share *subqueue_share_for(struct queues *queues, struct subqueue *subqueue,
                                          uint32_t audience, struct slot_demand *demand);
/* Requires that the share is in no heap. */
void subqueue_share_free_if_empty(struct queues *queues, struct subqueue_share *share);

/* ---- queue.c ---- */

/* The slots of all keys of a queue together, or its settings, have changed. */
void queue_refresh_offers(struct queues *queues, struct queue *queue);

/* The slots of a subqueue or pool have changed. */
void queue_refresh_pool(struct queues *queues, struct subqueue *pool);

/* The settings of a queue or limit have changed: if a slot of it is kept, another one may be
 * free now, or none may be kept any longer. */
void queue_check_keeper(struct queues *queues, const struct queue *queue);

/* Settings of a queue or limit have changed, apart from its limit for each key. */
void queue_refresh_total(struct queues *queues, struct queue *queue);

/* ---- queue_rates.c ---- */

/* The settings of the queue were others before. Requires that queue_refresh_all is called
 * next. */
void queue_change_rates(struct queues *queues, struct queue *queue,
                        const struct queue_settings *was);

/* The rate of the bucket has changed. Frees the bucket if the rate was taken away, and its
 * subqueue if nothing else needs that. Otherwise queues_refill brings it up to date, that of
 * all keys first. Accepts NULL. */
void rate_bucket_change(struct queues *queues, struct rate_bucket *bucket);

/* ---- queue_stale.c ---- */

/* The settings of a queue or limit have changed. was: its limit for each key before. Visits
 * keys; queues_refresh_stale visits those that are left. */
void queue_refresh_all(struct queues *queues, struct queue *queue, uint32_t was);
