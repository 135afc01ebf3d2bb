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
 * An item may also need a slot of limits and gates: of each of up to SLOT_SET_MAX, all at
 * the same time. A limit is like a queue in which nothing waits: it limits each
 * concurrencyKey (a pool), and all of them together. A gate is another queue, and its pool
 * the subqueue of a key, the item's or one that the gate names. An item that runs has its
 * slots until it leaves. It counts once in each pool and once in each queue or limit,
 * whatever leads to it.
 *
 *   item ──► slot of its queue ──► slot of each limit and gate ──► slot of the environment
 *
 * An item that others pass over again and again has slots kept for it (queue_reserve.h).
 *
 * Pure: this code does not know runs. Items are embedded in what they belong to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/quota.h"
#include "base/slice.h"
#include "base/table.h"
#include "core/queues/queue_heap.h"
#include "core/queues/ranking.h"
#include "core/queues/rate.h"
#include "core/queues/singleton.h"

enum {
    QUEUES_CONFIGURED_MAX = 10000, /* queues with settings in one environment */
    PROJECT_QUEUES_CONFIGURED_MAX = 4 * QUEUES_CONFIGURED_MAX,
    AUDIENCE_RESUMED = 63, /* above those that callers set */
    /* Limits and gates of an item: its task's own limit, two with names, three gates. */
    SLOT_SET_MAX = 6,
    SLOT_SETS_MAX =
        1000, /* different sets that count in an environment (limits_count_set) */
    RESERVE_PASSES = 64, /* an item that was passed over as often has slots kept */
    VISITS_MAX = 256,    /* keys visited at once when their limit or rate has changed */
};

struct subqueue;
struct subqueue_share;
struct slot_demand;
struct slot_group;

/* Where an item waits or runs. */
struct queue_seat {
    struct slice queue, key;
    struct slice limits; /* and gates (queue_needs.h); absent: none */
};

/* An item that waits (place > 0), has a slot (running), or neither. Embed it. */
struct queue_item {
    struct subqueue *subqueue; /* NULL: neither */
    union {
        struct subqueue_share *share; /* of the subqueue; while it waits */
        struct slot_demand *demand;   /* limits and gates that it holds; NULL: none */
        struct slot_group *counted;   /* while it rests (queues_rest); NULL: none */
    };
    int64_t position;  /* Unix ms */
    uint32_t place;    /* index in the share's heap, from 1 */
    uint16_t audience; /* set by the caller before queues_wait; below AUDIENCE_RESUMED */
    bool running;
    struct list in_line; // queues::line, queues::resuming or queues::executing
};

/* Heads that take turns. */
struct queue_turns {
    struct queue_heap heap;
    uint64_t round; /* of the head that was served last */
};

/* Queues, or limits, by name. */
struct queue_names {
    bool are_limits;
    uint32_t overrides; /* of keys of limits */
    struct table by_name;
    struct ranking names; /* the same, ordered by name */
    /* Counts those with settings; outer: that of the project, or NULL. */
    struct quota configured;
};

struct queues {
    struct queue_names own, limits;
    struct table demands;   /* of struct slot_demand, by text */
    uint32_t wide, crowded; /* demands and groups that are (queue_parts.h) */
    uint32_t lanes_max;
    struct table sets;         /* of struct slot_set, by text */
    struct table groups;       /* of struct slot_group, by text */
    struct queue_turns *ready; /* by audience: heads of groups that may offer an item */
    uint32_t *waiting_for;     /* by audience: how many items wait */
    uint32_t audiences;
    uint32_t limit; /* slots of the environment */
    uint32_t running, waiting;
    /* All items, those that have been in the line longest first. */
    struct list line;          // queue_item::in_line; they wait
    struct list resuming;      // queue_item::in_line; they wait for AUDIENCE_RESUMED
    struct list executing;     // queue_item::in_line; they have their slots
    struct list keepers;       // subqueue_share::keeping; those for which slots are kept
    uint64_t reservations;     /* how often slots began to be kept */
    uint32_t passes_max;       /* after that many passes, slots are kept; RESERVE_PASSES */
    uint32_t sets_max;         /* SLOT_SETS_MAX */
    queue_item_id_fn *id;      /* breaks ties of position */
    struct queue_rates *rates; /* of queue_rates.c; NULL: no bucket was needed yet */
    struct list stale;         // queue::in_stale; for queues_refresh_stale
    uint32_t visits_max;       /* keys that it visits; VISITS_MAX */
};

/* Settings made by users, in addition to the limit that the worker's version declares. */
struct queue_settings {
    bool paused;
    bool overridden;
    uint32_t override;     /* replaces the declared limit */
    int64_t overridden_at; /* Unix ms */
    uint32_t version;      /* of the document with these settings; 0: none */
    bool total_overridden;
    uint32_t total_override;     /* replaces the declared limit of all keys together */
    int64_t total_overridden_at; /* Unix ms */
    enum singleton singleton;    /* of a queue; its subqueues then have at most one slot */
    /* How many items may start per period: all together, and of each key. */
    struct rate total_rate, key_rate;
};

/* The state of a queue for display, all its subqueues together. */
struct queue_figures {
    uint32_t running, waiting;
    uint32_t reserved;   /* free slots that are kept for an item; not in running */
    uint32_t limit;      /* the effective one; UINT32_MAX: none of its own */
    uint32_t base;       /* the limit without an override */
    uint32_t total;      /* of all subqueues together; UINT32_MAX: none */
    uint32_t total_base; /* the same without an override */
    struct queue_settings settings;
    bool known;      /* registered, configured, or in use now */
    bool registered; /* by a worker version that still exists */
};

void queues_init(struct queues *queues, uint32_t limit, queue_item_id_fn *id);

/* Requires that every item has left. */
void queues_finish(struct queues *queues);

/* Adds a waiting item to its subqueue, or moves it there. */
void queues_wait(struct queues *queues, struct queue_item *item, struct queue_seat seat,
                 int64_t position);

/* Adds an item that needs a slot again, whatever its audience was. */
void queues_wait_again(struct queues *queues, struct queue_item *item,
                       struct queue_seat seat, int64_t position);

/* Returns true if an item with this seat would get its slots now. */
bool queues_has_slot(struct queues *queues, struct queue_seat seat);

/* Counts the item as having its slots, whatever the limits are: it had them before a
 * restart, or was chosen just now. */
void queues_run(struct queues *queues, struct queue_item *item, struct queue_seat seat);

/* The item no longer waits, and its slots are free again. Does nothing if it had neither. */
void queues_leave(struct queues *queues, struct queue_item *item);

/* The same for an item that will wait or run later. Until then its limits and gates count
 * (limits_count_set). */
void queues_rest(struct queues *queues, struct queue_item *item, struct slice limits);

/* Returns the next item that may run and waits for this audience, or NULL. The next of
 * AUDIENCE_RESUMED goes before those of all others. */
struct queue_item *queues_next(const struct queues *queues, uint32_t audience);

/* Returns the number of the reservation if slots are kept for the item; otherwise 0. */
uint64_t queues_keeps_for(const struct queue_item *item);

/* Keeps no more slots for items that could have run by now, but that no caller took. Returns
 * true if that freed any slot. */
bool queues_free_untaken(struct queues *queues);

/* Another limit or rate for each key concerns all keys of a queue or limit, perhaps very
 * many. A change visits the first VISITS_MAX of them. While some are left, the queue or limit
 * gives no slot. Visits as many more, well below 1 ms; returns true if some are left. */
bool queues_refresh_stale(struct queues *queues);

/* Returns true while queues_refresh_stale has anything to do. */
static inline bool queues_are_stale(const struct queues *queues)
{
    return !list_empty(&queues->stale);
}

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

/* An override of a limit for one key, until a time. */
struct limit_override {
    struct slice key;
    uint32_t per_key; /* UINT32_MAX: the key has the limit of all keys */
    int64_t until;    /* Unix ms */
};

/* A limit or gate that has no free slot for an item. */
struct limit_standing {
    struct slice name; /* absent: every one of the item has a slot */
    bool is_gate;      /* name is that of a queue */
    struct slice key;  /* of the pool; empty: no key */
    bool paused;
    bool is_total; /* of all keys together; else of the item's key */
    uint32_t limit, running;
    uint32_t reserved; /* slots kept for another item; not in running */
};

/* Obstacles between a waiting item and a slot, apart from the limit of the environment. */
struct queue_standing {
    bool paused;
    bool singleton;          /* has a strategy */
    uint32_t limit, running; /* slots of its subqueue; UINT32_MAX: no limit of its own */
    uint32_t total, total_running;     /* the same for all subqueues of its queue */
    uint32_t reserved, total_reserved; /* slots of these kept for another item */
    uint32_t ahead; /* items with its limits before it in its subqueue; at most `most` */
    struct limit_standing of_limit; /* of a limit or gate: a paused one, of 0, or full */
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

/* Sets the settings. A queue that has none (not paused, not overridden, no singleton
 * strategy, no rate) stays only while something needs it. After a change of a rate, call
 * queues_refill. */
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
    return ranking_count(&queues->own.names);
}

/* running, waiting and limit are those of the key. waiting: items of the queue itself. */
struct queue_figures queues_key_figures(const struct queues *queues, struct slice queue,
                                        struct slice key);

/* Writes up to `most` keys of the queue that have something running, borrowed. Returns how
 * many. */
size_t queues_keys(const struct queues *queues, struct slice queue, struct slice *keys,
                   size_t most);

/* Writes up to `most` items of a line of the queues that need a slot of the queue, or hold
 * one: its own items, and those whose gate it is. In the order of the line. Searches the first
 * `among` items only. Returns how many. */
size_t queues_items(const struct queues *queues, const struct list *line,
                    struct slice queue, const struct queue_item **items, size_t most,
                    size_t among);

/* ---- limits ---- */

/* Returns true if a limit may have this name: 1 to 128 letters, digits, - and _. */
bool limits_is_name(struct slice name);

/* Counts a set of limits and gates (queue_needs.h) until limits_discount_set, even if no item
 * needs it. Returns false, and counts nothing, if SLOT_SETS_MAX different ones count already.
 * Gates that differ in a key of very many are one set, and so are limits of tasks alone. */
bool limits_count_set(struct queues *queues, struct slice limits,
                      struct slot_group **counted);

/* Accepts NULL. */
void limits_discount_set(struct queues *queues, struct slot_group *counted);

/* A worker version has registered the limit; limits_change sets its values. */
void limits_register(struct queues *queues, struct slice limit);

/* Makes another registered version's values the effective ones, apart from overrides: for
 * each key, and for all keys together. UINT32_MAX: none. Does nothing if the limit is not
 * registered. Items that run above a lowered limit continue. */
void limits_change(struct queues *queues, struct slice limit, uint32_t per_key,
                   uint32_t total);

/* A version that had registered the limit was removed. With the last one the declared
 * values go. */
void limits_forget(struct queues *queues, struct slice limit);

/* Sets the settings of a limit, as queues_configure does. A paused limit gives no slot to
 * items that have not run yet. */
void limits_configure(struct queues *queues, struct slice limit,
                      const struct queue_settings *settings);

/* Replaces the limit for one key. */
void limits_override_key(struct queues *queues, struct slice limit,
                         const struct limit_override *override);

/* Returns the next override of a key in out, its key borrowed. at: 0 before the first. */
bool limits_next_override(const struct queues *queues, struct slice limit, size_t *at,
                          struct limit_override *out);

/* Takes back the overrides of keys that have ended at now_ms. Returns when the next one
 * ends, Unix ms; INT64_MAX: none does. */
int64_t limits_end_overrides(struct queues *queues, int64_t now_ms);

struct queue_figures limits_figures(const struct queues *queues, struct slice limit);
/* running, waiting and limit are those of the key; its override, if it has one, is in
 * out. */
struct queue_figures limits_key_figures(const struct queues *queues, struct slice limit,
                                        struct slice key, struct limit_override *out);

/* Writes up to `most` keys of the limit, borrowed: those with an override, then others that
 * have something running. Returns how many. */
size_t limits_keys(const struct queues *queues, struct slice limit, struct slice *keys,
                   size_t most);

/* Writes up to `most` items of a line of the queues that need a slot of the limit, or hold
 * it, in the order of the line. Searches the first `among` items only. Returns how many. */
size_t limits_items(const struct queues *queues, const struct list *line,
                    struct slice limit, const struct queue_item **items, size_t most,
                    size_t among);

/* As queues_name_at and queues_count. */
struct slice limits_name_at(const struct queues *queues, uint64_t place);
static inline uint32_t limits_count(const struct queues *queues)
{
    return ranking_count(&queues->limits.names);
}
