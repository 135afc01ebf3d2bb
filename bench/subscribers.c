/* subscribers.c - N subscribing connections, and a record of what reached them.
 *
 *   connect, subscribe ──► ok, rows … ──► a message without "more": live
 *   (at most CONNECTING_MAX at a time)      patch ──► count, note, measure */
#include "subscribers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"

enum { CONNECTING_MAX = 256, PAIRS_MAX = 1 << 27 };

static const int64_t TICK_NS = 50000000;
static const int64_t PATIENCE_NS = 30000000000;

static struct subscriber *subscriber_of(struct client *client)
{
    return container_of(client, struct subscriber, client);
}

static struct subscribers *owner_of(struct client *client)
{
    return container_of(client->group, struct subscribers, group);
}

static struct wish make_wish(const struct subscribers *subs, size_t number)
{
    char tag[FILL_TAG_SIZE];
    const struct fill *fill = subs->fill;
    const char *name = "all", *value = "1";
    switch (subs->topic) {
    case TOPIC_TAG:
        fill_tag(fill, number, tag);
        name = "tags";
        value = tag;
        break;
    case TOPIC_RUN:
        name = "run";
        value = fill->ids[number % fill->count].text;
        break;
    case TOPIC_BATCH:
        name = "batch";
        value = fill->batches[number % fill_batch_count(fill)].text;
        break;
    case TOPIC_ALL: break;
    }
    struct wish wish;
    snprintf(wish.name, sizeof(wish.name), "%s", name);
    snprintf(wish.value, sizeof(wish.value), "%s", value);
    return wish;
}

static void on_closed(struct client *client, unsigned code, struct slice reason)
{
    struct subscribers *subs = owner_of(client);
    if (!subscriber_of(client)->live)
        fatal("a subscriber was refused (%u): %.*s", code, SLICE_ARG(reason));
    subs->closed++;
    if (subs->closed == 1)
        fprintf(stderr, "runcast-bench: a subscriber was closed (%u): %.*s\n", code,
                SLICE_ARG(reason));
}

/* Returns the number of the change, derived from its intended instant. */
static uint32_t ordinal_of(const struct subscribers *subs, int64_t n)
{
    if (subs->interval_ns == 0 || n < subs->start_ns)
        return 0;
    return 1 + (uint32_t)((n - subs->start_ns) / subs->interval_ns);
}

static void note_version(struct subscribers *subs, const struct subscriber *subscriber,
                         const struct seen_row *row)
{
    if (row->run == RUN_UNKNOWN)
        return;
    size_t number = (size_t)(subscriber - subs->all);
    uint32_t *newest = &subs->versions[number * subs->run_count + row->run];
    if (row->version == 0) { /* a long poll returns states, and the last one counts */
        *newest = ordinal_of(subs, row->n);
        return;
    }
    if (row->version <= *newest)
        return;
    if (*newest)
        subs->conflated += row->version - *newest - 1;
    *newest = row->version;
}

/* Notes that a subscriber has received this change; at the last one, records the time. */
static void note_arrival(struct subscribers *subs, const struct seen_row *row,
                         int64_t received_ns)
{
    histogram_record(&subs->latency, received_ns - row->n);
    uint32_t ordinal = ordinal_of(subs, row->n);
    if (ordinal == 0 || ordinal > subs->bursts)
        return;
    if (++subs->arrived[ordinal - 1] == subs->count * subs->burst)
        histogram_record(&subs->last, received_ns - row->n);
}

static void take_rows(struct subscribers *subs, struct subscriber *subscriber,
                      const struct seen_message *message, int64_t received_ns)
{
    for (size_t i = 0; i < message->row_count; i++) {
        const struct seen_row *row = &message->rows[i];
        note_version(subs, subscriber, row);
        if (message->op == SEEN_PATCH && subs->since_ns && row->n >= subs->since_ns)
            note_arrival(subs, row, received_ns);
    }
    if (!subscriber->live) {
        subs->last_ns = received_ns;
        subs->snapshot_rows += message->row_count;
        return;
    }
    if (message->row_count == 0) { /* a held poll without result */
        subs->idle++;
        return;
    }
    subs->last_ns = received_ns;
    subs->frames++;
    subs->rows += message->row_count;
    subscriber->rows += message->row_count;
}

static void become_live(struct subscribers *subs, struct subscriber *subscriber)
{
    subs->live += !subscriber->live;
    subscriber->live = true;
}

static void on_message(struct client *client, struct slice payload, int64_t received_ns)
{
    struct subscribers *subs = owner_of(client);
    struct subscriber *subscriber = subscriber_of(client);
    const struct seen_message *message = seen_parse(&subs->seen, payload);
    if (!message)
        fatal("the server sent what is no message: %.*s", SLICE_ARG(payload));
    switch (message->op) {
    case SEEN_ROWS:
    case SEEN_PATCH:
        subs->payload_bytes += payload.len;
        take_rows(subs, subscriber, message, received_ns);
        if (!message->more)
            become_live(subs, subscriber);
        return;
    case SEEN_OK:
        if (message->count == 0)
            become_live(subs, subscriber);
        return;
    case SEEN_DONE:
        subs->done = true;
        subs->floor_frames = message->count;
        subs->floor_cpu_ns = message->cpu_ns;
        return;
    case SEEN_ERROR: fatal("the server refused: %.*s", SLICE_ARG(payload));
    case SEEN_DRAIN: fatal("the server drains");
    case SEEN_WELCOME:
    case SEEN_PING:
    case SEEN_OTHER: return;
    }
}

enum topic subscribers_topic(const char *name)
{
    static const char *const names[] = { "tag", "run", "batch", "all" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], name) == 0)
            return (enum topic)i;
    }
    fatal("--topic: '%s' is none of tag, run, batch, all", name);
}

void subscribers_check(const struct options *options, int64_t runs)
{
    if (options->subscribers < 1 || options->subscribers > SUBSCRIBERS_MAX)
        fatal("--subscribers is from 1 to %d; start a second bench for more",
              SUBSCRIBERS_MAX);
    if (runs > PAIRS_MAX / options->subscribers)
        fatal("so many subscribers and runs are more pairs than the bench keeps: "
              "at most %d",
              PAIRS_MAX);
}

void subscribers_init(struct subscribers *subs, struct poller *poller,
                      const struct options *options, const struct fill *fill,
                      struct report *report)
{
    *subs = (struct subscribers){ .options = options, .fill = fill, .report = report };
    subs->topic = subscribers_topic(options->topic);
    subs->count = (size_t)options->subscribers;
    subs->run_count = fill->count;
    subs->handler = (struct client_handler){ on_message, on_closed };
    client_group_init(&subs->group, poller, options, &subs->handler);
    subs->all = mem_new_array(struct subscriber, subs->count);
    subs->versions = mem_new_array(uint32_t, subs->count * subs->run_count);
    subs->base = mem_new_array(uint32_t, subs->run_count);
    subs->runs = mem_new_array(struct tracked_run, subs->run_count);
    seen_init(&subs->seen);
    for (size_t i = 0; i < subs->run_count; i++) {
        subs->runs[i] = (struct tracked_run){ fill->ids[i].text, (uint32_t)i };
        seen_track(&subs->seen, &subs->runs[i]);
    }
}

void subscribers_finish(struct subscribers *subs)
{
    for (size_t i = 0; i < subs->begun; i++)
        client_close(&subs->all[i].client);
    client_group_finish(&subs->group);
    seen_finish(&subs->seen);
    free(subs->all);
    free(subs->versions);
    free(subs->base);
    free(subs->arrived);
    free(subs->runs);
}

void subscribers_connect(struct subscribers *subs)
{
    int64_t moved_ns = now_ns();
    size_t moved = 0;
    while (subs->live < subs->count) {
        while (subs->begun < subs->count && subs->begun - subs->live < CONNECTING_MAX) {
            struct wish wish = make_wish(subs, subs->begun);
            client_open(&subs->all[subs->begun].client, &subs->group, subs->begun, &wish);
            subs->begun++;
        }
        poller_wait(subs->group.poller, now_ns() + TICK_NS);
        report_progress(subs->report, "connecting: %zu of %zu are live, %llu rows",
                        subs->live, subs->count, (unsigned long long)subs->snapshot_rows);
        size_t progress = subs->group.opened + subs->live + subs->snapshot_rows;
        if (progress != moved)
            moved_ns = now_ns();
        moved = progress;
        if (now_ns() - moved_ns > PATIENCE_NS)
            fatal("the server does not answer: %" PRIu64
                  " of %zu connections are open, %zu live",
                  subs->group.opened, subs->count, subs->live);
    }
}

void subscribers_measure(struct subscribers *subs)
{
    bool told = subs->group.transport != &poll_transport;
    for (size_t i = 0; i < subs->count; i++) {
        subs->all[i].rows = 0;
        for (size_t run = 0; run < subs->run_count; run++) {
            uint32_t version = subs->versions[i * subs->run_count + run];
            if (told && version > subs->base[run])
                subs->base[run] = version;
        }
    }
    subs->frames = subs->rows = subs->conflated = subs->payload_bytes = subs->idle = 0;
    subs->group.reads = subs->group.bytes = 0;
    subs->last_ns = subs->since_ns = now_ns();
    histogram_clear(&subs->latency);
    histogram_clear(&subs->last);
}

void subscribers_expect(struct subscribers *subs, int64_t start_ns, int64_t interval_ns,
                        size_t bursts)
{
    subs->start_ns = start_ns;
    subs->interval_ns = interval_ns;
    subs->burst = (size_t)subs->options->burst;
    bool all_hear_all = subs->topic == TOPIC_TAG || subs->topic == TOPIC_ALL;
    subs->bursts = all_hear_all ? bursts : 0;
    subs->arrived = mem_new_array(uint64_t, subs->bursts);
}

static bool hears_of(const struct subscribers *subs, size_t number, size_t run)
{
    if (subs->topic == TOPIC_RUN)
        return number % subs->run_count == run;
    if (subs->topic == TOPIC_BATCH)
        return number % fill_batch_count(subs->fill) == run / FILL_BATCH;
    return true;
}

uint64_t subscribers_lost(const struct subscribers *subs, const uint32_t *changed_of)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < subs->count; i++) {
        for (size_t run = 0; run < subs->run_count; run++) {
            uint32_t expected = changed_of[run] ? subs->base[run] + changed_of[run] : 0;
            uint32_t newest = subs->versions[i * subs->run_count + run];
            lost += newest < expected && hears_of(subs, i, run);
        }
    }
    return lost;
}

uint64_t subscribers_outdated(const struct subscribers *subs, const int64_t *n_of)
{
    uint64_t outdated = 0;
    for (size_t i = 0; i < subs->count; i++) {
        for (size_t run = 0; run < subs->run_count; run++) {
            uint32_t newest = subs->versions[i * subs->run_count + run];
            outdated += newest != ordinal_of(subs, n_of[run]) && hears_of(subs, i, run);
        }
    }
    return outdated;
}

uint64_t subscribers_due(const struct subscribers *subs, const uint32_t *changed_of)
{
    uint64_t due = 0;
    for (size_t i = 0; i < subs->count; i++) {
        for (size_t run = 0; run < subs->run_count; run++)
            due += hears_of(subs, i, run) ? changed_of[run] : 0;
    }
    return due;
}

uint64_t subscribers_missing(const struct subscribers *subs, uint64_t rows_each)
{
    uint64_t missing = 0;
    for (size_t i = 0; i < subs->count; i++) {
        if (subs->all[i].rows < rows_each)
            missing += rows_each - subs->all[i].rows;
    }
    return missing;
}
