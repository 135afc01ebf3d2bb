/* stats.h - samples of an environment's activity, for plots of the last hours.
 *
 *   change ──► the open sample ─┐  closed by the first event or read after its ten seconds
 *   flush ───► delivery times ──┴─► ring of the newest six hours
 *
 * A sample without events is not stored: the queue is as it was at the end of the previous
 * sample, except that its oldest run is older. So an idle environment costs neither time
 * nor memory, and there is no timer.
 *
 * The samples are in memory. They are stored every quarter of an hour
 * (api/router/stored_activity.h), and restored at startup. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/counters/figures.h"
#include "core/counters/octaves.h"

enum {
    STATS_INTERVAL_MS = 10 * 1000,
    STATS_KEPT_MS = 6 * 60 * 60 * 1000,
    STATS_SAMPLES = STATS_KEPT_MS / STATS_INTERVAL_MS,
};

struct stats_sample {
    int64_t at; /* its start; Unix ms, a multiple of STATS_INTERVAL_MS */
    uint32_t triggers;
    uint32_t ends[FIGURES_ENDS]; /* by final status, from RUN_CANCELED on */
    uint32_t queued;             /* runs in queues at its end */
    int64_t queued_since;        /* when the oldest of them was queued, Unix ms; 0: none */
    uint32_t deliveries;
    uint32_t p50_us, p99_us; /* from change to last write; 0 without deliveries */
};

struct stats {
    int64_t from;              /* when counting began; Unix ms */
    struct stats_sample *ring; /* grows to STATS_SAMPLES, of 72 bytes */
    size_t first, count, capacity;
    struct stats_sample open;
    bool used;        /* the open sample has events */
    bool changed;     /* something was noted since the samples were last stored */
    uint32_t version; /* of the stored document; 0: not stored yet */
    uint32_t buckets[OCTAVES_BUCKETS]; /* of delivery times in µs */
};

void stats_init(struct stats *stats, int64_t now_ms);
void stats_finish(struct stats *stats);

/* Returns true if the open sample's time is up: close it, with the queue as it is now.
 * Check before anything is noted, and before samples are read (core/live/sampling.h). */
bool stats_is_over(const struct stats *stats, int64_t now_ms);
void stats_close(struct stats *stats, int64_t now_ms, uint32_t queued,
                 int64_t queued_since);

/* Adds a sample from an earlier process. A sample of the open interval is continued,
 * without its delivery times. Skips it if it is not later than the last one, later than the
 * open one, or older than six hours. */
void stats_restore(struct stats *stats, const struct stats_sample *sample, int64_t now_ms);

/* A run was created (before: -1) or has changed its status. */
void stats_note_run(struct stats *stats, int before, enum run_status after);
/* A change was written to all its listeners, this long after it was applied. */
void stats_note_delivery(struct stats *stats, int64_t us);

/* Returns the index of the first closed sample that begins at this time or later. The last
 * one has index stats->count - 1. */
size_t stats_find(const struct stats *stats, int64_t from_ms);
const struct stats_sample *stats_at(const struct stats *stats, size_t place);
