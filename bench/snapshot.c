/* snapshot.c - measures how fast one subscriber of a topic receives its many runs.
 *
 * It prints the time to the first row and to the sync, rows per second, and, from /metrics,
 * whether a turn of the server's loop grew with the snapshot. */
#include "commands.h"

#include "base/mem.h"
#include "server.h"
#include "subscribers.h"

int snapshot_main(const struct options *options)
{
    struct options one = *options;
    struct report report;
    struct poller poller;
    struct fill fill;
    struct turns turns;
    struct subscribers *subs = mem_new(struct subscribers);
    if (options->runs < 1)
        fatal("--runs is at least 1");
    one.topic = "tag";
    one.subscribers = 1;
    client_transport(options->transport);
    subscribers_check(&one, options->runs);
    report_init(&report, options->json, "snapshot");
    poller_init(&poller);
    fill_init(&fill, &one, &report);
    fill.payload_bytes = (size_t)options->payload_bytes;
    fill_to(&fill, (size_t)options->runs);
    subscribers_init(subs, &poller, &one, &fill, &report);

    server_read_turns(options, &turns);
    int64_t cpu_before = server_cpu_ns(options), started = now_ns();
    subscribers_connect(subs);
    double seconds = (double)(now_ns() - started) / 1e9;
    double rows = (double)subs->snapshot_rows;
    report_count(&report, "rows", "rows of the snapshot", (int64_t)subs->snapshot_rows);
    report_number(&report, "seconds", "time to the sync", seconds, "s");
    report_number(&report, "rows_per_second", "rows a second", rows / seconds, "/s");
    report_number(&report, "row_bytes", "bytes a row", (double)subs->payload_bytes / rows,
                  "");
    if (options->pid) {
        double cpu_us = (double)(server_cpu_ns(options) - cpu_before) / 1000;
        report_number(&report, "cpu_us_per_row", "server CPU a row", cpu_us / rows, "us");
    }
    server_report_turns(options, &turns, &report);

    bool whole = subs->snapshot_rows == fill.count;
    report_finish(&report);
    subscribers_finish(subs);
    fill_finish(&fill);
    poller_finish(&poller);
    free(subs);
    return whole ? 0 : 1;
}
