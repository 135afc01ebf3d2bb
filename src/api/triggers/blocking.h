/* blocking.h - a run that waits for what it has triggered. */
#pragma once

#include "api/request/call.h"
#include "core/engine/waits.h"

struct blocking {
    struct block block; /* first */
    struct wait *waits;
    char (*names)[ID_MAX]; /* that stand for items which became errors and have no run */
    /* OK also when the parent does not execute any more: then nobody waits. */
    void (*done)(struct blocking *blocking, enum err status);
};

/* The parent waits for one run. child is the caller's until done. */
void blocking_begin_run(struct blocking *blocking, struct api_call *call,
                        struct slice parent, struct slice child,
                        void (*done)(struct blocking *blocking, enum err status));

/* It waits for all of these, an array that becomes the operation's; done and the names are set
 * before. */
void blocking_begin(struct blocking *blocking, struct api_call *call, struct slice parent,
                    struct wait *waits, size_t count);
