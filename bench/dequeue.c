/* dequeue.c - measures the time from a trigger to a worker with a held poll.
 *
 *   trigger ─────────────► response: which run   ┐ the later one
 *   held poll ─► the run ─► start ─► complete    ┘ gives the latency
 *        ▲                              │
 *        └──────────────────────────────┘
 *
 * The load is open loop, like that of fanout: a latency counts from the instant at which
 * the trigger should be sent. It includes two commits, that of the run and that of its
 * lease. There are enough workers to have a held poll at any time. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/table.h"
#include "histogram.h"
#include "http_client.h"
#include "server.h"

enum { ID_SIZE = 64, TRIGGER_CONNECTIONS = 16 };
enum step { STEP_DEQUEUE, STEP_START, STEP_COMPLETE };

static const int64_t PATIENCE_NS = 20000000000;
#define PATH "/engine/v1/dev"

struct pending {
    char id[ID_SIZE];
    int64_t meant_ns, taken_ns; /* 0: unknown yet */
};

struct worker_state {
    char run[ID_SIZE], snapshot[ID_SIZE];
};

struct measurement {
    struct http_client triggers, workers;
    const struct options *options;
    struct report report;
    struct histogram latency, acknowledged;
    struct table pending; /* of struct pending, by run id */
    struct worker_state *states;
    struct buf body;
    uint64_t sent, taken;
};

static struct slice pending_key(const void *value)
{
    return slice_of(((const struct pending *)value)->id);
}

/* Copies a string without its quotes; ids need no unescaping. */
static bool copy_id(struct slice json, char out[ID_SIZE])
{
    if (scan_type(json) != SCAN_STRING || json.len < 3 || json.len - 2 >= ID_SIZE)
        return false;
    snprintf(out, ID_SIZE, "%.*s", (int)json.len - 2, json.ptr + 1);
    return true;
}

static void settle(struct measurement *m, const char *id, int64_t meant_ns,
                   int64_t taken_ns)
{
    struct pending *one = table_find(&m->pending, slice_of(id));
    if (!one) {
        one = mem_new(struct pending);
        snprintf(one->id, sizeof(one->id), "%s", id);
        table_insert(&m->pending, one);
    }
    one->meant_ns += meant_ns;
    one->taken_ns += taken_ns;
    if (!one->meant_ns || !one->taken_ns)
        return;
    histogram_record(&m->latency, one->taken_ns - one->meant_ns);
    m->taken++;
    table_remove(&m->pending, slice_of(id));
    free(one);
}

static void expect_ok(const struct http_reply *reply, const char *what)
{
    if (reply->status / 100 != 2 || !scan_is_json(reply->body))
        fatal("%s: status %d: %.*s", what, reply->status, SLICE_ARG(reply->body));
}

static void on_triggered(struct http_conn *conn, const struct http_reply *reply)
{
    struct measurement *m = container_of(conn->client, struct measurement, triggers);
    char id[ID_SIZE];
    expect_ok(reply, "trigger");
    if (!copy_id(scan_member(reply->body, "id"), id))
        fatal("trigger: no id in %.*s", SLICE_ARG(reply->body));
    histogram_record(&m->acknowledged, now_ns() - conn->intended_ns);
    settle(m, id, conn->intended_ns, 0);
}

/* ---- the workers ---- */

static void ask(struct http_conn *conn)
{
    conn->step = STEP_DEQUEUE;
    http_conn_send(conn, "POST", PATH "/dequeue", SLICE("{}"));
}

static void call(struct http_conn *conn, const struct worker_state *state, enum step step,
                 const char *body)
{
    char path[256];
    snprintf(path, sizeof(path), PATH "/runs/%s/snapshots/%s/attempts/%s", state->run,
             state->snapshot, step == STEP_START ? "start" : "complete");
    conn->step = step;
    http_conn_send(conn, "POST", path, slice_of(body));
}

static void take(struct measurement *m, struct http_conn *conn, struct slice reply)
{
    struct worker_state *state = &m->states[conn->index];
    struct slice message;
    struct scan_members all = scan_members(scan_member(reply, "dequeuedMessages"));
    if (!scan_next_element(&all, &message)) {
        ask(conn); /* no run came while the poll was held */
        return;
    }
    if (!copy_id(scan_member(scan_member(message, "run"), "friendlyId"), state->run) ||
        !copy_id(scan_member(scan_member(message, "snapshot"), "friendlyId"),
                 state->snapshot))
        fatal("dequeue: no ids in %.*s", SLICE_ARG(reply));
    settle(m, state->run, 0, now_ns());
    call(conn, state, STEP_START, "{}");
}

static void on_worker(struct http_conn *conn, const struct http_reply *reply)
{
    struct measurement *m = container_of(conn->client, struct measurement, workers);
    struct worker_state *state = &m->states[conn->index];
    char body[160];
    expect_ok(reply, "worker");
    switch ((enum step)conn->step) {
    case STEP_DEQUEUE: take(m, conn, reply->body); break;
    case STEP_START:
        if (!copy_id(scan_member(scan_member(reply->body, "snapshot"), "friendlyId"),
                     state->snapshot))
            fatal("start: no snapshot in %.*s", SLICE_ARG(reply->body));
        snprintf(body, sizeof(body), "{\"completion\":{\"ok\":true,\"id\":\"%s\"}}",
                 state->run);
        call(conn, state, STEP_COMPLETE, body);
        break;
    case STEP_COMPLETE: ask(conn); break;
    }
}

/* ---- the load ---- */

static void register_worker(const struct options *options)
{
    char path[160];
    struct buf reply = { 0 };
    if (!options->project[0])
        fatal("--project is needed, or TRIGGER_PROJECT_REF: its key is --key");
    snprintf(path, sizeof(path), "/api/v1/projects/%s/background-workers",
             options->project);
    int status = http_call(options, "POST", path,
                           SLICE("{\"metadata\":{\"contentHash\":\"bench\",\"tasks\":"
                                 "[{\"id\":\"bench\",\"filePath\":\"bench\"}]}}"),
                           &reply);
    if (status != 200)
        fatal("POST %s: status %d: %.*s", path, status, SLICE_ARG(buf_slice(&reply)));
    buf_finish(&reply);
}

static void run_load(struct measurement *m, struct poller *poller)
{
    uint64_t count = (uint64_t)(m->options->seconds * m->options->rate);
    int64_t interval = (int64_t)(1e9 / m->options->rate), started = now_ns();
    int64_t until = started + (int64_t)(m->options->seconds * 1e9) + PATIENCE_NS;
    while (m->taken < count && now_ns() < until) {
        int64_t due = started + (int64_t)m->sent * interval;
        struct http_conn *conn =
            m->sent < count && now_ns() >= due ? http_client_idle(&m->triggers) : NULL;
        if (conn) {
            conn->intended_ns = due;
            m->sent++;
            http_conn_send(conn, "POST", "/api/v1/tasks/bench/trigger",
                           buf_slice(&m->body));
            continue;
        }
        int64_t wake = m->sent < count && due > now_ns() ? due : now_ns() + 1000000;
        poller_wait(poller, wake);
        report_progress(&m->report, "%" PRIu64 " runs, p50 %" PRId64 " us", m->taken,
                        histogram_quantile(&m->latency, 0.5) / 1000);
    }
}

static void finish(struct measurement *m)
{
    size_t at = 0;
    for (struct pending *one; (one = table_next(&m->pending, &at));)
        free(one);
    table_finish(&m->pending);
    http_client_finish(&m->triggers);
    http_client_finish(&m->workers);
    buf_finish(&m->body);
    free(m->states);
    free(m);
}

int dequeue_main(const struct options *options)
{
    struct poller poller;
    struct turns turns;
    struct measurement *m = mem_new(struct measurement);
    size_t workers = (size_t)options->workers;
    if (options->workers < 1 || options->workers > 90 || options->rate <= 0)
        fatal("--workers is from 1 to 90, --rate above 0");
    m->options = options;
    m->states = mem_new_array(struct worker_state, workers);
    table_init(&m->pending, pending_key);
    report_init(&m->report, options->json, "dequeue");
    buf_add_text(&m->body, "{\"payload\":\"{}\"}");
    register_worker(options);
    poller_init(&poller);
    http_client_init(&m->triggers, &poller, options, TRIGGER_CONNECTIONS, on_triggered);
    http_client_init(&m->workers, &poller, options, workers, on_worker);
    for (size_t i = 0; i < workers; i++) {
        m->workers.conns[i].index = i;
        ask(&m->workers.conns[i]);
    }

    server_read_turns(options, &turns);
    run_load(m, &poller);
    uint64_t lost = m->sent - m->taken;
    report_count(&m->report, "workers", "workers that poll", options->workers);
    report_number(&m->report, "rate", "triggers a second", options->rate, "/s");
    report_count(&m->report, "runs", "runs taken", (int64_t)m->taken);
    report_count(&m->report, "lost", "not taken", (int64_t)lost);
    report_latency(&m->report, "latency", "trigger to dequeue", &m->latency);
    report_latency(&m->report, "ack", "trigger to its answer", &m->acknowledged);
    server_report_turns(options, &turns, &m->report);
    report_finish(&m->report);
    finish(m);
    poller_finish(&poller);
    return lost ? 1 : 0;
}
