/* scale.c - measures memory per run, and latencies of requests as the table of runs grows.
 *
 *   for every size: make runs up to it ─► memory ─► rounds of requests of each kind
 *
 * After making a million runs, the kernel writes for a while, and a p99 depends on a few
 * requests. So the kinds take turns in rounds, and the round with the median p99 counts.
 *
 * Runs are spread over 100 tags and 10 tasks, so that a page of a list is full at every
 * size. Retrieves, tags and batches are drawn over all runs by a generator with a constant
 * seed. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "fill.h"
#include "histogram.h"
#include "http_client.h"
#include "server.h"

enum { SIZES_MAX = 8, ROUNDS_MAX = 99, TAGS = 100, TASKS = 10 };

static const int64_t TICK_NS = 20000000;

enum kind { TRIGGER, RETRIEVE, LIST, LIST_TAG, LIST_TASK, LIST_BATCH, KIND_COUNT };

static const struct {
    const char *key, *label;
} kinds[KIND_COUNT] = {
    [TRIGGER] = { "trigger", "trigger" },
    [RETRIEVE] = { "retrieve", "retrieve" },
    [LIST] = { "list", "list" },
    [LIST_TAG] = { "list_tag", "list by tag" },
    [LIST_TASK] = { "list_task", "list by task" },
    [LIST_BATCH] = { "list_batch", "list by batch" },
};

struct scale {
    struct http_client client;
    const struct options *options;
    struct poller poller;
    struct report report;
    struct fill fill;
    uint64_t random;
    enum kind kind;
    int64_t left;              /* requests of this kind */
    struct histogram *latency; /* of this kind and round */
    struct histogram rounds[KIND_COUNT][ROUNDS_MAX];
};

/* xorshift64: the same requests every time. */
static size_t draw(struct scale *scale, size_t below)
{
    scale->random ^= scale->random << 13;
    scale->random ^= scale->random >> 7;
    scale->random ^= scale->random << 17;
    return scale->random % below;
}

static void make_path(struct scale *scale, size_t number, char out[192])
{
    static const char LIST_PATH[] = "/api/v1/runs?page%5Bsize%5D=25";
    const struct fill *fill = &scale->fill;
    char tag[FILL_TAG_SIZE];
    switch (scale->kind) {
    case RETRIEVE: snprintf(out, 192, "/api/v3/runs/%s", fill->ids[number].text); return;
    case LIST_TAG:
        fill_tag(fill, number, tag);
        snprintf(out, 192, "%s&filter%%5Btag%%5D=%s", LIST_PATH, tag);
        return;
    case LIST_TASK:
        snprintf(out, 192, "%s&filter%%5BtaskIdentifier%%5D=bench-%zu", LIST_PATH,
                 number % TASKS);
        return;
    case LIST_BATCH:
        snprintf(out, 192, "%s&filter%%5Bbatch%%5D=%s", LIST_PATH,
                 fill->batches[number / FILL_BATCH].text);
        return;
    default: snprintf(out, 192, "%s", LIST_PATH);
    }
}

static void send_next(struct scale *scale, struct http_conn *conn)
{
    char path[192], tag[FILL_TAG_SIZE];
    if (scale->left == 0)
        return;
    scale->left--;
    size_t number = draw(scale, scale->fill.count);
    conn->intended_ns = now_ns();
    if (scale->kind != TRIGGER) {
        make_path(scale, number, path);
        http_conn_send(conn, "GET", path, (struct slice){ 0 });
        return;
    }
    struct buf body = { 0 };
    fill_tag(&scale->fill, number, tag);
    snprintf(path, sizeof(path), "/api/v1/tasks/bench-%zu/trigger", number % TASKS);
    buf_add_text(&body, "{\"payload\":");
    fill_add_payload(&body, scale->fill.payload_bytes);
    buf_print(&body, ",\"options\":{\"tags\":[\"%s\"]}}", tag);
    http_conn_send(conn, "POST", path, buf_slice(&body));
    buf_finish(&body);
}

static void on_reply(struct http_conn *conn, const struct http_reply *reply)
{
    struct scale *scale = container_of(conn->client, struct scale, client);
    if (reply->status != 200)
        fatal("%s: status %d: %.*s", kinds[scale->kind].label, reply->status,
              SLICE_ARG(reply->body));
    histogram_record(scale->latency, now_ns() - conn->intended_ns);
    send_next(scale, conn);
}

static void measure_kind(struct scale *scale, enum kind kind, struct histogram *latency)
{
    histogram_clear(latency);
    scale->latency = latency;
    scale->kind = kind;
    scale->left = scale->options->requests;
    for (size_t i = 0; i < scale->client.count; i++)
        send_next(scale, &scale->client.conns[i]);
    while (scale->client.outstanding) {
        poller_wait(&scale->poller, now_ns() + TICK_NS);
        report_progress(&scale->report, "%zu runs: %s, %" PRId64 " left", scale->fill.count,
                        kinds[kind].label, scale->left);
    }
}

static int by_p99(const void *a, const void *b)
{
    int64_t left = histogram_quantile(a, 0.99), right = histogram_quantile(b, 0.99);
    return (left > right) - (left < right);
}

/* Returns the p99. */
static int64_t report_kind(struct scale *scale, enum kind kind)
{
    char key[64], label[64];
    size_t count = (size_t)scale->options->rounds;
    struct histogram *rounds = scale->rounds[kind], *median = &rounds[count / 2];
    qsort(rounds, count, sizeof(*rounds), by_p99);
    snprintf(key, sizeof(key), "%s_%zu", kinds[kind].key, scale->fill.count);
    snprintf(label, sizeof(label), "%s at %zu runs", kinds[kind].label, scale->fill.count);
    report_latency(&scale->report, key, label, median);
    return histogram_quantile(median, 0.99);
}

static size_t read_sizes(const char *text, size_t sizes[SIZES_MAX])
{
    struct slice rest = slice_of(text), part;
    size_t count = 0;
    uint64_t size;
    while (slice_split(&rest, ',', &part)) {
        if (count == SIZES_MAX || text_to_u64(part, &size) != OK || size == 0 ||
            size % FILL_BATCH || (count && size <= sizes[count - 1]))
            fatal("--sizes: '%s' is not a growing list of multiples of %d", text,
                  FILL_BATCH);
        sizes[count++] = size;
    }
    return count;
}

/* Measures on new connections: others would have been idle during the fill, for longer than
 * the server keeps them. */
static void measure_rounds(struct scale *scale)
{
    http_client_init(&scale->client, &scale->poller, scale->options,
                     (size_t)scale->options->concurrency, on_reply);
    for (int64_t round = 0; round < scale->options->rounds; round++)
        for (int kind = 0; kind < KIND_COUNT; kind++)
            measure_kind(scale, (enum kind)kind, &scale->rounds[kind][round]);
    http_client_finish(&scale->client);
}

static void measure_sizes(struct scale *scale, const size_t *sizes, size_t count)
{
    int64_t first_p99[KIND_COUNT] = { 0 }, last_p99[KIND_COUNT] = { 0 };
    int64_t first_memory = 0, memory = 0;
    for (size_t i = 0; i < count; i++) {
        fill_to(&scale->fill, sizes[i]);
        memory = server_memory_bytes(scale->options);
        if (i == 0)
            first_memory = memory;
        measure_rounds(scale);
        for (int kind = 0; kind < KIND_COUNT; kind++) {
            last_p99[kind] = report_kind(scale, (enum kind)kind);
            if (i == 0)
                first_p99[kind] = last_p99[kind];
        }
    }
    for (int kind = 0; count > 1 && kind < KIND_COUNT; kind++) {
        char key[64], label[64];
        snprintf(key, sizeof(key), "%s_p99_ratio", kinds[kind].key);
        snprintf(label, sizeof(label), "%s p99, last size / first", kinds[kind].label);
        report_number(&scale->report, key, label,
                      (double)last_p99[kind] / (double)first_p99[kind], "x");
    }
    if (count > 1 && scale->options->pid) {
        double runs = (double)(sizes[count - 1] - sizes[0]);
        double bytes = (double)(memory - first_memory) / runs;
        report_number(&scale->report, "bytes_per_run",
                      "server memory a run, payload left out",
                      bytes - (double)scale->fill.payload_bytes, "bytes");
    }
}

int scale_main(const struct options *options)
{
    size_t sizes[SIZES_MAX];
    size_t count = read_sizes(options->sizes, sizes);
    struct turns turns;
    struct scale *scale = mem_new(struct scale);
    if (options->concurrency < 1 || options->concurrency > 10000)
        fatal("--concurrency is from 1 to 10000");
    if (options->rounds < 1 || options->rounds > ROUNDS_MAX)
        fatal("--rounds is from 1 to %d", ROUNDS_MAX);
    scale->options = options;
    scale->random = 0x9e3779b97f4a7c15;
    report_init(&scale->report, options->json, "scale");
    poller_init(&scale->poller);
    fill_init(&scale->fill, options, &scale->report);
    scale->fill.tags = TAGS;
    scale->fill.tasks = TASKS;
    scale->fill.payload_bytes = (size_t)options->payload_bytes;
    scale->fill.delay = "";

    server_read_turns(options, &turns);
    measure_sizes(scale, sizes, count);
    server_report_turns(options, &turns, &scale->report);

    report_finish(&scale->report);
    fill_finish(&scale->fill);
    poller_finish(&scale->poller);
    free(scale);
    return 0;
}
