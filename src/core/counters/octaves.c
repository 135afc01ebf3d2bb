/* octaves.c - finds the bucket of a duration, and the upper bound of a bucket. */
#include "core/counters/octaves.h"

enum { PARTS = 4 /* buckets per octave */ };

/* 1: 0, 2: 4, 3: 6, 4: 8 … */
size_t octaves_bucket(int64_t duration)
{
    size_t octave = 0;
    uint64_t value = duration > 1 ? (uint64_t)duration : 1;
    while (value >> (octave + 1))
        octave++;
    size_t part = ((value - (UINT64_C(1) << octave)) * PARTS) >> octave;
    size_t bucket = octave * PARTS + part;
    return bucket < OCTAVES_BUCKETS ? bucket : OCTAVES_BUCKETS - 1;
}

static uint32_t end_of_bucket(size_t bucket)
{
    uint64_t octave = UINT64_C(1) << (bucket / PARTS);
    return (uint32_t)(octave + octave * (bucket % PARTS + 1) / PARTS);
}

uint32_t octaves_percentile(const uint32_t *buckets, uint64_t total, unsigned percent)
{
    uint64_t wanted = (total * percent + 99) / 100, seen = 0;
    for (size_t i = 0; i < OCTAVES_BUCKETS; i++) {
        seen += buckets[i];
        if (seen && seen >= wanted)
            return end_of_bucket(i);
    }
    return 0;
}
