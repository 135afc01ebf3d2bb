/* metrics.h - the counters, and the Prometheus text of them.
 *
 * metrics.def is the table: one row is the enum, the exported name and the help text.
 * Counters of the loop thread are plain numbers; metric_add is for all of them. Labels are
 * part of the row (bounded by construction). */
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

/* Takes in what another thread has noted, by these bounds. */
void metric_merge(enum histogram histogram, const struct buckets *buckets);
const struct bounds *metric_bounds(enum histogram histogram);

/* The two lines before the samples of a name. */
void metrics_print_head(struct buf *out, const char *name, const char *type,
                        const char *help);

/* A name that has one sample, and no labels. */
void metrics_print_gauge(struct buf *out, const char *name, const char *help,
                         int64_t value);

/* name="value", with what the format wants to be escaped. */
void metrics_print_label(struct buf *out, const char *name, const char *value);

/* Prometheus text format 0.0.4 of both tables. */
void metrics_print(struct buf *out);
