/* report.c - the results of a measurement, as a table for people or one JSON object. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "poller.h"

static const int64_t REDRAW_NS = 100000000;

void report_init(struct report *report, bool json, const char *title)
{
    *report = (struct report){ .json = json, .live = isatty(STDERR_FILENO) };
    if (json) {
        buf_add_text(&report->out, "{\"bench\":");
        buf_add_json(&report->out, slice_of(title));
    } else {
        buf_print(&report->out, "%s\n", title);
    }
}

static void add_key(struct report *report, const char *key)
{
    buf_print(&report->out, ",\"%s\":", key);
}

void report_text(struct report *report, const char *key, const char *label,
                 const char *text)
{
    if (report->json) {
        add_key(report, key);
        buf_add_json(&report->out, slice_of(text));
    } else {
        buf_print(&report->out, "  %-44s %s\n", label, text);
    }
}

/* Writes 1234567 as "1,234,567". */
static void with_commas(int64_t number, char out[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)number);
    int first = digits[0] == '-';
    size_t at = 0;
    for (int i = 0; i < len; i++) {
        if (i > first && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
}

void report_count(struct report *report, const char *key, const char *label, int64_t count)
{
    char text[32];
    if (report->json) {
        add_key(report, key);
        buf_add_number(&report->out, count);
        return;
    }
    with_commas(count, text);
    buf_print(&report->out, "  %-44s %14s\n", label, text);
}

void report_number(struct report *report, const char *key, const char *label, double number,
                   const char *unit)
{
    if (report->json) {
        add_key(report, key);
        buf_print(&report->out, "%.3f", number);
    } else {
        buf_print(&report->out, "  %-44s %14.2f %s\n", label, number, unit);
    }
}

static const struct {
    const char *key, *label;
    double share;
} quantiles[] = {
    { "p50", "p50", 0.5 },
    { "p99", "p99", 0.99 },
    { "p999", "p99.9", 0.999 },
    { "max", "max", 1 },
};

void report_latency(struct report *report, const char *key, const char *label,
                    const struct histogram *histogram)
{
    for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        char full_key[64], full_label[64];
        snprintf(full_key, sizeof(full_key), "%s_%s_us", key, quantiles[i].key);
        snprintf(full_label, sizeof(full_label), "%s %s", label, quantiles[i].label);
        double us = (double)histogram_quantile(histogram, quantiles[i].share) / 1000;
        report_number(report, full_key, full_label, us, "us");
    }
}

void report_progress(struct report *report, const char *format, ...)
{
    int64_t now = now_ns();
    if (!report->live || now - report->shown_ns < REDRAW_NS)
        return;
    report->shown_ns = now;
    va_list args;
    va_start(args, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, args);
    va_end(args);
}

void report_finish(struct report *report)
{
    if (report->shown_ns)
        fputs("\r\033[K", stderr);
    if (report->json)
        buf_add_text(&report->out, "}\n");
    struct slice text = buf_slice(&report->out);
    fwrite(text.ptr, 1, text.len, stdout);
    fflush(stdout);
    buf_finish(&report->out);
}
