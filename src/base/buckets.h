/* buckets.h - how many values were in which range: what a histogram is printed from.
 *
 *   bounds:      50 µs   100 µs   250 µs  …  10 s
 *   buckets:   3       0        7       …        1     and the sum of all values
 *
 * Bounds are a table that many histograms share; buckets are plain numbers, so that another
 * thread can fill its own and hand them over. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { BUCKETS_MAX = 24 };

struct bounds {
    const int64_t *upper; /* inclusive, rising */
    size_t count;         /* below BUCKETS_MAX: what is above the last has a bucket, too */
    double unit;          /* a value is printed divided by this */
};

/* The zero value is empty. */
struct buckets {
    int64_t counts[BUCKETS_MAX];
    int64_t sum;
};

/* Of microseconds, printed as seconds. */
extern const struct bounds bounds_of_work;   /* from 50 µs to 10 s */
extern const struct bounds bounds_of_waits;  /* the same, and on to an hour */
extern const struct bounds bounds_of_queues; /* few, from 100 ms to an hour */
/* Of numbers of things: powers of two. */
extern const struct bounds bounds_of_counts;

void buckets_note(struct buckets *buckets, const struct bounds *bounds, int64_t value);
void buckets_add(struct buckets *to, const struct buckets *from);
int64_t buckets_count(const struct buckets *buckets);

/* The samples of one histogram in the text format of Prometheus, without its head. labels:
 * those that each sample has, as they stand in braces; "": none. */
void buckets_print(const struct buckets *buckets, const struct bounds *bounds,
                   const char *name, const char *labels, struct buf *out);
