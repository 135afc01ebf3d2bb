/* run_read.h - a run of an environment from memory, or else from the store.
 *
 * Many who read one run at once get it from one read of the store. */
#pragma once

#include "core/live/environment.h"

struct run_read {
    struct environment *env;
    struct bytes *id; /* run_read.c's, as the two behind it are */
    struct deferred deferred;
    struct list link; // run_load::reads
    void (*done)(struct run_read *read, enum err status);
    const struct run *run; /* borrowed until done returns */
    bool loaded;           /* from the store: only those who read it have its texts */
};

/* done comes later, wherever the run is. */
void run_read_begin(struct environment *env, struct slice run_id, struct run_read *read,
                    void (*done)(struct run_read *read, enum err status));

/* The table of what an environment reads from the store, empty. */
void run_loads_init(struct table *loads);
