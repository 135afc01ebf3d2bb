/* metrics.h - the counters, and the Prometheus text of them.
 *
 * metrics.def is the table: one row is the enum, the exported name and the help text.
 * Counters of the loop thread are plain numbers; metric_add is for all of them. Labels are
 * part of the row (bounded by construction). */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum metric {
#define COUNTER(code, name, labels, help) code,
#define GAUGE(code, name, labels, help) code,
#include "base/metrics.def"
#undef COUNTER
#undef GAUGE
    METRIC_COUNT
};

enum histogram {
#define HISTOGRAM(code, name, help) code,
#include "base/histograms.def"
#undef HISTOGRAM
    HISTOGRAM_COUNT
};

extern int64_t metrics[METRIC_COUNT];

#define metric_add(code, n) (metrics[code] += (int64_t)(n))

/* Buckets from 50 µs to 10 s, in steps of about two; the values are microseconds. */
void metric_observe_us(enum histogram histogram, int64_t us);

/* Prometheus text format 0.0.4 of everything. */
void metrics_print(struct buf *out);
