/* metrics.c - the numbers of both tables, and their text for Prometheus. */
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
    const char *name, *help;
} histogram_rows[] = {
#define HISTOGRAM(code, name, help) [code] = { name, help },
#include "base/histograms.def"
#undef HISTOGRAM
};

/* Upper bounds, inclusive, in microseconds. */
static const int64_t bounds_us[] = {
    50,    100,    250,    500,    1000,    2500,    5000,    10000,    25000,
    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

enum { BOUND_COUNT = sizeof(bounds_us) / sizeof(bounds_us[0]) };

static struct {
    int64_t buckets[BOUND_COUNT + 1]; /* the last one has no bound */
    int64_t sum_us;
} histograms[HISTOGRAM_COUNT];

void metric_observe_us(enum histogram histogram, int64_t us)
{
    assert(histogram < HISTOGRAM_COUNT);
    size_t bucket = 0;
    while (bucket < BOUND_COUNT && us > bounds_us[bucket])
        bucket++;
    histograms[histogram].buckets[bucket]++;
    histograms[histogram].sum_us += us;
}

static void print_head(struct buf *out, const char *name, const char *help,
                       const char *type)
{
    buf_print(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_seconds(struct buf *out, int64_t us)
{
    buf_add_json_double(out, (double)us / 1e6);
}

static void print_histogram(struct buf *out, enum histogram histogram)
{
    const char *name = histogram_rows[histogram].name;
    print_head(out, name, histogram_rows[histogram].help, "histogram");
    int64_t count = 0;
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        count += histograms[histogram].buckets[i];
        buf_print(out, "%s_bucket{le=\"", name);
        print_seconds(out, bounds_us[i]);
        buf_print(out, "\"} %lld\n", (long long)count);
    }
    count += histograms[histogram].buckets[BOUND_COUNT];
    buf_print(out, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum ", name, (long long)count, name);
    print_seconds(out, histograms[histogram].sum_us);
    buf_print(out, "\n%s_count %lld\n", name, (long long)count);
}

void metrics_print(struct buf *out)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
            print_head(out, rows[i].name, rows[i].help, rows[i].type);
        bool labelled = rows[i].labels[0] != '\0';
        buf_print(out, "%s%s%s%s %lld\n", rows[i].name, labelled ? "{" : "", rows[i].labels,
                  labelled ? "}" : "", (long long)metrics[i]);
    }
    for (size_t i = 0; i < HISTOGRAM_COUNT; i++)
        print_histogram(out, (enum histogram)i);
}
