/* ends.h - tells those outside of the engine who wait for the end of a run, or for a batch to
 * be sealed. */
#pragma once

#include "core/engine/engine.h"

/* One who waits: embedded by the owner. */
struct end_watch {
    /* The end has come: at the end of a turn, once. It may free the memory it is in. */
    void (*fn)(struct end_watch *watch);
    struct end_point *point; /* NULL: it waits for nothing */
    struct list link;        // end_point::watches
};

/* Waits for a thing of the environment, of which this is the id. That it is not over yet is
 * looked up afterwards: then nothing is missed. The environment is held by the caller. */
void ends_watch(struct engine *engine, const struct environment *env, struct slice id,
                struct end_watch *watch);

/* Harmless for a zeroed watch, and for one that was told. */
void ends_unwatch(struct engine *engine, struct end_watch *watch);

/* It is over: whoever waits for it is told. */
void ends_tell(struct engine *engine, const struct environment *env, struct slice id);

/* ---- the engine's ---- */

void ends_init(struct engine *engine);
void ends_finish(struct engine *engine);
