/* completed_waits.h - writes a run's completed waits, with their outputs, for workers.
 *
 *   the run's waits ─► each: the other run, or the token ─► one array
 *
 * The waits are read where they are, on request: nothing is copied into the waiting run.
 * The array has at most OUTPUTS_MAX bytes of outputs. Further ones are only named there,
 * and a task that reads one fetches it (packet_name_output). */
#pragma once

#include "api/request/call.h"
#include "core/engine/waits.h"

enum { OUTPUTS_MAX = 1 << 20, ERRORS_MAX = 8 << 20 };

struct completed_waits {
    struct api_call *call;
    struct run run; /* a copy, for the caller to read until completed_waits_finish */
    struct buf out; /* the array completedWaitpoints, with its brackets */
    void (*done)(struct completed_waits *waits, enum err status);

    size_t outputs, errors; /* bytes of them so far */
    struct scan_members left;
    struct wait wait; /* the current one */
    struct deferred deferred;
    struct run_read read;
    struct store_load load;
};

/* Writes the completed waits. Calls done once, later. */
void completed_waits_begin(struct completed_waits *waits, struct api_call *call,
                           const struct run *run,
                           void (*done)(struct completed_waits *waits, enum err status));
void completed_waits_finish(struct completed_waits *waits);
