/* window.h - the newest runs that a query wants, kept as runs change: what the live lists of
 * equal queries are cut from.
 *
 *   newest id ─┬─ entry  entry  entry … ─┬─ … ─┬─ older runs that the query wants, if
 *              │ a watch with limit 100  │     │ `more`: only the store knows which
 *              └──────── at most WINDOW_KEPT ──┘
 *
 * A query is no monotone thing here: a run leaves when its status no longer matches, when a
 * newer one takes its place, or when its time is over. Each change of the set is a step. An
 * entry knows the step at which it came, and the last departures are kept with theirs; so the
 * window as it was at an earlier step can be told, and what a client needs that was complete
 * then is the difference (watch.c). A client costs a step, no queue.
 *
 * An entry is facts alone. Its run is in memory or in the store, and is found by its id. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/live/tally.h"
#include "core/model/query.h"
#include "runcast/run.h"

enum {
    WINDOW_KEPT = 256,      /* entries */
    WINDOW_REFILL = 216,    /* with fewer of them older ones are looked for */
    WINDOW_LIMIT_MAX = 200, /* of what a client sees */
    WINDOW_DEPARTED = 256,  /* departures that are kept */
};

struct environment;
struct window_load;

struct window_entry {
    char id[RUN_ID_MAX];
    uint32_t version;
    uint64_t rev;     /* of the run's last change */
    uint64_t entered; /* the step at which it came */
    int64_t created_at, updated_at;
    bool is_final;
};

struct window_departure {
    char id[RUN_ID_MAX];
    uint32_t version;
    uint64_t entered, left; /* steps */
};

struct window {
    struct environment *env;
    struct query *query;
    /* The entries are anywhere in `entries`. order has the index of each place once: those of the
     * entries, newest id first, then the `capacity - count` free places. So a run that comes or
     * leaves moves indexes, not entries. */
    struct window_entry *entries;
    uint16_t *order;
    uint32_t count, capacity;
    struct window_departure *departed; /* a circle; NULL: nothing has left */
    uint64_t departures;               /* so many have left */
    uint64_t forgotten; /* departures up to this step may be missing in the circle */
    uint64_t step;      /* changes of the set, and of runs in it */
    uint64_t judged;    /* seq of the change that was judged last */
    bool listed;        /* the entries are known */
    bool more;          /* older runs may be wanted, which are not among the entries */
    bool refused;       /* the store does not find them in the time that a read has */
    bool marked;        /* its watches are in line for a visit */
    uint32_t lists;     /* watches that show rows, not counts alone */
    struct window_load *load; /* a read of the store on its way; NULL: none */
    struct tally tally;
    struct list watches;           // watch::beside
    struct window_place *standing; /* windows.c's: where changes find it */
    size_t standing_count;
};

/* A run of the window as it was at a step. */
struct window_member {
    const char *id;
    uint32_t version;
    const struct window_entry *entry; /* NULL: it has left since */
};

/* Takes over the caller's reference of the query. */
struct window *window_create(struct environment *env, struct query *query);
/* Nobody watches it. */
void window_destroy(struct window *window);

/* The run as it is now, and whether the query wants it: true when the set, or a run in it, is
 * another than before. */
bool window_judge(struct window *window, const struct run *run, bool wanted);

/* The run of this id is not in the set any more; harmless when it is not there. */
void window_take(struct window *window, const char *id);

/* Ended runs that were last changed before `floor` are gone, and so are those created before
 * `from`. True when one of them was an entry. */
bool window_cut(struct window *window, int64_t floor, int64_t from);

/* The newest `limit` runs as they were at the step, newest first; their number. The step is
 * not below `forgotten`. members: room for WINDOW_LIMIT_MAX. */
uint32_t window_at(const struct window *window, uint64_t step, uint32_t limit,
                   struct window_member *members);

/* The newest `limit` runs are not all known: a read of the store is on its way. */
static inline bool window_is_short(const struct window *window, uint32_t limit)
{
    return !window->listed || (window->more && window->count < limit);
}

/* Adds a run that a read of the store has found. */
void window_add(struct window *window, const struct run *run);

/* The entry at this index, counted from the newest; at < count. Valid until the set changes. */
static inline struct window_entry *window_entry(const struct window *window, uint32_t at)
{
    return &window->entries[window->order[at]];
}

/* The index of the entry of this id, or where it would be: entries before it are newer. */
uint32_t window_find(const struct window *window, const char *id);
