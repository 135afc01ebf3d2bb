/* trigger.c - measures how many durable triggers the server answers per second.
 *
 * Closed loop: every connection sends its next request after a response. So the rate is the
 * server's maximum at this concurrency, and a latency is that of a client that waits. A
 * batch is two requests (POST /api/v3/batches and its items); its latency covers both. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "fill.h"
#include "histogram.h"
#include "http_client.h"
#include "server.h"

enum { BATCH_MAX = 1000 }; /* max items that a gateway accepts */

enum step { STEP_TRIGGER, STEP_BATCH, STEP_ITEMS };

static const int64_t TICK_NS = 20000000;

struct load {
    struct http_client client;
    const struct options *options;
    struct report report;
    struct histogram latency;
    struct buf body;  /* of a trigger, or of the first request of a batch */
    struct buf items; /* of the second request */
    int64_t started_ns, ended_ns;
    uint64_t begun, done, failed; /* runs */
    struct buf failure;           /* the first error response */
};

static uint64_t runs_a_request(const struct load *load)
{
    return load->options->batch ? (uint64_t)load->options->batch : 1;
}

static bool wants_more(const struct load *load)
{
    const struct options *options = load->options;
    if (options->count)
        return load->begun < (uint64_t)options->count;
    return now_ns() - load->started_ns < (int64_t)(options->seconds * 1e9);
}

static void send_next(struct load *load, struct http_conn *conn)
{
    if (!wants_more(load))
        return;
    bool batch = load->options->batch > 0;
    load->begun += runs_a_request(load);
    conn->step = batch ? STEP_BATCH : STEP_TRIGGER;
    conn->intended_ns = now_ns();
    http_conn_send(conn, "POST", batch ? "/api/v3/batches" : "/api/v1/tasks/bench/trigger",
                   buf_slice(&load->body));
}

static void send_items(struct load *load, struct http_conn *conn, struct slice reply)
{
    char path[160];
    struct slice id = scan_is_json(reply) ? scan_member(reply, "id") : (struct slice){ 0 };
    if (id.len < 2)
        fatal("POST /api/v3/batches: no id in %.*s", SLICE_ARG(reply));
    snprintf(path, sizeof(path), "/api/v3/batches/%.*s/items", (int)id.len - 2, id.ptr + 1);
    conn->step = STEP_ITEMS;
    http_conn_send_as(conn, "POST", path, "application/x-ndjson", buf_slice(&load->items));
}

static void on_reply(struct http_conn *conn, const struct http_reply *reply)
{
    struct load *load = container_of(conn->client, struct load, client);
    bool accepted = reply->status / 100 == 2;
    if (accepted && conn->step == STEP_BATCH) {
        send_items(load, conn, reply->body);
        return;
    }
    if (accepted) {
        load->done += runs_a_request(load);
        histogram_record(&load->latency, now_ns() - conn->intended_ns);
    } else {
        load->failed += runs_a_request(load);
        if (load->failure.len == 0)
            buf_print(&load->failure, "status %d: %.*s", reply->status,
                      SLICE_ARG(reply->body));
    }
    load->ended_ns = now_ns();
    send_next(load, conn);
}

static void add_run(const struct options *options, struct buf *out)
{
    buf_add_text(out, "\"payload\":");
    fill_add_text(out, options->quotes ? "\\\"" : "x", (size_t)options->payload_bytes);
    if (options->delay[0])
        buf_print(out, ",\"options\":{\"delay\":\"%s\"}", options->delay);
    buf_add_char(out, '}');
}

static void make_bodies(struct load *load)
{
    const struct options *options = load->options;
    if (options->batch == 0) {
        buf_add_char(&load->body, '{');
        add_run(options, &load->body);
        return;
    }
    buf_print(&load->body, "{\"runCount\":%" PRId64 ",\"taskIdentifiers\":[\"bench\"]}",
              options->batch);
    for (int64_t i = 0; i < options->batch; i++) {
        buf_print(&load->items, "{\"index\":%" PRId64 ",\"task\":\"bench\",", i);
        add_run(options, &load->items);
        buf_add_char(&load->items, '\n');
    }
}

static void run_load(struct load *load, struct poller *poller)
{
    load->started_ns = load->ended_ns = now_ns();
    struct http_conn *conns = load->client.conns;
    for (size_t i = 0; i < load->client.count; i++)
        send_next(load, &conns[i]);
    while (load->client.outstanding) {
        poller_wait(poller, now_ns() + TICK_NS);
        double seconds = (double)(now_ns() - load->started_ns) / 1e9;
        report_progress(&load->report,
                        "%.0f s: %" PRIu64 " runs, %.0f a second, p99 %" PRId64 " us",
                        seconds, load->done, (double)load->done / seconds,
                        histogram_quantile(&load->latency, 0.99) / 1000);
    }
}

static void report_load(struct load *load, int64_t cpu_ns, const struct turns *turns)
{
    const struct options *options = load->options;
    struct report *report = &load->report;
    double seconds = (double)(load->ended_ns - load->started_ns) / 1e9;
    double done = (double)load->done;
    report_count(report, "concurrency", "connections", options->concurrency);
    report_count(report, "payload_bytes", "bytes of a payload", options->payload_bytes);
    if (options->batch)
        report_count(report, "batch", "items of a batch", options->batch);
    report_count(report, "runs", "runs acknowledged", (int64_t)load->done);
    report_count(report, "failed", "runs refused", (int64_t)load->failed);
    if (load->failure.len) {
        buf_add_char(&load->failure, 0);
        report_text(report, "failure", "  the first with", load->failure.ptr);
    }
    report_number(report, "per_second", "runs a second", seconds > 0 ? done / seconds : 0,
                  "/s");
    report_latency(report, "latency", "latency", &load->latency);
    if (options->pid && load->done) {
        report_number(report, "cpu_us_per_run", "server CPU a run",
                      (double)cpu_ns / done / 1000, "us");
    }
    server_report_turns(options, turns, report);
}

int trigger_main(const struct options *options)
{
    struct poller poller;
    struct turns turns;
    struct load *load = mem_new(struct load);
    if (options->concurrency < 1 || options->concurrency > 10000)
        fatal("--concurrency is from 1 to 10000");
    if (options->batch < 0 || options->batch > BATCH_MAX)
        fatal("--batch is from 1 to %d items, or 0: single triggers", BATCH_MAX);
    if (options->payload_bytes < 0 || options->count < 0)
        fatal("--payload and --count are at least 0");
    load->options = options;
    report_init(&load->report, options->json, "trigger");
    make_bodies(load);
    poller_init(&poller);
    http_client_init(&load->client, &poller, options, (size_t)options->concurrency,
                     on_reply);

    server_read_turns(options, &turns);
    struct commits commits = server_read_commits(options);
    int64_t before = server_cpu_ns(options);
    run_load(load, &poller);
    report_load(load, server_cpu_ns(options) - before, &turns);
    server_report_groups(options, commits, &load->report);

    uint64_t failed = load->failed;
    report_finish(&load->report);
    http_client_finish(&load->client);
    poller_finish(&poller);
    buf_finish(&load->body);
    buf_finish(&load->items);
    buf_finish(&load->failure);
    free(load);
    return failed ? 1 : 0;
}
