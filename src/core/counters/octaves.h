/* octaves.h - counts of durations in buckets whose bounds double, and their percentiles.
 *
 *   1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 …    four buckets per octave
 *
 * The unit is the caller's. A percentile is the upper end of its bucket, so that no
 * duration is reported as shorter than it was; it is at most a quarter too long. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { OCTAVES_BUCKETS = 96 }; /* up to 2^24 units; longer durations are in the last one */

/* Returns the bucket of a duration. */
size_t octaves_bucket(int64_t duration);

/* Returns a duration that this percentage of all counted ones did not exceed; 0 if nothing
 * was counted. buckets has OCTAVES_BUCKETS elements, and total is their sum. */
uint32_t octaves_percentile(const uint32_t *buckets, uint64_t total, unsigned percent);
