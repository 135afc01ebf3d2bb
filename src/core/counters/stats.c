/* stats.c - the ring of samples, and the percentiles of delivery times. */
#include "core/counters/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_CAPACITY = 16 };

static int64_t begin_of(int64_t now_ms)
{
    return now_ms - now_ms % STATS_INTERVAL_MS;
}

void stats_init(struct stats *stats, int64_t now_ms)
{
    *stats = (struct stats){ .from = now_ms, .open = { .at = begin_of(now_ms) } };
}

void stats_finish(struct stats *stats)
{
    free(stats->ring);
}

/* ---- delivery times ---- */

/* Returns the time within which this percentage of the deliveries completed. */
static uint32_t percentile(const struct stats *stats, unsigned percent)
{
    return octaves_percentile(stats->buckets, stats->open.deliveries, percent);
}

void stats_note_delivery(struct stats *stats, int64_t us)
{
    stats->used = stats->changed = true;
    stats->open.deliveries++;
    stats->buckets[octaves_bucket(us)]++;
}

/* ---- samples ---- */

void stats_note_run(struct stats *stats, int before, enum run_status after)
{
    bool was_final = before >= RUN_CANCELED;
    stats->used = stats->changed = true;
    stats->open.triggers += before < 0;
    if (after >= RUN_CANCELED && !was_final)
        stats->open.ends[after - RUN_CANCELED]++;
}

bool stats_is_over(const struct stats *stats, int64_t now_ms)
{
    return now_ms >= stats->open.at + STATS_INTERVAL_MS;
}

static void grow(struct stats *stats)
{
    size_t capacity = stats->capacity ? stats->capacity * 2 : FIRST_CAPACITY;
    stats->capacity = capacity < STATS_SAMPLES ? capacity : STATS_SAMPLES;
    stats->ring = mem_resize(stats->ring, stats->capacity * sizeof(*stats->ring));
}

static void push(struct stats *stats, const struct stats_sample *sample)
{
    if (stats->count == stats->capacity && stats->capacity < STATS_SAMPLES)
        grow(stats);
    if (stats->count < stats->capacity)
        stats->ring[stats->count++] = *sample;
    else
        stats->ring[stats->first++] = *sample;
    if (stats->first == STATS_SAMPLES)
        stats->first = 0;
}

void stats_close(struct stats *stats, int64_t now_ms, uint32_t queued, int64_t queued_since)
{
    if (stats->used) {
        stats->open.queued = queued;
        stats->open.queued_since = queued_since;
        stats->open.p50_us = percentile(stats, 50);
        stats->open.p99_us = percentile(stats, 99);
        push(stats, &stats->open);
        memset(stats->buckets, 0, sizeof(stats->buckets));
    }
    stats->open = (struct stats_sample){ .at = begin_of(now_ms) };
    stats->used = false;
}

void stats_restore(struct stats *stats, const struct stats_sample *sample, int64_t now_ms)
{
    int64_t after = stats->count ? stats_at(stats, stats->count - 1)->at : 0;
    if (sample->at > after && sample->at == stats->open.at) {
        stats->open.triggers = sample->triggers;
        memcpy(stats->open.ends, sample->ends, sizeof(sample->ends));
        stats->used = true;
        return;
    }
    if (sample->at > after && sample->at < stats->open.at &&
        sample->at >= now_ms - STATS_KEPT_MS && sample->at % STATS_INTERVAL_MS == 0)
        push(stats, sample);
}

const struct stats_sample *stats_at(const struct stats *stats, size_t place)
{
    return &stats->ring[(stats->first + place) % STATS_SAMPLES];
}

size_t stats_find(const struct stats *stats, int64_t from_ms)
{
    size_t place = 0, end = stats->count;
    while (place < end) {
        size_t middle = place + (end - place) / 2;
        if (stats_at(stats, middle)->at < from_ms)
            place = middle + 1;
        else
            end = middle;
    }
    return place;
}
