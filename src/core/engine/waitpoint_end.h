/* waitpoint_end.h - completes a token: stores its output and resumes waiting runs. */
#pragma once

#include "core/engine/engine.h"
#include "core/model/waitpoint.h"

struct waitpoint_end {
    struct engine *engine;
    struct environment *env;
    struct store_load load;
    struct change change;
    struct document_write write;
    struct bytes *output;       /* as received; NULL: none */
    struct waitpoint waitpoint; /* the token, with its output as it is stored */
    size_t taken;               /* bytes of the output escaped so far */
    struct deferred deferred;
    bool was_over; /* for done: the token was already completed, this output is discarded */
    void (*done)(struct waitpoint_end *op, enum err status);
};

/* Outputs up to this many bytes are stored even above the quota, because the token itself
 * was counted. */
enum { WAITPOINT_OUTPUT_SMALL = 1024 };

/* Returns ERR_QUOTA if the output is longer than that and exceeds the project's quota. */
enum err waitpoint_end_check(const struct environment *env, struct slice output,
                             struct failure *why);

/* output: JSON, kept byte for byte; absent: none. done gets OK even if the token was
 * already completed (was_over), or ERR_NOT_FOUND. */
void waitpoint_end_begin(struct engine *engine, struct environment *env, struct slice id,
                         struct slice output, struct waitpoint_end *op,
                         void (*done)(struct waitpoint_end *op, enum err status));
