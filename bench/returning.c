/* returning.c - many clients that reconnect when their connection closes. */
#include "returning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"

enum {
    CONNECTING_MAX = 256,
    FIRST_WAIT_MS = 500, /* max after the first refusal; then doubles */
    WAIT_MAX_MS = 30000,
    EVENT_SOURCE_MS = 3000, /* an EventSource's pause, unless the server sets another */
};

static const int64_t NS_PER_MS = 1000000;

static struct returning_client *self(struct client *client)
{
    return container_of(client, struct returning_client, client);
}

static struct returning *owner_of(struct client *client)
{
    return container_of((struct client_handler *)client->group->handler, struct returning,
                        handler);
}

/* Returns the kind: six, two and two of ten. */
static enum returning_kind kind_of(size_t number)
{
    static const enum returning_kind kinds[] = {
        RETURNING_WS, RETURNING_WS, RETURNING_POLL, RETURNING_WS, RETURNING_EVENTS,
        RETURNING_WS, RETURNING_WS, RETURNING_POLL, RETURNING_WS, RETURNING_EVENTS,
    };
    return kinds[number % (sizeof(kinds) / sizeof(kinds[0]))];
}

/* ---- known states ---- */

static void take_rows(struct returning *returning, const struct returning_client *client,
                      const struct seen_message *message)
{
    const struct writer *writer = returning->writer;
    size_t number = (size_t)(client - returning->all);
    for (size_t i = 0; i < message->row_count; i++) {
        size_t n = (size_t)message->rows[i].n;
        if (n == 0)
            continue; /* something other than its metadata has changed */
        if (n > writer->change_count)
            fatal("a client was sent a change that nobody made");
        size_t run = writer->changes[n - 1].run;
        uint32_t *newest = &returning->newest[number * WRITER_SLOTS + run / writer->tags];
        if (run % writer->tags != client->tag)
            fatal("a client was sent a run that it has not asked for");
        if (n > *newest)
            *newest = (uint32_t)n;
    }
}

/* Moves the position as include/runcast/protocol.h defines it, for one subscription: a
 * frame with "more" does not complete it. */
static void move_position(struct client *client, const struct seen_message *message)
{
    if (message->op == SEEN_ROWS && message->more)
        return;
    client->seq = (uint64_t)message->seq;
    if (!message->more)
        client->base = client->seq;
}

static void become_live(struct returning *returning, struct returning_client *client)
{
    if (client->live)
        return;
    client->live = true;
    client->tries = 0;
    returning->live++;
    if (!client->left || client->back_ns || !returning->has_next)
        return;
    client->back_ns = now_ns() - returning->since_ns;
    returning->back++;
}

static void be_told(struct returning_client *client, const struct seen_message *message)
{
    if (client->kind == RETURNING_WS)
        client->due_ns = now_ns() + message->in_ms * NS_PER_MS;
}

static void on_message(struct client *connection, struct slice payload, int64_t received_ns)
{
    struct returning *returning = owner_of(connection);
    struct returning_client *client = self(connection);
    const struct seen_message *message = seen_parse(&returning->seen, payload);
    (void)received_ns;
    if (!message)
        fatal("the server sent what is no message: %.*s", SLICE_ARG(payload));
    switch (message->op) {
    case SEEN_WELCOME:
        snprintf(connection->epoch, sizeof(connection->epoch), "%s", message->epoch);
        return;
    case SEEN_OK: returning->snapshots += returning->since_ns && !message->resumed; return;
    case SEEN_ROWS:
    case SEEN_PATCH:
    case SEEN_PING:
        take_rows(returning, client, message);
        move_position(connection, message);
        if (!message->more)
            become_live(returning, client);
        return;
    case SEEN_DRAIN: be_told(client, message); return;
    case SEEN_ERROR: fatal("the server refused: %.*s", SLICE_ARG(payload));
    case SEEN_DONE:
    case SEEN_OTHER: return;
    }
}

/* ---- reconnecting ---- */

static int64_t back_off_ms(const struct returning *returning,
                           struct returning_client *client)
{
    uint64_t number = (uint64_t)(client - returning->all);
    int64_t most = FIRST_WAIT_MS;
    for (unsigned i = 0; i < client->tries && most < WAIT_MAX_MS; i++)
        most *= 2;
    client->tries++;
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) * client->tries;
    return (int64_t)((mixed >> 32) % (uint64_t)most);
}

static int64_t away_ms(const struct returning *returning, struct returning_client *client,
                       unsigned code)
{
    if (code == ABNORMAL)
        return back_off_ms(returning, client);
    if (client->kind != RETURNING_EVENTS)
        return 0;
    int64_t told = client->client.return_ms;
    return told ? told : EVENT_SOURCE_MS;
}

static void on_closed(struct client *connection, unsigned code, struct slice reason)
{
    struct returning *returning = owner_of(connection);
    struct returning_client *client = self(connection);
    if (!returning->since_ns)
        fatal("a client was closed (%u): %.*s", code, SLICE_ARG(reason));
    if (code == ABNORMAL ||
        code / 100 == 40) { /* otherwise it was served, and knows when to reconnect */
        returning->refused++;
        if (returning->refusal.len == 0)
            buf_print(&returning->refusal, "%u %.*s", code, SLICE_ARG(reason));
    }
    returning->live -= client->live;
    client->live = false;
    client->left = true;
    if (client->due_ns == 0)
        client->due_ns = now_ns() + away_ms(returning, client, code) * NS_PER_MS;
}

void returning_step(struct returning *returning)
{
    int64_t now = now_ns();
    for (size_t i = 0; i < returning->begun; i++) {
        struct returning_client *client = &returning->all[i];
        if (client->due_ns == 0 || client->due_ns > now)
            continue;
        client->due_ns = 0;
        if (client->client.state != CLIENT_CLOSED) {
            client_close(&client->client);
            returning->live -= client->live;
            client->live = false;
            client->left = true;
        }
        client_come_back(&client->client);
    }
}

/* ---- all clients ---- */

void returning_init(struct returning *returning, struct poller *poller,
                    const struct options *options, const struct writer *writer)
{
    static const char *const transports[] = { "ws", "longpoll", "sse" };
    *returning =
        (struct returning){ .writer = writer, .count = (size_t)options->subscribers };
    returning->handler = (struct client_handler){ on_message, on_closed };
    for (size_t i = 0; i < RETURNING_KINDS; i++) {
        returning->options[i] = *options;
        returning->options[i].transport = transports[i];
        returning->options[i].encoding = "json";
        client_group_init(&returning->groups[i], poller, &returning->options[i],
                          &returning->handler);
        returning->groups[i].source_net += (unsigned)i; /* each kind has its own ports */
    }
    returning->all = mem_new_array(struct returning_client, returning->count);
    returning->newest = mem_new_array(uint32_t, returning->count * WRITER_SLOTS);
    seen_init(&returning->seen);
}

void returning_finish(struct returning *returning)
{
    for (size_t i = 0; i < returning->begun; i++)
        client_close(&returning->all[i].client);
    for (size_t i = 0; i < RETURNING_KINDS; i++)
        client_group_finish(&returning->groups[i]);
    seen_finish(&returning->seen);
    buf_finish(&returning->refusal);
    free(returning->all);
    free(returning->newest);
}

void returning_connect(struct returning *returning)
{
    while (returning->begun < returning->count &&
           returning->begun - returning->live < CONNECTING_MAX) {
        size_t number = returning->begun++;
        struct returning_client *client = &returning->all[number];
        struct wish wish = { .name = "tags" };
        client->kind = kind_of(number);
        client->tag = number / 10 % returning->writer->tags;
        writer_tag(returning->writer, client->tag, wish.value);
        client_open(&client->client, &returning->groups[client->kind], number, &wish);
    }
}

void returning_measure(struct returning *returning)
{
    returning->since_ns = now_ns();
}

uint64_t returning_count_missed(const struct returning *returning,
                                const uint32_t *newest_of)
{
    const struct writer *writer = returning->writer;
    uint64_t missed = 0;
    for (size_t i = 0; i < returning->count; i++) {
        const uint32_t *newest = &returning->newest[i * WRITER_SLOTS];
        for (size_t run = returning->all[i].tag; run < writer->run_count;
             run += writer->tags)
            missed += newest[run / writer->tags] != newest_of[run];
    }
    return missed;
}

static int compare_times(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

size_t returning_list_times(const struct returning *returning, enum returning_kind kind,
                            int64_t *times)
{
    size_t count = 0;
    for (size_t i = 0; i < returning->count; i++) {
        const struct returning_client *client = &returning->all[i];
        if (client->back_ns && (kind == RETURNING_KINDS || client->kind == kind))
            times[count++] = client->back_ns;
    }
    qsort(times, count, sizeof(times[0]), compare_times);
    return count;
}
