/* catch_up.h - brings environments in memory to the state of the database.
 *
 *   nothing in memory, or memory cannot be used: forget all ─► unfinished runs ─┐
 *   something in memory: ───────────────────────────────────────────────────────┴─►
 *       runs changed after `applied`, page by page, to the end of the order
 *
 * A page has the newest state of each run, not its changes, so numbers are left out
 * (environment_jump). The last page ends where the database ended when it was read. A run
 * that changed after an earlier page was read is on a later page, so memory then has exactly
 * the state of that moment: the target. Until then memory has no state of any moment, and
 * nothing of it may be shown.
 *
 * Memory below the purged position is loaded anew. It may have a run as unfinished that has
 * ended meanwhile and that retention has removed, so that no page has it. */
#pragma once

#include "base/list.h"
#include "base/loop.h"
#include "core/live/environment.h"
#include "runcast/store.h"

/* An environment to be brought up. Its owner keeps it in memory until done. */
struct catch_up_item {
    struct environment *env;
    /* Memory has the state of a moment, and every unfinished run of it. false: everything is
     * loaded anew. Set to false while pages are applied by halves. */
    bool is_loaded;
    bool is_partial; /* pages were applied, but not the last one */
    uint64_t target; /* out: the position up to which memory may be ahead of the leader */
    uint64_t from;   /* catch_up.c's: applied, when its pages began to be read */
    struct list link; // catch_up::waiting or ::caught
};

struct catch_up {
    struct loop *loop;
    struct store *store;
    /* Called once, on the loop. An error: the items that were not brought up are still
     * partial, or not loaded; try again. */
    void (*done)(struct catch_up *catch_up, enum store_status status);

    struct list waiting; // catch_up_item::link
    struct list caught;  // catch_up_item::link; in this round
    struct catch_up_item *item; /* whose pages are being read and applied */
    bool is_active;
    struct store_walk walk;
    uint64_t loaded_up_to; /* while unfinished runs are loaded: the first page's seq */
    size_t taken;          /* runs of the page that were applied */
    struct deferred taking;
    uint64_t purged_at; /* environment_purge */
};

void catch_up_init(struct catch_up *catch_up, struct loop *loop, struct store *store,
                   void (*done)(struct catch_up *catch_up, enum store_status status));

/* Requires that it is not active. */
void catch_up_finish(struct catch_up *catch_up);

/* Adds an item, before or after catch_up_begin. */
void catch_up_add(struct catch_up *catch_up, struct catch_up_item *item);

/* Brings up all items that were added. Does nothing if it is active. done may be called from
 * inside only if nothing was added. */
void catch_up_begin(struct catch_up *catch_up);
