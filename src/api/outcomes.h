/* outcomes.h - what a blocked run has waited for, with what came out of it, as workers read
 * it (worker-protocol §1.6).
 *
 *   the run's waits ─► each: the other run, or the token ─► one array
 *
 * The outcomes are read where they are, when they are asked for: nothing is copied into
 * the run that waits. */
#pragma once

#include "api/api.h"
#include "engine/waits.h"

struct outcomes {
    struct api_call *call;
    struct run run; /* a copy: the caller's to read until outcomes_finish */
    struct buf out; /* of completedWaitpoints, with its brackets; out */
    void (*done)(struct outcomes *outcomes, enum err status);

    struct scan_members left;
    struct wait wait; /* being looked at */
    struct deferred deferred;
    struct run_read read;
    struct store_load load;
};

/* Of those waits that are complete; done comes later. */
void outcomes_begin(struct outcomes *outcomes, struct api_call *call, const struct run *run,
                    void (*done)(struct outcomes *outcomes, enum err status));
void outcomes_finish(struct outcomes *outcomes);
