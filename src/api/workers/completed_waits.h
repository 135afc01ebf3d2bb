/* completed_waits.h - the waits of a run that are complete, with their outputs, as workers read
 * them.
 *
 *   the run's waits ─► each: the other run, or the token ─► one array
 *
 * The waits are read where they are, when they are asked for: nothing is copied into
 * the run that waits. OUTPUTS_MAX bytes of outputs go into the array; what does not fit is
 * named there, and fetched by the task that reads it (packet_name_output). */
#pragma once

#include "api/request/call.h"
#include "core/engine/waits.h"

enum { OUTPUTS_MAX = 1 << 20, ERRORS_MAX = 8 << 20 };

struct completed_waits {
    struct api_call *call;
    struct run run; /* a copy: the caller's to read until completed_waits_finish */
    struct buf out; /* of completedWaitpoints, with its brackets; out */
    void (*done)(struct completed_waits *waits, enum err status);

    size_t outputs, errors; /* bytes of them so far */
    struct scan_members left;
    struct wait wait; /* being looked at */
    struct deferred deferred;
    struct run_read read;
    struct store_load load;
};

/* Of those waits that are complete; done comes later. */
void completed_waits_begin(struct completed_waits *waits, struct api_call *call,
                           const struct run *run,
                           void (*done)(struct completed_waits *waits, enum err status));
void completed_waits_finish(struct completed_waits *waits);
