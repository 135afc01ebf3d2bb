/* run_read.h - reads a run of an environment from memory, or from the store.
 *
 * Callers that read the same run at the same time share one read of the store. */
#pragma once

#include "core/live/environment.h"

struct run_read {
    struct environment *env;
    struct bytes *id; /* private to run_read.c, like the next two */
    struct deferred deferred;
    struct list link; // run_load::reads
    void (*done)(struct run_read *read, enum err status);
    const struct run *run; /* borrowed until done returns */
    bool loaded;           /* from the store: only this read's callers have its texts */
};

/* Calls done later, never from inside this call, wherever the run is. */
void run_read_begin(struct environment *env, struct slice run_id, struct run_read *read,
                    void (*done)(struct run_read *read, enum err status));

/* Initializes an environment's table of reads from the store. */
void run_loads_init(struct table *loads);

/* No later read joins one in progress: memory was cleared, so its result may be of before. */
void run_loads_forget(struct table *loads);
