/* histogram.c - durations in log-linear buckets, like HdrHistogram. */
#include "histogram.h"

#include <stddef.h>
#include <string.h>

static const uint64_t SUB_BUCKETS = 1 << HISTOGRAM_SUB_BITS;

static unsigned shift_of(uint64_t ns)
{
    unsigned top_bit = 63 - (unsigned)__builtin_clzll(ns);
    return top_bit - HISTOGRAM_SUB_BITS;
}

static size_t bucket_of(uint64_t ns)
{
    if (ns < SUB_BUCKETS)
        return ns;
    unsigned shift = shift_of(ns);
    return ((size_t)shift << HISTOGRAM_SUB_BITS) + (ns >> shift);
}

/* Returns the largest value that falls into the bucket. */
static uint64_t top_of(size_t bucket)
{
    if (bucket < 2 * SUB_BUCKETS)
        return bucket;
    unsigned shift = (unsigned)(bucket >> HISTOGRAM_SUB_BITS) - 1;
    uint64_t mantissa = bucket - ((uint64_t)shift << HISTOGRAM_SUB_BITS);
    return ((mantissa + 1) << shift) - 1;
}

void histogram_clear(struct histogram *histogram)
{
    memset(histogram, 0, sizeof(*histogram));
}

void histogram_record(struct histogram *histogram, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->count++;
    histogram->total_ns += ns;
    histogram->buckets[bucket_of((uint64_t)ns)]++;
}

double histogram_mean(const struct histogram *histogram)
{
    return histogram->count ? (double)histogram->total_ns / (double)histogram->count : 0;
}

int64_t histogram_quantile(const struct histogram *histogram, double share)
{
    if (histogram->count == 0)
        return 0;
    uint64_t wanted = (uint64_t)(share * (double)histogram->count + 0.5);
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= wanted && histogram->buckets[i]) {
            int64_t top = (int64_t)top_of(i);
            return top < histogram->max_ns ? top : histogram->max_ns;
        }
    }
    return histogram->max_ns;
}
