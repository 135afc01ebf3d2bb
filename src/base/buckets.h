/* buckets.h - counts of values by range, from which a histogram is printed.
 *
 *   bounds:      50 µs   100 µs   250 µs  …  10 s
 *   buckets:   3       0        7       …        1     and the sum of all values
 *
 * Many histograms share one table of bounds. Buckets are plain numbers, so another thread
 * can fill buckets of its own and hand them over. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { BUCKETS_MAX = 24 };

struct bounds {
    const int64_t *upper; /* inclusive, rising */
    size_t count;         /* below BUCKETS_MAX: one more bucket is above the last */
    double unit;          /* a value is printed divided by this */
};

/* The zero value is empty. */
struct buckets {
    int64_t counts[BUCKETS_MAX];
    int64_t sum;
};

/* For microseconds; printed as seconds. */
extern const struct bounds bounds_of_work;   /* from 50 µs to 10 s */
extern const struct bounds bounds_of_waits;  /* the same, up to an hour */
extern const struct bounds bounds_of_queues; /* few, from 100 ms to an hour */
/* For counts; powers of two. */
extern const struct bounds bounds_of_counts;

void buckets_note(struct buckets *buckets, const struct bounds *bounds, int64_t value);
void buckets_add(struct buckets *to, const struct buckets *from);
int64_t buckets_count(const struct buckets *buckets);

/* Appends the samples of one histogram in the text format of Prometheus, without its head.
 * labels: the labels of each sample, without braces; "": none. */
void buckets_print(const struct buckets *buckets, const struct bounds *bounds,
                   const char *name, const char *labels, struct buf *out);
