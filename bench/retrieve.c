/* retrieve.c - measures how many retrieves of a run the server answers per second.
 *
 * It shows the cost of a request that reads memory and writes nothing. Closed loop, like
 * trigger.c: every connection sends its next request after a response. With --floor no run
 * exists, and the floor's constant response is the minimum cost of a GET. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "histogram.h"
#include "http_client.h"
#include "server.h"

static const int64_t TICK_NS = 20000000;

struct retrieves {
    struct http_client client;
    const struct options *options;
    struct report report;
    struct histogram latency;
    char path[96];
    int64_t started_ns, ended_ns;
    uint64_t done;
    uint64_t bytes; /* of the bodies */
};

static void send_next(struct retrieves *retrieves, struct http_conn *conn)
{
    if (now_ns() - retrieves->started_ns >= (int64_t)(retrieves->options->seconds * 1e9))
        return;
    conn->intended_ns = now_ns();
    http_conn_send(conn, "GET", retrieves->path, (struct slice){ 0 });
}

static void on_reply(struct http_conn *conn, const struct http_reply *reply)
{
    struct retrieves *retrieves = container_of(conn->client, struct retrieves, client);
    if (reply->status != 200)
        fatal("GET %s: status %d: %.*s", retrieves->path, reply->status,
              SLICE_ARG(reply->body));
    retrieves->done++;
    retrieves->bytes += reply->body.len;
    retrieves->ended_ns = now_ns();
    histogram_record(&retrieves->latency, retrieves->ended_ns - conn->intended_ns);
    send_next(retrieves, conn);
}

static void make_path(struct retrieves *retrieves)
{
    struct buf reply = { 0 };
    struct slice id = SLICE("\"run_floor\"");
    if (!retrieves->options->floor) {
        int status = http_call(retrieves->options, "POST", "/api/v1/tasks/bench/trigger",
                               SLICE("{\"payload\":{}}"), &reply);
        struct slice body = buf_slice(&reply);
        if (status / 100 == 2 && scan_is_json(body))
            id = scan_member(body, "id");
        if (status / 100 != 2 || id.len < 2)
            fatal("cannot trigger a run: status %d: %.*s", status, SLICE_ARG(body));
    }
    snprintf(retrieves->path, sizeof(retrieves->path), "/api/v3/runs/%.*s", (int)id.len - 2,
             id.ptr + 1);
    buf_finish(&reply);
}

static void run_load(struct retrieves *retrieves, struct poller *poller)
{
    retrieves->started_ns = retrieves->ended_ns = now_ns();
    for (size_t i = 0; i < retrieves->client.count; i++)
        send_next(retrieves, &retrieves->client.conns[i]);
    while (retrieves->client.outstanding) {
        poller_wait(poller, now_ns() + TICK_NS);
        report_progress(&retrieves->report, "%" PRIu64 " retrieves", retrieves->done);
    }
}

static void report_load(struct retrieves *retrieves, int64_t cpu_ns)
{
    struct report *report = &retrieves->report;
    double seconds = (double)(retrieves->ended_ns - retrieves->started_ns) / 1e9;
    double done = (double)retrieves->done;
    report_count(report, "concurrency", "connections", retrieves->options->concurrency);
    report_count(report, "requests", "requests answered", (int64_t)retrieves->done);
    report_number(report, "body_bytes", "bytes of a body",
                  done > 0 ? (double)retrieves->bytes / done : 0, "");
    report_number(report, "per_second", "requests a second",
                  seconds > 0 ? done / seconds : 0, "/s");
    report_latency(report, "latency", "latency", &retrieves->latency);
    if (retrieves->options->pid && retrieves->done)
        report_number(report, "cpu_us_per_request", "server CPU a request",
                      (double)cpu_ns / done / 1000, "us");
}

int retrieve_main(const struct options *options)
{
    struct poller poller;
    struct retrieves *retrieves = mem_new(struct retrieves);
    if (options->concurrency < 1 || options->concurrency > 10000)
        fatal("--concurrency is from 1 to 10000");
    retrieves->options = options;
    report_init(&retrieves->report, options->json, "retrieve");
    make_path(retrieves);
    poller_init(&poller);
    http_client_init(&retrieves->client, &poller, options, (size_t)options->concurrency,
                     on_reply);

    int64_t before = server_cpu_ns(options);
    run_load(retrieves, &poller);
    report_load(retrieves, server_cpu_ns(options) - before);

    report_finish(&retrieves->report);
    http_client_finish(&retrieves->client);
    poller_finish(&poller);
    free(retrieves);
    return 0;
}
