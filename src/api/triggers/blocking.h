/* blocking.h - makes a parent run wait for the runs that it has triggered. */
#pragma once

#include "api/request/call.h"
#include "core/engine/waits.h"

struct blocking {
    struct block block; /* first */
    struct wait *waits;
    char (*names)[ID_MAX]; /* ids for items that are errors and have no run; or NULL */
    /* Called once. OK also if the parent no longer executes: then no run waits. */
    void (*done)(struct blocking *blocking, enum err status);
};

/* Makes the parent wait for one run. The caller keeps child valid until done. */
void blocking_begin_run(struct blocking *blocking, struct api_call *call,
                        struct slice parent, struct slice child,
                        void (*done)(struct blocking *blocking, enum err status));

/* Makes the parent wait for all of these. Takes ownership of waits, an array, and of
 * blocking->names. The caller sets names and done before. */
void blocking_begin(struct blocking *blocking, struct api_call *call, struct slice parent,
                    struct wait *waits, size_t count);
