/* environment_metrics.h - metrics by environment: each of the first 50, the others
 * together.
 *
 *   since the start: triggers, ends, times in queues    ─► read from the figures
 *                                                          (core/counters/figures.h)
 *   now: runs by status, waiting workers, sessions      ─► collected environment by
 *                                                          environment, in time slices */
#pragma once

#include "api/request/call.h"

/* The gauges of one environment with its branches, or of all the others. */
struct environment_gauges {
    uint32_t environments; /* how many are in memory; 0: print nothing */
    uint32_t number;       /* figures::number */
    int64_t by_status[RUN_CANCELED];
    int64_t oldest;   /* since when its oldest queued run has waited, Unix ms; 0: none */
    int64_t seated;   /* held dequeues */
    int64_t sessions; /* connected CLIs */
    int64_t unserved; /* queued runs that no connected worker takes */
};

struct environment_metrics {
    const struct api *api;
    uint32_t at; /* the next environment to collect from */
    bool all;    /* every environment was collected */
    struct environment_gauges groups[FIGURES_MAX + 1]; /* the last one: all others */
    int64_t oldest[ENVIRONMENT_TYPES]; /* by type, like environment_gauges::oldest */
    int64_t unserved;                  /* environments with queued runs and no worker */
};

/* Collects from some environments. seen is zeroed at first, except for api. Returns true
 * once all were collected; further calls use no unit of the time slice. */
bool environment_metrics_look(struct environment_metrics *seen,
                              struct timeslice *timeslice);

/* Prints one part; each fits into a turn. Parts are counted from 0. Returns false past the
 * last one. */
bool environment_metrics_print(const struct environment_metrics *seen, size_t part,
                               struct buf *out);
