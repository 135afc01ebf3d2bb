/* environment_metrics.h - what /metrics says of environments: each of the first 50 by itself,
 * the others together (core/counters/figures.h).
 *
 *   counted since the start: triggers, ends, times in queues ─► read from the figures
 *   what is now: runs by status, who waits, who is there     ─► looked up, environment by
 *                                                               environment, in a stint */
#pragma once

#include "api/request/call.h"

/* Of one environment with its branches, or of all the others. */
struct environment_gauges {
    uint32_t environments; /* in memory; 0: nothing is to be said */
    uint32_t number;       /* figures::number */
    int64_t by_status[RUN_CANCELED];
    int64_t oldest;   /* since when it has been queued, Unix ms; 0: no run is */
    int64_t seated;   /* dequeues that are held */
    int64_t sessions; /* CLIs */
    int64_t unserved; /* queued runs that nobody who is there takes */
};

struct environment_metrics {
    const struct api *api;
    uint32_t at;                                       /* the next environment */
    bool all;                                          /* were looked at */
    struct environment_gauges groups[FIGURES_MAX + 1]; /* the last one: the rest */
    int64_t oldest[ENVIRONMENT_TYPES];                 /* as environment_gauges::oldest */
    int64_t unserved; /* environments with queued runs and no worker */
};

/* Looks at some of the environments, begun with all zero but api. True: all were looked at, and
 * no unit of the stint is taken any more. */
bool environment_metrics_look(struct environment_metrics *seen, struct stint *stint);

/* The metrics come in parts, each of which fits a turn: from 0 on. False: there is no such
 * part. */
bool environment_metrics_print(const struct environment_metrics *seen, size_t part,
                               struct buf *out);
