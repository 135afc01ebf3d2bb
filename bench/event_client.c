/* event_client.c - runs.v1 as text/event-stream, as curl -N reads it.
 *
 *   connected ─► GET /realtime/v1/events ─► 200, chunks ─► lines ─► data: … ─► on_message
 *
 * A message of runs.v1 is one line. Like an EventSource, it keeps the last id for a
 * reconnect, and the pause that the server requests (retry). */
#include "client.h"

#include <string.h>

#include "base/text.h"
#include "http_head.h"

static void ask(struct client *client)
{
    const struct options *options = client->group->options;
    struct buf out = { 0 };
    buf_print(&out,
              "GET /realtime/v1/events?%s=%s HTTP/1.1\r\nhost: %s\r\n"
              "authorization: Bearer %s\r\naccept: text/event-stream\r\n",
              client->wish.name, client->wish.value, options->host, options->key);
    if (client->offset[0])
        buf_print(&out, "last-event-id: %s\r\n", client->offset);
    buf_add_text(&out, "\r\n");
    client_send(client, buf_slice(&out));
    buf_finish(&out);
}

static size_t take_head(struct client *client, struct slice in)
{
    struct http_head head;
    if (!http_head_read(in, &head))
        return 0;
    if (head.status != 200 || !head.chunked) {
        struct slice line;
        slice_split(&in, '\r', &line);
        client_fail(client, ABNORMAL, line);
        return 0;
    }
    client->state = CLIENT_OPEN;
    client->group->opened++;
    return head.len;
}

static void take_line(struct client *client, struct slice line, int64_t received_ns)
{
    static const char DATA[] = "data: ", ID[] = "id: ", RETRY[] = "retry: ";
    if (slice_starts(line, DATA)) {
        client->group->handler->on_message(client, slice_from(line, sizeof(DATA) - 1),
                                           received_ns);
    } else if (slice_starts(line, ID) && line.len - sizeof(ID) < sizeof(client->offset)) {
        struct slice id = slice_from(line, sizeof(ID) - 1);
        memcpy(client->offset, id.ptr, id.len);
        client->offset[id.len] = 0;
    } else if (slice_starts(line, RETRY)) {
        (void)text_to_i64(slice_from(line, sizeof(RETRY) - 1), &client->return_ms);
    }
}

static void take_lines(struct client *client, struct slice text, int64_t received_ns)
{
    const char *end;
    while (text.len && (end = memchr(text.ptr, '\n', text.len))) {
        struct slice line = { text.ptr, (size_t)(end - text.ptr) };
        text = slice_from(text, line.len + 1);
        if (client->line.len) {
            buf_add(&client->line, line);
            line = buf_slice(&client->line);
        }
        take_line(client, line, received_ns);
        buf_clear(&client->line);
    }
    buf_add(&client->line, text);
}

static size_t take(struct client *client, struct slice in, int64_t received_ns)
{
    struct slice content;
    if (client->state == CLIENT_BEGINNING)
        return take_head(client, in);
    size_t used = http_chunk_read(in, &content);
    if (used && content.len == 0)
        client_fail(client, GOING_AWAY, SLICE("the server ended the stream"));
    else if (used)
        take_lines(client, content, received_ns);
    return used;
}

const struct transport event_transport = { "sse", ask, take, NULL };
