/* catch_up.h - brings environments in memory to the state of the database.
 *
 *   nothing in memory, or it cannot be used: clear ─► position Q ─► unfinished runs up to Q ─┐
 *                                                                                            ▼
 *   memory has everything up to `applied`: ──► runs changed after `applied`, page by page, to
 *                                              the end ─► target
 *   those that got there: ──► counters ─► purged above where it began? once more, from nothing
 *                                     └─► landed
 *
 * A page has the newest state of each run, not its changes, so numbers are left out
 * (environment_jump). The last page ends where the database ended when it was read. A run
 * that changed after an earlier page was read is on a later page, so memory then has exactly
 * the state of that moment: the target. Until then memory has the state of no moment, and
 * nothing of it may be shown.
 *
 * Memory below the purged position is loaded again. It may have a run as unfinished that has
 * ended meanwhile and that retention has removed, so that no page has it. The counters are
 * read after the pages: a run that a page lacks for this reason is then in `purged`. */
#pragma once

#include "base/list.h"
#include "base/loop.h"
#include "core/live/environment.h"
#include "runcast/store.h"

/* An environment to be brought up. Its owner keeps it in memory until done. */
struct catch_up_item {
    struct environment *env;
    /* Memory has every unfinished run as of `applied`. false: everything is loaded. */
    bool is_loaded;
    bool is_partial; /* pages were applied, but not the last one */
    uint64_t target; /* out: memory has the database's state at this position */

    /* Private to catch_up.c. */
    uint64_t from;  /* where the pages began */
    bool continues; /* it waits for its next page, of the three below */
    enum walk_kind kind;
    uint64_t after, up_to;
    struct list link; // catch_up::waiting or ::caught
};

struct catch_up {
    struct loop *loop;
    struct store *store;
    /* Called once for each catch_up_begin, later, on the loop. After an error, items that
     * were not brought up are still partial, or not loaded. */
    void (*done)(struct catch_up *catch_up, enum store_status status);
    /* The item was brought up, while others may not have been. The caller may set it. */
    void (*landed)(struct catch_up *catch_up, struct catch_up_item *item);
    /* The runs of a page are in memory, maybe more final ones than fit in. The caller may set
     * it. */
    void (*took)(struct catch_up *catch_up, struct environment *env);
    /* Called for each run of a page, before memory takes it. The caller may set it. */
    void (*takes)(struct catch_up *catch_up, const struct run *run);

    /* Private to catch_up.c. */
    struct list waiting;        // catch_up_item::link
    struct list caught;         // catch_up_item::link; the counters are to be compared
    struct catch_up_item *item; /* being brought up */
    bool is_active, is_clearing;
    struct store_walk walk;
    size_t taken; /* runs of the page that were applied */
    struct store_recount recount;
    uint64_t purged_at;       /* environment_purge */
    struct deferred stepping; /* continues in the next time slice */
};

void catch_up_init(struct catch_up *catch_up, struct loop *loop, struct store *store,
                   void (*done)(struct catch_up *catch_up, enum store_status status));

/* Adds an item, unless it was added already. Call catch_up_begin afterwards. */
void catch_up_add(struct catch_up *catch_up, struct catch_up_item *item);

/* Brings up all items that were added. Requires that it is not active. */
void catch_up_begin(struct catch_up *catch_up);
