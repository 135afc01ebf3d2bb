/* stats.h - what has happened in an environment, in samples of ten seconds: what a plot of the
 * last hours is drawn from.
 *
 *   change ──► the sample that is open ──┐ the first one behind its ten seconds
 *   flush ───► (delivery times) ─────────┴─► ring, the newest six hours
 *
 * A sample in which nothing happened is not kept: then the queue is as it was at the end of the
 * sample before, but for its oldest run, which has become older. So an environment at rest costs
 * neither time nor memory, and there is no timer.
 *
 * In memory only: after a start it begins anew. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/counters/figures.h"

enum {
    STATS_INTERVAL_MS = 10 * 1000,
    STATS_KEPT_MS = 6 * 60 * 60 * 1000,
    STATS_SAMPLES = STATS_KEPT_MS / STATS_INTERVAL_MS,
    STATS_BUCKETS = 96, /* of delivery times: four an octave, from 1 µs to 16 s */
};

struct stats_sample {
    int64_t at; /* its begin; Unix ms, a multiple of STATS_INTERVAL_MS */
    uint32_t triggers;
    uint32_t ends[FIGURES_ENDS]; /* by final status, from RUN_CANCELED on */
    uint32_t queued;             /* how many runs wait in queues at its end */
    int64_t
        queued_since; /* when the oldest of them came into its queue, Unix ms; 0: none */
    uint32_t deliveries;
    uint32_t p50_us, p99_us; /* from change to last write; 0 without deliveries */
};

struct stats {
    int64_t from;              /* nothing was seen before; Unix ms */
    struct stats_sample *ring; /* grows to STATS_SAMPLES, of 72 bytes */
    size_t first, count, capacity;
    struct stats_sample open;
    bool used; /* something happened in the open one */
    uint32_t buckets[STATS_BUCKETS];
};

void stats_init(struct stats *stats, int64_t now_ms);
void stats_finish(struct stats *stats);

/* The open sample is over at this time, and is closed with the queue as it is now: asked before
 * anything is noted, and before the samples are read (core/live/sampling.h). */
bool stats_is_over(const struct stats *stats, int64_t now_ms);
void stats_close(struct stats *stats, int64_t now_ms, uint32_t queued,
                 int64_t queued_since);

/* A run was made (no status before: -1), or has another status. */
void stats_note_run(struct stats *stats, int before, enum run_status after);
/* A change has left for everybody who listens, so long after it was applied. */
void stats_note_delivery(struct stats *stats, int64_t us);

/* The closed samples that begin at this time or later: their place, to be counted up to
 * stats->count. */
size_t stats_find(const struct stats *stats, int64_t from_ms);
const struct stats_sample *stats_at(const struct stats *stats, size_t place);
