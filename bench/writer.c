/* writer.c - a client that triggers and updates runs at a steady rate despite failures. */
#include "writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"

enum {
    CONNECTIONS = 16,
    CREATE_EVERY = 5,
    TRIES_MAX = 20,
    FAILURE_MAX = 300,
};

static const int64_t NS_PER_S = 1000000000;
static const int64_t CUT_OFF_NS = 100000000; /* pause after a broken connection */

static void on_reply(struct http_conn *conn, const struct http_reply *reply);

void writer_init(struct writer *writer, struct poller *poller,
                 const struct options *options)
{
    *writer = (struct writer){ .options = options, .tags = (size_t)options->tags };
    text_random(writer->prefix, 8, "123456789abcdefghijkmnopqrstuvwxyz");
    writer->runs = mem_new_array(struct written_run, writer->tags * WRITER_SLOTS);
    http_client_init(&writer->client, poller, options, CONNECTIONS, on_reply);
}

void writer_finish(struct writer *writer)
{
    http_client_finish(&writer->client);
    buf_finish(&writer->failure);
    free(writer->runs);
    free(writer->changes);
}

void writer_begin(struct writer *writer, double changes_a_second, uint64_t wanted)
{
    writer->interval_ns = (int64_t)(1e9 / changes_a_second);
    writer->start_ns = now_ns();
    writer->begun = 0;
    writer->wanted = wanted;
}

void writer_end(struct writer *writer)
{
    writer->wanted = writer->begun;
}

void writer_measure(struct writer *writer)
{
    writer->done = writer->told_again = writer->cut_off = writer->refused = 0;
    buf_clear(&writer->failure);
    histogram_clear(&writer->latency);
}

bool writer_is_idle(const struct writer *writer)
{
    return writer->client.outstanding == 0 && writer->waiting == 0;
}

void writer_tag(const struct writer *writer, size_t number, char out[FILL_TAG_SIZE])
{
    snprintf(out, FILL_TAG_SIZE, "%s-%zu", writer->prefix, number % writer->tags);
}

/* ---- responses ---- */

static void keep_id(struct written_run *run, struct slice reply)
{
    struct slice id = scan_is_json(reply) ? scan_member(reply, "id") : (struct slice){ 0 };
    if (id.len < 2 || id.len - 2 >= FILL_ID_SIZE)
        fatal("a trigger was answered without an id: %.*s", SLICE_ARG(reply));
    memcpy(run->id.text, id.ptr + 1, id.len - 2);
    run->id.text[id.len - 2] = 0;
}

static void note_failure(struct writer *writer, const struct http_reply *reply)
{
    struct slice body = reply->body;
    if (body.len > FAILURE_MAX)
        body.len = FAILURE_MAX;
    if (writer->failure.len == 0)
        buf_print(&writer->failure, "status %d: %.*s", reply->status, SLICE_ARG(body));
}

static void send_again(struct writer *writer, struct writer_change *change, int64_t in_ns)
{
    if (++change->tries > TRIES_MAX)
        fatal("a request was not answered %d times", TRIES_MAX);
    change->again_ns = now_ns() + in_ns;
    writer->waiting++;
}

static void on_reply(struct http_conn *conn, const struct http_reply *reply)
{
    struct writer *writer = container_of(conn->client, struct writer, client);
    struct writer_change *change = &writer->changes[conn->index];
    struct written_run *run = &writer->runs[change->run];
    int64_t seconds;
    if (reply->status / 100 == 2) {
        writer->done++;
        histogram_record(&writer->latency, now_ns() - change->intended_ns);
        if (change->creates)
            keep_id(run, reply->body);
        run->busy = false;
    } else if (reply->status == 0) {
        writer->cut_off++;
        note_failure(writer, reply);
        send_again(writer, change, CUT_OFF_NS);
    } else if (reply->retry_after.ptr && text_to_i64(reply->retry_after, &seconds) == OK) {
        writer->told_again++;
        send_again(writer, change, seconds * NS_PER_S);
    } else {
        writer->refused++;
        note_failure(writer, reply);
        run->busy = false;
    }
}

/* ---- requests ---- */

static void send_change(struct writer *writer, struct http_conn *conn, size_t index)
{
    struct writer_change *change = &writer->changes[index];
    char path[96] = "/api/v1/tasks/bench/trigger", tag[FILL_TAG_SIZE];
    struct buf body = { 0 };
    conn->index = index;
    change->again_ns = 0;
    writer_tag(writer, change->run, tag);
    if (change->creates) {
        buf_print(&body,
                  "{\"payload\":\"x\",\"options\":{\"tags\":[\"%s\"],\"delay\":\"1d\","
                  "\"idempotencyKey\":\"%s.%zu\",\"metadata\":{\"n\":%zu}}}",
                  tag, writer->prefix, index, index + 1);
    } else {
        snprintf(path, sizeof(path), "/api/v1/runs/%s/metadata",
                 writer->runs[change->run].id.text);
        buf_print(&body, "{\"metadata\":{\"n\":%zu}}", index + 1);
    }
    http_conn_send(conn, change->creates ? "POST" : "PUT", path, buf_slice(&body));
    buf_finish(&body);
}

/* Returns the next run with an id and no change in flight; run_count if there is none. */
static size_t next_run(struct writer *writer)
{
    for (size_t i = 0; i < writer->run_count; i++) {
        size_t number = writer->run_next++ % writer->run_count;
        if (writer->runs[number].id.text[0] && !writer->runs[number].busy)
            return number;
    }
    return writer->run_count;
}

static void begin_change(struct writer *writer, struct http_conn *conn, int64_t due_ns)
{
    bool first = writer->run_count < writer->tags;
    bool creates = (first || writer->change_count % CREATE_EVERY == 0) &&
                   writer->run_count < writer->tags * WRITER_SLOTS;
    size_t run = creates ? writer->run_count : next_run(writer);
    if (!creates && run == writer->run_count)
        return; /* all are busy: skip this instant */
    writer->run_count += creates;
    if (writer->change_count == writer->change_room) {
        writer->change_room = 2 * writer->change_room + 1024;
        writer->changes =
            mem_resize(writer->changes, writer->change_room * sizeof(struct writer_change));
    }
    size_t index = writer->change_count++;
    writer->changes[index] = (struct writer_change){ .run = (uint32_t)run,
                                                     .creates = creates,
                                                     .intended_ns = due_ns };
    writer->runs[run].busy = true;
    send_change(writer, conn, index);
}

static void send_waiting(struct writer *writer, int64_t now)
{
    for (size_t i = 0; i < writer->change_count && writer->waiting; i++) {
        struct writer_change *change = &writer->changes[i];
        struct http_conn *conn = http_client_idle(&writer->client);
        if (!conn)
            return;
        if (change->again_ns == 0 || change->again_ns > now)
            continue;
        writer->waiting--;
        send_change(writer, conn, i);
    }
}

void writer_step(struct writer *writer)
{
    int64_t now = now_ns();
    if (writer->waiting)
        send_waiting(writer, now);
    while (writer->begun < writer->wanted) {
        int64_t due_ns = writer->start_ns + (int64_t)writer->begun * writer->interval_ns;
        struct http_conn *conn = http_client_idle(&writer->client);
        if (due_ns > now || !conn)
            return; /* its intended instant stays */
        writer->begun++;
        begin_change(writer, conn, due_ns);
    }
}

/* ---- the stored states ---- */

static uint32_t read_run(const struct writer *writer, const struct written_run *run)
{
    char path[96];
    struct buf reply = { 0 };
    int64_t n = 0;
    snprintf(path, sizeof(path), "/api/v3/runs/%s", run->id.text);
    int status = http_call(writer->options, "GET", path, (struct slice){ 0 }, &reply);
    struct slice text = buf_slice(&reply);
    if (status != 200 || !scan_is_json(text) || scan_type(text) != SCAN_OBJECT)
        fatal("a run cannot be read (%d): %.*s", status, SLICE_ARG(text));
    struct slice metadata = scan_member(text, "metadata");
    if (scan_type(metadata) != SCAN_OBJECT ||
        text_to_i64(scan_member(metadata, "n"), &n) != OK)
        fatal("the metadata of a run is none of ours: %.*s", SLICE_ARG(metadata));
    buf_finish(&reply);
    return (uint32_t)n;
}

void writer_read_newest(const struct writer *writer, uint32_t *newest_of)
{
    for (size_t i = 0; i < writer->run_count; i++)
        newest_of[i] = read_run(writer, &writer->runs[i]);
}
