/* waitpoint_end.h - completes a token: its document gets the output, and whoever waits for
 * it goes on. */
#pragma once

#include "core/engine/engine.h"
#include "core/model/waitpoint.h"

struct waitpoint_end {
    struct engine *engine;
    struct environment *env;
    struct store_load load;
    struct change change;
    struct document_write write;
    struct bytes *output;       /* as it came; NULL: none */
    struct waitpoint waitpoint; /* that is completed, with the output as it is stored */
    size_t taken;               /* bytes of output that are in there */
    struct deferred deferred;
    bool was_over; /* for done: the output is not kept, the first one counts */
    void (*done)(struct waitpoint_end *op, enum err status);
};

/* An output of at most so many bytes goes with the token, which counted when it was made. */
enum { WAITPOINT_OUTPUT_SMALL = 1024 };

/* ERR_QUOTA: the output is longer than that, and the project may not store it. */
enum err waitpoint_end_check(const struct environment *env, struct slice output,
                             struct failure *why);

/* output: JSON, kept byte for byte; absent: none. OK also for one that is over (was_over).
 * ERR_NOT_FOUND. */
void waitpoint_end_begin(struct engine *engine, struct environment *env, struct slice id,
                         struct slice output, struct waitpoint_end *op,
                         void (*done)(struct waitpoint_end *op, enum err status));
