/* window.h - the newest runs that match a query, kept current; live lists are cut from it.
 *
 *   newest id ─┬─ entry  entry  entry … ─┬─ … ─┬─ older matching runs, if `more`:
 *              │ a watch with limit 100  │     │ only the store has them
 *              └──────── at most WINDOW_KEPT ──┘
 *
 * All watches (watch.h) with equal queries share one window. A run enters when it matches.
 * It leaves when its status no longer matches, when a newer run takes its place, when the
 * start of the query's period moves past it, or when retention removes it. Each change of
 * the set is a step. An entry knows the step at which it entered, and the last departures
 * are kept with theirs. So the window can show the set as it was at an earlier step; a
 * client that was complete then needs just the difference (watch.c). A client costs one
 * step, not a queue.
 *
 * An entry has only a few facts. Its run is in memory or in the store, found by its id. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/live/tally.h"
#include "core/model/query.h"
#include "runcast/run.h"

enum {
    WINDOW_KEPT = 256,      /* most entries */
    WINDOW_REFILL = 216,    /* with fewer entries, older runs are read from the store */
    WINDOW_LIMIT_MAX = 200, /* most rows of one watch */
    WINDOW_DEPARTED = 256,  /* departures that are kept */
};

struct environment;
struct window_load;

struct window_entry {
    char id[RUN_ID_MAX];
    uint32_t version;
    uint64_t rev;     /* of the run's last change */
    uint64_t entered; /* the step at which it entered */
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
    /* Entries are in any order. `order` has the index of each: those of the entries, newest
     * id first, then the `capacity - count` unused ones. So a run that enters or leaves
     * moves indexes, not entries. */
    struct window_entry *entries;
    uint16_t *order;
    uint32_t count, capacity;
    struct window_departure *departed; /* a ring; NULL: nothing has left */
    uint64_t departures;               /* how many have left so far */
    uint64_t forgotten; /* departures up to this step may be missing from the ring */
    uint64_t step;      /* rises whenever the set, or a run in it, changes */
    uint64_t evaluated; /* seq of the last change that was evaluated */
    bool listed;        /* the entries have been read */
    bool more;          /* older runs that match may be missing from the entries */
    /* The store could not find the runs within a read's time limit. */
    bool refused;
    bool marked;              /* its watches are in line for a visit */
    uint32_t lists;           /* watches that show rows, not only counts */
    struct window_load *load; /* a read of the store in flight; NULL: none */
    struct tally tally;
    struct list watches;           // watch::window_link
    struct window_place *standing; /* used by windows.c: its places at topics */
    size_t standing_count;
};

/* A run of the window as it was at a step. */
struct window_member {
    const char *id;
    uint32_t version;
    const struct window_entry *entry; /* NULL: it has left since */
};

/* Takes ownership of the caller's reference to the query. */
struct window *window_create(struct environment *env, struct query *query);
/* Requires that no watch is left. */
void window_destroy(struct window *window);

/* Updates the window for a change of a run; wanted: the query matches it. Ignores a change
 * that the entry of the run includes already. Returns true if the set, or a run in it, has
 * changed. */
bool window_evaluate(struct window *window, const struct run *run, bool wanted);

/* Removes the run of this id. Does nothing if it is not in the set. */
void window_take(struct window *window, const char *id);

/* Removes ended runs that last changed before `floor`, and runs created before `from`.
 * Returns true if one was removed. */
bool window_cut(struct window *window, int64_t floor, int64_t from);

/* Sets members to the newest `limit` runs as they were at the step, newest first, and
 * returns their number. Requires a step not below `forgotten`, and space for
 * WINDOW_LIMIT_MAX members. */
uint32_t window_at(const struct window *window, uint64_t step, uint32_t limit,
                   struct window_member *members);

/* Forgets all runs and departures, which are of an earlier memory. */
void window_forget(struct window *window);

/* Returns true if the newest `limit` runs are not all known: they are being read from the
 * store. */
static inline bool window_is_short(const struct window *window, uint32_t limit)
{
    return !window->listed || (window->more && window->count < limit);
}

/* Adds a run that was read from the store. */
void window_add(struct window *window, const struct run *run);

/* Returns the entry at this index, 0 for the newest. Valid until the set changes. */
static inline struct window_entry *window_entry(const struct window *window, uint32_t at)
{
    return &window->entries[window->order[at]];
}

/* Returns the index of the entry of this id, or where it would be: entries before it are
 * newer. */
uint32_t window_find(const struct window *window, const char *id);
