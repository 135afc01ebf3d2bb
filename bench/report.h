/* report.h - the results of a measurement, as a table for people or one JSON object.
 *
 * Every figure has a key, a label and a unit: the table shows labels, the JSON keys. The
 * JSON is one flat object on one line, so that run.sh can read it with sed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "histogram.h"

struct report {
    bool json;
    bool live;        /* standard error is a terminal: show progress */
    int64_t shown_ns; /* when progress was last drawn */
    struct buf out;
};

void report_init(struct report *report, bool json, const char *title);

void report_text(struct report *report, const char *key, const char *label,
                 const char *text);
void report_count(struct report *report, const char *key, const char *label, int64_t count);

/* unit may be "". */
void report_number(struct report *report, const char *key, const char *label, double number,
                   const char *unit);

/* Reports p50, p99, p99.9 and max with keys key_p50_us … key_max_us. */
void report_latency(struct report *report, const char *key, const char *label,
                    const struct histogram *histogram);

/* Redraws the progress line on a terminal, at most ten times a second. */
__attribute__((format(printf, 2, 3))) void report_progress(struct report *report,
                                                           const char *format, ...);

/* Prints everything to standard output and frees it. */
void report_finish(struct report *report);
