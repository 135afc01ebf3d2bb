/* histogram.h - durations in log-linear buckets, like HdrHistogram.
 *
 * There are 128 buckets per power of two, so a value read is at most 0.8 % above the one
 * recorded. It never allocates; recording is a shift and an addition. */
#pragma once

#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 7,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS,
};

struct histogram {
    uint64_t count;
    int64_t total_ns, max_ns;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *histogram);

/* A negative duration counts as 0. */
void histogram_record(struct histogram *histogram, int64_t ns);

/* Returns 0 if nothing was recorded. */
double histogram_mean(const struct histogram *histogram);

/* Returns the duration that this share of the recorded ones does not exceed (0.99: p99), at
 * most the largest; 0 if nothing was recorded. */
int64_t histogram_quantile(const struct histogram *histogram, double share);
