/* client.c - the socket of a simulation. */
#include "tests/support/world/client.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "core/wire/wire.h"
#include "tests/support/world/sim.h"

/* A version that was sent in a patch since the last sync. */
struct sent {
    const struct story *story;
    uint32_t version;
};

/* ---- gaps, when frames are sent ---- */

static struct sent *sent_of(struct client *client, const struct story *story)
{
    for (size_t i = 0; i < client->sent_count; i++)
        if (client->sent[i].story == story)
            return &client->sent[i];
    const struct run *run = story_at(story, client->synced);
    size_t size = (client->sent_count + 1) * sizeof(struct sent);
    client->sent = mem_resize(client->sent, size);
    struct sent *sent = &client->sent[client->sent_count++];
    *sent = (struct sent){ story, run ? run->version : 0 };
    return sent;
}

static void judge_row(struct client *client, struct slice row)
{
    struct scan_members elements = scan_members(row);
    struct slice id, version, fields, whole;
    uint64_t number = 0;
    scan_next_element(&elements, &id);
    scan_next_element(&elements, &version);
    scan_next_element(&elements, &fields);
    text_to_u64(version, &number);
    const struct story *story =
        ledger_find(ledger_of(client->world), (struct slice){ id.ptr + 1, id.len - 2 });
    struct sent *sent = sent_of(client, story);
    if (!scan_next_element(&elements, &whole)) {
        if (number <= sent->version)
            violated("%s v%llu is sent after v%u", story->id, (unsigned long long)number,
                     sent->version);
        client->gaps += number - sent->version - 1;
    }
    sent->version = (uint32_t)number;
}

static void judge(struct client *client, struct slice frame)
{
    struct buf json = { 0 };
    struct slice row;
    uint64_t seq = 0;
    mirror_to_json(&client->mirror.view, frame, &json);
    struct slice message = buf_slice(&json);
    struct scan_members rows = scan_members(scan_member(message, "rows"));
    if (slice_is(scan_member(message, "op"), "\"patch\""))
        while (scan_next_element(&rows, &row))
            judge_row(client, row);
    if (!scan_member(message, "more").ptr) {
        text_to_u64(scan_member(message, "seq"), &seq);
        if (seq < client->synced)
            violated("sync %llu after %llu", (unsigned long long)seq,
                     (unsigned long long)client->synced);
        client->synced = seq;
        client->sent_count = 0;
    }
    buf_finish(&json);
}

/* ---- the connection ---- */

static void put(struct client *client, struct bytes *frame)
{
    if (client->count == client->capacity) {
        client->capacity = client->capacity ? client->capacity * 2 : 16;
        client->wire = mem_resize(client->wire, client->capacity * sizeof(struct bytes *));
    }
    client->wire[client->count++] = bytes_ref(frame);
}

static bool send_frames(struct feed *feed, struct bytes *const *frames, size_t count)
{
    struct client *client = container_of(feed, struct client, feed);
    if (!client->connected || client->lost || client->count > client->window)
        violated("frames are sent to a socket that is full or closed");
    for (size_t i = 0; i < count; i++) {
        judge(client, bytes_slice(frames[i]));
        put(client, frames[i]);
    }
    return client->count <= client->window;
}

static bool is_busy(struct feed *feed)
{
    struct client *client = container_of(feed, struct client, feed);
    return client->lost || client->count > client->window;
}

static void on_lost(struct feed *feed)
{
    container_of(feed, struct client, feed)->lost = true;
}

static void begins_again(struct feed *feed)
{
    (void)feed;
    violated("memory was loaded again");
}

static const struct feed_ops ops = {
    .send = send_frames, .busy = is_busy, .lost = on_lost, .begins_again = begins_again
};

/* Small messages are sent however full the socket is. */
static void put_message(struct client *client, struct buf *message)
{
    struct bytes *frame = buf_to_bytes(message);
    put(client, frame);
    bytes_unref(frame);
    buf_finish(message);
}

/* ---- created, destroyed ---- */

struct client *client_create(struct world *world, const struct view *view)
{
    struct client *client = mem_new(struct client);
    client->world = world;
    mirror_init(&client->mirror, ledger_of(world), view);
    return client;
}

void client_destroy(struct client *client)
{
    client_cut(client);
    mirror_finish(&client->mirror);
    free(client->wire);
    free(client->sent);
    free(client);
}

/* ---- subscriptions ---- */

static struct filter copy_of(const struct filter *filter)
{
    bytes_ref(filter->name);
    query_ref(filter->query);
    return *filter;
}

static void ask(struct client *client, const struct mirror_sub *sub)
{
    const struct mirror *mirror = &client->mirror;
    struct environment *env = client->world->env;
    struct filter filter = copy_of(&sub->filter);
    struct buf message = { 0 };
    bool resumed = mirror_may_resume(mirror, sub);
    uint64_t seq = resumed ? mirror->seq : 0, base = resumed ? mirror->base : 0;

    if (seq > env->applied || base > seq)
        violated("a position %llu, %llu does not outlive the gateway, which is at %llu",
                 (unsigned long long)seq, (unsigned long long)base,
                 (unsigned long long)env->applied);
    wire_ok(mirror->view.encoding, sub->id, resumed, -1, 0, NULL, &message);
    put_message(client, &message);
    feed_subscribe(&client->feed, sub->id, &filter, seq, base);
}

void client_connect(struct client *client)
{
    struct view *view = environment_view(client->world->env, &client->mirror.view);
    if (!view || view->fields != client->mirror.view.fields)
        violated("there is no view for a client");
    feed_init(&client->feed, &ops, client->world->env, view);
    feed_set_pace(&client->feed, client->every_ms);
    client->connected = true;
    client->lost = false;
    client->synced = 0;
    client->sent_count = 0;
    for (int i = 0; i < MIRROR_SUBS; i++)
        if (client->mirror.subs[i].id)
            ask(client, &client->mirror.subs[i]);
}

void client_cut(struct client *client)
{
    if (!client->connected)
        return;
    feed_finish(&client->feed);
    client->connected = false;
    for (size_t i = 0; i < client->count; i++)
        bytes_unref(client->wire[i]);
    client->count = 0;
    mirror_cut(&client->mirror);
}

void client_subscribe(struct client *client, struct filter *filter)
{
    const struct mirror_sub *sub = mirror_add(&client->mirror, filter);
    if (sub && client->connected)
        ask(client, sub);
}

void client_unsubscribe(struct client *client, unsigned choice)
{
    struct mirror_sub *sub = &client->mirror.subs[choice % MIRROR_SUBS];
    struct buf message = { 0 };
    if (!sub->id || sub->leaving)
        return;
    int64_t id = sub->id;
    mirror_leave(&client->mirror, sub, client->connected);
    if (!client->connected)
        return;
    feed_unsubscribe(&client->feed, feed_find(&client->feed, id));
    wire_end(client->mirror.view.encoding, id, NULL, NULL, &message);
    put_message(client, &message);
}

/* ---- frames ---- */

bool client_receive(struct client *client)
{
    if (!client->connected || !client->count)
        return false;
    struct bytes *frame = client->wire[0];
    bool was_full = client->count > client->window;
    memmove(client->wire, client->wire + 1, --client->count * sizeof(struct bytes *));
    mirror_receive(&client->mirror, bytes_slice(frame));
    bytes_unref(frame);
    if (was_full && client->count <= client->window)
        feed_drained(&client->feed);
    return true;
}

void client_ping(struct client *client)
{
    struct buf message = { 0 };
    if (!client->connected || !feed_in_sync(&client->feed) ||
        list_empty(&client->feed.live))
        return;
    wire_ping(client->mirror.view.encoding, client->feed.seen, &message);
    put_message(client, &message);
}

bool client_rests(struct client *client)
{
    return client->connected && !client->lost && !client->count &&
           feed_in_sync(&client->feed) && mirror_complete(&client->mirror);
}
