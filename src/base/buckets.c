/* buckets.c - histograms: the tables of bounds, and their Prometheus text. */
#include "base/buckets.h"

enum { MS = 1000, S = 1000 * MS }; /* in microseconds */

static const int64_t wait_bounds[] = {
    50,      100,     250,      500,        MS,          5 * MS / 2, 5 * MS,    10 * MS,
    25 * MS, 50 * MS, 100 * MS, 250 * MS,   500 * MS,    S,          5 * S / 2, 5 * S,
    10 * S,  30 * S,  60 * S,   5 * 60 * S, 15 * 60 * S, 3600LL * S,
};

static const int64_t queue_bounds[] = {
    100 * MS, 500 * MS, S, 5 * S, 15 * S, 60 * S, 5 * 60 * S, 15 * 60 * S, 3600LL * S,
};

static const int64_t count_bounds[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct bounds bounds_of_work = { wait_bounds, COUNT(wait_bounds) - 5, S };
const struct bounds bounds_of_waits = { wait_bounds, COUNT(wait_bounds), S };
const struct bounds bounds_of_queues = { queue_bounds, COUNT(queue_bounds), S };
const struct bounds bounds_of_counts = { count_bounds, COUNT(count_bounds), 1 };

_Static_assert(COUNT(wait_bounds) < BUCKETS_MAX, "one more is above the last bound");

void buckets_note(struct buckets *buckets, const struct bounds *bounds, int64_t value)
{
    size_t bucket = 0;
    while (bucket < bounds->count && value > bounds->upper[bucket])
        bucket++;
    buckets->counts[bucket]++;
    buckets->sum += value;
}

void buckets_add(struct buckets *to, const struct buckets *from)
{
    for (size_t i = 0; i < BUCKETS_MAX; i++)
        to->counts[i] += from->counts[i];
    to->sum += from->sum;
}

int64_t buckets_count(const struct buckets *buckets)
{
    int64_t count = 0;
    for (size_t i = 0; i < BUCKETS_MAX; i++)
        count += buckets->counts[i];
    return count;
}

static void print_braced(struct buf *out, const char *labels)
{
    if (labels[0])
        buf_print(out, "{%s}", labels);
}

void buckets_print(const struct buckets *buckets, const struct bounds *bounds,
                   const char *name, const char *labels, struct buf *out)
{
    const char *comma = labels[0] ? "," : "";
    int64_t count = 0, all = buckets_count(buckets);
    for (size_t i = 0; i < bounds->count; i++) {
        count += buckets->counts[i];
        buf_print(out, "%s_bucket{%s%sle=\"", name, labels, comma);
        buf_add_json_double(out, (double)bounds->upper[i] / bounds->unit);
        buf_print(out, "\"} %lld\n", (long long)count);
    }
    buf_print(out, "%s_bucket{%s%sle=\"+Inf\"} %lld\n%s_sum", name, labels, comma,
              (long long)all, name);
    print_braced(out, labels);
    buf_add_char(out, ' ');
    buf_add_json_double(out, (double)buckets->sum / bounds->unit);
    buf_print(out, "\n%s_count", name);
    print_braced(out, labels);
    buf_print(out, " %lld\n", (long long)all);
}
