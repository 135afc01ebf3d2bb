/* metrics.c - the values of all metrics, and their text for Prometheus. */
#include "base/metrics.h"

#include <assert.h>
#include <string.h>

int64_t metrics[METRIC_COUNT];

static const struct {
    const char *name, *labels, *help, *type;
} rows[] = {
#define COUNTER(code, name, labels, help) [code] = { name, labels, help, "counter" },
#define GAUGE(code, name, labels, help) [code] = { name, labels, help, "gauge" },
#include "base/metrics.def"
#undef COUNTER
#undef GAUGE
};

static const struct {
    const char *name;
    const struct bounds *bounds;
    const char *help;
} histogram_rows[] = {
#define HISTOGRAM(code, name, bounds, help) [code] = { name, &(bounds), help },
#include "base/histograms.def"
#undef HISTOGRAM
};

static struct buckets histograms[HISTOGRAM_COUNT];

void metric_observe_us(enum histogram histogram, int64_t us)
{
    assert(histogram < HISTOGRAM_COUNT);
    buckets_note(&histograms[histogram], histogram_rows[histogram].bounds, us);
}

void metric_merge(enum histogram histogram, const struct buckets *buckets)
{
    assert(histogram < HISTOGRAM_COUNT);
    buckets_add(&histograms[histogram], buckets);
}

const struct bounds *metric_bounds(enum histogram histogram)
{
    assert(histogram < HISTOGRAM_COUNT);
    return histogram_rows[histogram].bounds;
}

void metrics_print_head(struct buf *out, const char *name, const char *type,
                        const char *help)
{
    buf_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_print_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
    metrics_print_head(out, name, "gauge", help);
    buf_print(out, "%s %lld\n", name, (long long)value);
}

void metrics_print_label(struct buf *out, const char *name, const char *value)
{
    buf_print(out, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\n') {
            buf_add_text(out, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *value);
    }
    buf_add_char(out, '"');
}

static void print_histogram(struct buf *out, enum histogram histogram)
{
    const char *name = histogram_rows[histogram].name;
    metrics_print_head(out, name, "histogram", histogram_rows[histogram].help);
    buckets_print(&histograms[histogram], histogram_rows[histogram].bounds, name, "", out);
}

void metrics_print(struct buf *out)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
            metrics_print_head(out, rows[i].name, rows[i].type, rows[i].help);
        bool labelled = rows[i].labels[0] != '\0';
        buf_print(out, "%s%s%s%s %lld\n", rows[i].name, labelled ? "{" : "", rows[i].labels,
                  labelled ? "}" : "", (long long)metrics[i]);
    }
    for (size_t i = 0; i < HISTOGRAM_COUNT; i++)
        print_histogram(out, (enum histogram)i);
}
