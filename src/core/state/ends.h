/* ends.h - reports ended runs and sealed batches to code outside the engine. */
#pragma once

#include "core/state/state.h"

/* One subscription; embedded by its owner. */
struct end_watch {
    /* Called once, at the end of a turn, after the run or batch has ended. May free the
     * watch. */
    void (*fn)(struct end_watch *watch);
    struct end_point *point; /* NULL: not watching */
    struct list link;        // end_point::watches
};

/* Watches for the end of the run or batch with this id. Check after this call whether it
 * has ended already, so that no end is missed. The caller holds the environment. */
void ends_watch(struct engine *engine, const struct environment *env, struct slice id,
                struct end_watch *watch);

/* Ignores a zeroed watch, and one whose fn was called. */
void ends_unwatch(struct engine *engine, struct end_watch *watch);

/* The run or batch has ended: schedules the calls of its watches. */
void ends_notify(struct engine *engine, const struct environment *env, struct slice id);

/* ---- the engine's ---- */

void ends_init(struct engine *engine);
void ends_finish(struct engine *engine);
