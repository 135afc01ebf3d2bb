/* changes.c - sends each change when it is due, as a request, a batch or a message. */
#include "changes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "server.h"
#include "ws_client.h"

enum { CONNECTIONS_MIN = 16, FAILURE_MAX = 300 };

static const size_t UNHEARD = SIZE_MAX; /* http_conn.index for a run without subscribers */

static const int64_t FAR_NS = 1000000000;

static void on_changed(struct http_conn *conn, const struct http_reply *reply)
{
    struct changes *changes = container_of(conn->client, struct changes, client);
    uint64_t count = changes->by_batch ? changes->burst : 1;
    if (reply->status / 100 == 2) {
        changes->acked += count;
        if (!changes->by_batch && conn->index != UNHEARD)
            changes->acked_of[conn->index]++;
        histogram_record(&changes->latency, now_ns() - conn->intended_ns);
        return;
    }
    changes->failed += count;
    if (changes->failure.len)
        return;
    struct slice body = reply->body;
    if (body.len > FAILURE_MAX)
        body.len = FAILURE_MAX;
    buf_print(&changes->failure, "status %d: %.*s", reply->status, SLICE_ARG(body));
}

void changes_init(struct changes *changes, struct poller *poller,
                  const struct options *options, const struct fill *fill)
{
    *changes = (struct changes){ .options = options,
                                 .fill = fill,
                                 .burst = (size_t)options->burst };
    changes->by_batch = strcmp(options->by, "batch") == 0;
    changes->acked_of = mem_new_array(uint32_t, fill->count);
    size_t connections = changes->burst;
    if (connections < CONNECTIONS_MIN || changes->by_batch)
        connections = CONNECTIONS_MIN;
    http_client_init(&changes->client, poller, options, connections, on_changed);
}

void changes_finish(struct changes *changes)
{
    http_client_finish(&changes->client);
    buf_finish(&changes->failure);
    free(changes->acked_of);
}

void changes_begin(struct changes *changes, double bursts_a_second, uint64_t wanted)
{
    changes->interval_ns = (int64_t)(1e9 / bursts_a_second);
    changes->start_ns = now_ns() + changes->interval_ns;
    changes->wanted = changes->allowed = wanted;
    changes->sent = changes->acked = changes->failed = 0;
    changes->heard = changes->unheard = (struct burst_cost){ 0 };
    changes->burst_cpu_ns = 0;
    memset(changes->acked_of, 0, changes->fill->count * sizeof(uint32_t));
    histogram_clear(&changes->latency);
}

/* Returns true if the next change is for a run without subscribers. */
static bool is_unheard(const struct changes *changes)
{
    return changes->unheard_fill && changes->sent / changes->burst % 2;
}

/* Counts the CPU of the last burst when the next one begins. If the last one is not
 * answered yet, the cost of neither is known. */
static void count_burst(struct changes *changes)
{
    struct burst_cost *last = is_unheard(changes) ? &changes->heard : &changes->unheard;
    int64_t cpu_ns = changes->client.outstanding ? 0 : server_cpu_ns(changes->options);
    if (cpu_ns && changes->burst_cpu_ns) {
        last->cpu_ns += cpu_ns - changes->burst_cpu_ns;
        last->bursts++;
    }
    changes->burst_cpu_ns = cpu_ns;
}

/* Returns the run of the next change. Runs take turns, in both fills at the same pace. */
static const char *next_run(const struct changes *changes, size_t *index)
{
    uint64_t number = changes->sent;
    if (changes->unheard_fill)
        number = number / changes->burst / 2 * changes->burst + number % changes->burst;
    if (is_unheard(changes)) {
        *index = UNHEARD;
        return changes->unheard_fill->ids[number % changes->unheard_fill->count].text;
    }
    *index = number % changes->fill->count;
    return changes->fill->ids[*index].text;
}

static void send_metadata(struct changes *changes, struct http_conn *conn)
{
    char path[96];
    struct buf body = { 0 };
    const char *run = next_run(changes, &conn->index);
    snprintf(path, sizeof(path), "/api/v1/runs/%s/metadata", run);
    buf_print(&body, "{\"metadata\":{\"n\":%" PRId64, conn->intended_ns);
    if (changes->options->pad) {
        buf_add_text(&body, ",\"pad\":");
        fill_add_payload(&body, (size_t)changes->options->pad);
    }
    buf_add_text(&body, "}}");
    changes->sent++;
    http_conn_send(conn, "PUT", path, buf_slice(&body));
    buf_finish(&body);
}

/* Publishes what a gateway with one run would send, in the requested size. */
static void publish(struct changes *changes, int64_t intended_ns)
{
    static const char END[] = "}]]}";
    struct buf message = { 0 };
    uint64_t number = ++changes->published;
    buf_print(&message,
              "{\"op\":\"patch\",\"seq\":%" PRIu64 ",\"rows\":[[\"%s\",%" PRIu64
              ",{\"metadata\":{\"n\":%" PRId64 "},\"pad\":",
              number, changes->fill->ids[0].text, number, intended_ns);
    int64_t left = changes->options->frame_bytes - (int64_t)(message.len + sizeof(END) - 1);
    fill_add_payload(&message, left > 0 ? (size_t)left : 0);
    buf_add_text(&message, END);
    ws_client_publish(changes->publisher, buf_slice(&message));
    buf_finish(&message);
    changes->sent++;
    changes->acked++;
    changes->acked_of[0]++;
}

static void send_batch(struct changes *changes, struct http_conn *conn)
{
    struct buf body = { 0 };
    buf_add_text(&body, "{\"items\":[");
    for (size_t i = 0; i < changes->burst; i++) {
        if (i)
            buf_add_char(&body, ',');
        fill_add_item(changes->fill, i, conn->intended_ns, &body);
    }
    buf_add_text(&body, "]}");
    changes->sent += changes->burst;
    http_conn_send(conn, "POST", "/api/v1/tasks/batch", buf_slice(&body));
    buf_finish(&body);
}

int64_t changes_step(struct changes *changes)
{
    int64_t now = now_ns();
    while (changes->sent < changes->wanted && changes->sent < changes->allowed) {
        int64_t burst = (int64_t)(changes->sent / changes->burst);
        int64_t due_ns = changes->start_ns + burst * changes->interval_ns;
        if (due_ns > now)
            return due_ns;
        if (changes->publisher) {
            publish(changes, due_ns);
            continue;
        }
        struct http_conn *conn = http_client_idle(&changes->client);
        if (!conn)
            break; /* a response wakes us; the intended instant stays */
        conn->intended_ns = due_ns;
        if (changes->unheard_fill && changes->sent % changes->burst == 0)
            count_burst(changes);
        if (changes->by_batch)
            send_batch(changes, conn);
        else
            send_metadata(changes, conn);
    }
    return now + FAR_NS;
}

bool changes_done(const struct changes *changes)
{
    return changes->sent >= changes->wanted && changes->client.outstanding == 0;
}

void changes_read_newest(const struct changes *changes, const struct options *options,
                         int64_t *n_of)
{
    struct buf reply = { 0 };
    char path[96];
    for (size_t i = 0; i < changes->fill->count; i++) {
        snprintf(path, sizeof(path), "/api/v3/runs/%s", changes->fill->ids[i].text);
        buf_clear(&reply);
        int status = http_call(options, "GET", path, (struct slice){ 0 }, &reply);
        struct slice run = buf_slice(&reply);
        if (status != 200 || !scan_is_json(run) || scan_type(run) != SCAN_OBJECT)
            fatal("a run cannot be read (%d): %.*s", status, SLICE_ARG(run));
        struct slice metadata = scan_member(run, "metadata");
        n_of[i] = 0;
        if (scan_type(metadata) == SCAN_OBJECT)
            (void)text_to_i64(scan_member(metadata, "n"), &n_of[i]);
    }
    buf_finish(&reply);
}
