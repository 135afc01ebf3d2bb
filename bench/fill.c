/* fill.c - makes runs for the other measurements, as fast as the server takes them. */
#include "fill.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"

enum { CONNECTIONS = 4 };

static const int64_t TICK_NS = 100000000;

struct filling {
    struct http_client client;
    struct fill *fill;
    size_t next; /* first run of the next batch */
    size_t to;   /* final number of runs */
    size_t done; /* made here */
};

void fill_init(struct fill *fill, const struct options *options, struct report *report)
{
    *fill = (struct fill){ .options = options, .report = report, .tags = 1, .tasks = 1 };
    fill->payload_bytes = 16;
    fill->delay = "24h";
    snprintf(fill->prefix, sizeof(fill->prefix), "bench-");
    text_random(fill->prefix + strlen(fill->prefix), 8,
                "123456789abcdefghijkmnopqrstuvwxyz");
}

void fill_finish(struct fill *fill)
{
    free(fill->ids);
    free(fill->batches);
}

size_t fill_batch_count(const struct fill *fill)
{
    return (fill->count + FILL_BATCH - 1) / FILL_BATCH;
}

void fill_tag(const struct fill *fill, size_t number, char out[FILL_TAG_SIZE])
{
    snprintf(out, FILL_TAG_SIZE, "%s-%zu", fill->prefix, number % fill->tags);
}

void fill_add_text(struct buf *out, const char *unit, size_t bytes)
{
    size_t len = strlen(unit), count = bytes > 2 ? (bytes - 2) / len : 0;
    buf_add_char(out, '"');
    char *to = buf_reserve(out, count * len);
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * len, unit, len);
    out->len += count * len;
    buf_add_char(out, '"');
}

void fill_add_payload(struct buf *out, size_t bytes)
{
    fill_add_text(out, "x", bytes);
}

void fill_add_item(const struct fill *fill, size_t number, int64_t n, struct buf *out)
{
    char tag[FILL_TAG_SIZE];
    fill_tag(fill, number, tag);
    buf_print(out, "{\"task\":\"bench-%zu\",\"payload\":", number % fill->tasks);
    fill_add_payload(out, fill->payload_bytes);
    buf_print(out, ",\"options\":{\"tags\":[\"%s\"]", tag);
    if (fill->delay[0])
        buf_print(out, ",\"delay\":\"%s\"", fill->delay);
    if (n)
        buf_print(out, ",\"metadata\":{\"n\":%" PRId64 "}", n);
    buf_add_text(out, "}}");
}

static void send_batch(struct filling *filling, struct http_conn *conn)
{
    struct fill *fill = filling->fill;
    struct buf body = { 0 };
    size_t end = filling->next + FILL_BATCH;
    if (end > filling->to)
        end = filling->to;
    buf_add_text(&body, "{\"items\":[");
    for (size_t i = filling->next; i < end; i++) {
        if (i > filling->next)
            buf_add_char(&body, ',');
        fill_add_item(fill, i, 0, &body);
    }
    buf_add_text(&body, "]}");
    conn->index = filling->next;
    filling->next = end;
    http_conn_send(conn, "POST", "/api/v1/tasks/batch", buf_slice(&body));
    buf_finish(&body);
}

static void copy_id(struct fill_id *id, struct slice object)
{
    struct slice value = scan_member(object, "id");
    if (value.len < 2 || value.len - 2 >= FILL_ID_SIZE)
        fatal("the server's reply to a batch has no id that the bench can keep");
    memcpy(id->text, value.ptr + 1, value.len - 2);
    id->text[value.len - 2] = 0;
}

static void on_filled(struct http_conn *conn, const struct http_reply *reply)
{
    struct filling *filling = container_of(conn->client, struct filling, client);
    struct fill *fill = filling->fill;
    if (reply->status == 401)
        fatal("--key, or TRIGGER_SECRET_KEY, is no secret key of this gateway");
    if (reply->status / 100 != 2)
        fatal("POST /api/v1/tasks/batch: status %d: %.*s", reply->status,
              SLICE_ARG(reply->body));
    if (!scan_is_json(reply->body))
        fatal("the server at --url is no gateway: runcast-floor wants --floor");
    copy_id(&fill->batches[conn->index / FILL_BATCH], reply->body);

    struct scan_members runs = scan_members(scan_member(reply->body, "runs"));
    struct slice run;
    size_t i = conn->index;
    for (; i < filling->to && scan_next_element(&runs, &run); i++)
        copy_id(&fill->ids[i], run);
    filling->done += i - conn->index;
    if (filling->next < filling->to)
        send_batch(filling, conn);
}

void fill_to(struct fill *fill, size_t count)
{
    if (count <= fill->count)
        return;
    struct poller poller;
    struct filling filling = { .fill = fill, .to = count };
    size_t batches = (count + FILL_BATCH - 1) / FILL_BATCH;
    fill->ids = mem_resize(fill->ids, count * sizeof(struct fill_id));
    fill->batches = mem_resize(fill->batches, batches * sizeof(struct fill_id));
    if (fill->count % FILL_BATCH)
        fatal("the table grows from a multiple of %d runs", FILL_BATCH);

    filling.next = fill->count;
    poller_init(&poller);
    http_client_init(&filling.client, &poller, fill->options, CONNECTIONS, on_filled);
    for (int i = 0; i < CONNECTIONS && filling.next < count; i++)
        send_batch(&filling, http_client_idle(&filling.client));
    while (filling.client.outstanding) {
        report_progress(fill->report, "making runs: %zu of %zu", fill->count + filling.done,
                        count);
        poller_wait(&poller, now_ns() + TICK_NS);
    }
    if (filling.done != count - fill->count)
        fatal("the server's replies to batches name too few runs");
    fill->count = count;
    http_client_finish(&filling.client);
    poller_finish(&poller);
}
