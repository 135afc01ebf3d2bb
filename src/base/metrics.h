/* metrics.h - counters, gauges and histograms, and their Prometheus text.
 *
 * metrics.def is the table: one row defines the enum constant, the exported name and the
 * help text. The values are plain numbers of the loop thread; change them with metric_add.
 * Labels are part of the row, so their number is bounded. */
#pragma once

#include <stdint.h>

#include "base/buckets.h"
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
#define HISTOGRAM(code, name, bounds, help) code,
#include "base/histograms.def"
#undef HISTOGRAM
    HISTOGRAM_COUNT
};

extern int64_t metrics[METRIC_COUNT];

#define metric_add(code, n) (metrics[code] += (int64_t)(n))

void metric_observe_us(enum histogram histogram, int64_t us);

/* Adds the values that another thread has counted, with the bounds of this histogram. */
void metric_merge(enum histogram histogram, const struct buckets *buckets);
const struct bounds *metric_bounds(enum histogram histogram);

/* Appends the HELP and TYPE lines of a name. */
void metrics_print_head(struct buf *out, const char *name, const char *type,
                        const char *help);

/* Appends a name that has one sample and no labels, with its head. */
void metrics_print_gauge(struct buf *out, const char *name, const char *help,
                         int64_t value);

/* Appends name="value", escaped. */
void metrics_print_label(struct buf *out, const char *name, const char *value);

/* Appends all metrics of both tables in Prometheus text format 0.0.4. */
void metrics_print(struct buf *out);
