/* blocking.h - makes a parent run wait for runs that it has triggered. */
#pragma once

#include "api/request/call.h"
#include "core/engine/waits.h"

struct blocking {
    struct block block; /* first */
    struct wait *waits;
    char (*names)[ID_MAX]; /* ids for items that became errors instead of runs; or NULL */
    /* Called once. OK even if the parent no longer executes, so that no run waits. */
    void (*done)(struct blocking *blocking, enum err status);
};

/* Makes the parent wait for one run. The caller keeps child valid until done. */
void blocking_begin_run(struct blocking *blocking, struct api_call *call,
                        struct slice parent, struct slice child,
                        void (*done)(struct blocking *blocking, enum err status));

/* Makes the parent wait for all of these. Takes ownership of waits, an array, and of
 * blocking->names. The caller has set names and done. */
void blocking_begin(struct blocking *blocking, struct api_call *call, struct slice parent,
                    struct wait *waits, size_t count);
