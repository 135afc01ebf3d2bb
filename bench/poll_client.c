/* poll_client.c - the long poll of the official SDKs, as their ShapeStream does it.
 *
 *   connected ─► GET ?offset=-1 ─► offset, handle ─► GET ?live=true ─► … at once again
 *
 * It sends one request at a time on one keep-alive connection. The position of a response
 * is sent back unchanged; the poll is live after the first response that is up to date. On
 * a new connection the first poll is not live: its response shows that the client is back,
 * at the cost of a request that an SDK does not send. Unlike the SDKs, it does not accept
 * gzip, for which bodies of one change are too short. */
#include "client.h"

#include <stdio.h>
#include <string.h>

#include "http_head.h"

static void add_path(const struct client *client, struct buf *out)
{
    const struct wish *wish = &client->wish;
    if (strcmp(wish->name, "run") == 0)
        buf_print(out, "/realtime/v1/runs/%s?", wish->value);
    else if (strcmp(wish->name, "batch") == 0)
        buf_print(out, "/realtime/v1/batches/%s?", wish->value);
    else
        buf_add_text(out, "/realtime/v1/runs?");
}

/* Sends the request; parameters are sorted, as in the SDKs. */
static void ask(struct client *client)
{
    const struct options *options = client->group->options;
    struct buf out = { 0 };
    buf_add_text(&out, "GET ");
    add_path(client, &out);
    if (client->live)
        buf_print(&out, "cursor=%s&handle=%s&live=true&", client->cursor, client->handle);
    else if (client->handle[0])
        buf_print(&out, "handle=%s&", client->handle);
    buf_print(&out, "log=full&offset=%s", client->offset);
    if (strcmp(client->wish.name, "tags") == 0)
        buf_print(&out, "&tags=%s", client->wish.value);
    buf_print(&out,
              " HTTP/1.1\r\nhost: %s\r\nconnection: keep-alive\r\n"
              "authorization: Bearer %s\r\ntrigger-version: 4.8.3\r\n"
              "x-trigger-electric-version: 1.0.0-beta.1\r\n"
              "x-trigger-api-version: 2025-07-16\r\naccept: */*\r\n"
              "accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\n\r\n",
              options->host, options->key);
    client_send(client, buf_slice(&out));
    buf_finish(&out);
}

static void begin(struct client *client)
{
    client->live = false;
    if (!client->handle[0])
        snprintf(client->offset, sizeof(client->offset), "-1");
    ask(client);
}

static bool keep(char *place, size_t size, struct slice value)
{
    if (!value.ptr || value.len >= size)
        return false;
    memcpy(place, value.ptr, value.len);
    place[value.len] = 0;
    return true;
}

static bool keep_position(struct client *client, const struct http_head *head)
{
    bool given = keep(client->offset, sizeof(client->offset),
                      http_head_field(head, "electric-offset")) &&
                 keep(client->handle, sizeof(client->handle),
                      http_head_field(head, "electric-handle"));
    if (client->live)
        given = given && keep(client->cursor, sizeof(client->cursor),
                              http_head_field(head, "electric-cursor"));
    return given;
}

static size_t take(struct client *client, struct slice in, int64_t received_ns)
{
    struct http_head head;
    if (!http_head_read(in, &head))
        return 0;
    if (head.status != 200 || head.chunked || !keep_position(client, &head)) {
        struct slice line;
        slice_split(&in, '\r', &line);
        client_fail(client, ABNORMAL, line);
        return 0;
    }
    size_t len = head.len + head.body_len;
    if (in.len < len)
        return 0;
    if (client->state == CLIENT_BEGINNING)
        client->group->opened++;
    client->state = CLIENT_OPEN;
    struct slice body = { in.ptr + head.len, head.body_len };
    client->group->handler->on_message(client, body, received_ns);
    client->live = http_head_field(&head, "electric-up-to-date").ptr != NULL;
    if (head.closes)
        client_fail(client, GOING_AWAY, SLICE("the server closes the connection"));
    else
        ask(client);
    return len;
}

const struct transport poll_transport = { "longpoll", begin, take, NULL };
