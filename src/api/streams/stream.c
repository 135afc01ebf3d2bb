/* stream.c - rings of chunks, which discard the oldest when memory is full. */
#include "api/streams/stream.h"

#include "base/mem.h"
#include "base/metrics.h"

enum {
    FIRST_CAPACITY = 8,
    EXPIRED_AT_ONCE = 256, /* chunks */
    /* Overhead of a chunk. A ring may have four slots per chunk. */
    CHUNK_COST = 2 * sizeof(struct stream_chunk) + sizeof(struct bytes) + 16,
};

static struct slice name_of(const void *value)
{
    return bytes_slice(((const struct stream *)value)->name);
}

void stream_set_init(struct stream_set *set, size_t budget, size_t stream_bytes,
                     int64_t now_ms)
{
    *set = (struct stream_set){ .budget = budget,
                                .stream_bytes = stream_bytes,
                                .whole_since = now_ms };
    table_init(&set->table, name_of);
    list_init(&set->written);
}

/* ---- discarding ---- */

static size_t cost_of(const struct stream *stream)
{
    return sizeof(*stream) + stream->name->len +
           STREAM_CLIENTS_MAX * sizeof(struct stream_client);
}

static void count_bytes(struct stream_set *set, struct stream *stream, int64_t bytes)
{
    stream->bytes += (size_t)bytes;
    set->bytes += (size_t)bytes;
    metric_add(M_STREAM_BYTES, bytes);
}

static void resize(struct stream *stream, uint32_t capacity)
{
    struct stream_chunk *ring = mem_new_array(struct stream_chunk, capacity);
    for (uint64_t i = stream->first; i < stream->next; i++)
        ring[i % capacity] = stream->ring[i % stream->capacity];
    free(stream->ring);
    stream->ring = ring;
    stream->capacity = capacity;
}

/* Called when the last chunk of the stream was discarded. */
static void stop_counting(struct stream_set *set, struct stream *stream)
{
    if (set->whole_since < stream->last_ms)
        set->whole_since = stream->last_ms;
    list_remove(&stream->link);
    count_bytes(set, stream, -(int64_t)cost_of(stream));
    metric_add(M_STREAMS, -1);
}

static void drop_oldest(struct stream_set *set, struct stream *stream)
{
    struct stream_chunk *chunk = &stream->ring[stream->first++ % stream->capacity];
    count_bytes(set, stream, -(int64_t)(chunk->frame->len + CHUNK_COST));
    bytes_clear(&chunk->frame);
    if (stream->first == stream->next)
        stop_counting(set, stream);
    if (stream->capacity > FIRST_CAPACITY &&
        stream->next - stream->first < stream->capacity / 4)
        resize(stream, stream->capacity / 2);
}

static void finish_clients(struct stream_clients *clients)
{
    for (uint32_t i = 0; i < clients->count; i++)
        bytes_unref(clients->all[i].name);
    free(clients->all);
}

static void drop_all(struct stream_set *set, struct stream *stream)
{
    while (stream->first != stream->next)
        drop_oldest(set, stream);
}

static void destroy(struct stream_set *set, struct stream *stream)
{
    drop_all(set, stream);
    table_remove(&set->table, bytes_slice(stream->name));
    finish_clients(&stream->clients);
    finish_clients(&stream->parts);
    bytes_unref(stream->name);
    free(stream->ring);
    free(stream);
}

static void destroy_unused(struct stream_set *set, struct stream *stream)
{
    if (!stream->users && stream->first == stream->next)
        destroy(set, stream);
}

void stream_set_finish(struct stream_set *set)
{
    while (!list_empty(&set->written))
        destroy(set, container_of(set->written.next, struct stream, link));
    table_finish(&set->table);
}

void stream_set_drop(struct stream_set *set)
{
    if (list_empty(&set->written))
        return;
    struct stream *oldest = container_of(set->written.next, struct stream, link);
    drop_oldest(set, oldest);
    metric_add(M_STREAM_DROPPED, 1);
    destroy_unused(set, oldest);
}

/* Discards chunks until the set is within its budget. Keeps the newest chunk of the stream
 * just written to. */
static void make_room(struct stream_set *set, const struct stream *newest)
{
    while (set->bytes > set->budget) {
        struct stream *oldest = container_of(set->written.next, struct stream, link);
        if (oldest == newest && oldest->next - oldest->first == 1)
            return;
        stream_set_drop(set);
    }
}

/* Discards expired chunks, a few at each write. */
static void expire(struct stream_set *set, int64_t now_ms)
{
    if (list_empty(&set->written))
        return;
    struct stream *oldest = container_of(set->written.next, struct stream, link);
    if (now_ms - oldest->last_ms < STREAM_KEPT_MS)
        return;
    for (int i = 0; i < EXPIRED_AT_ONCE && oldest->first < oldest->next; i++)
        drop_oldest(set, oldest);
    destroy_unused(set, oldest);
}

/* ---- streams by name ---- */

static struct bytes *make_name(enum stream_kind kind, struct slice run, struct slice key)
{
    struct bytes *name = bytes_create_empty(1 + run.len + 1 + key.len);
    name->data[0] = (char)kind;
    memcpy(name->data + 1, run.ptr, run.len);
    name->data[1 + run.len] = '/';
    memcpy(name->data + 1 + run.len + 1, key.ptr, key.len);
    return name;
}

struct stream *stream_find(const struct stream_set *set, enum stream_kind kind,
                           struct slice run, struct slice key)
{
    struct bytes *name = make_name(kind, run, key);
    struct stream *stream = table_find(&set->table, bytes_slice(name));
    bytes_unref(name);
    return stream;
}

struct stream *stream_use(struct stream_set *set, enum stream_kind kind, struct slice run,
                          struct slice key)
{
    struct stream *stream = stream_find(set, kind, run, key);
    if (!stream) {
        stream = mem_new(struct stream);
        stream->name = make_name(kind, run, key);
        list_init(&stream->waiting);
        list_init(&stream->link);
        table_insert(&set->table, stream);
    }
    stream->users++;
    return stream;
}

void stream_release(struct stream_set *set, struct stream *stream)
{
    stream->users--;
    destroy_unused(set, stream);
}

/* ---- chunks ---- */

void stream_start_at(struct stream *stream, uint64_t index)
{
    if (!stream->next)
        stream->begun = stream->first = stream->next = index;
}

int64_t stream_time(const struct stream *stream, int64_t now_ms)
{
    return now_ms > stream->last_ms ? now_ms : stream->last_ms;
}

static bool too_much(const struct stream_set *set, const struct stream *stream)
{
    return stream->next - stream->first > 1 && stream->bytes > set->stream_bytes;
}

void stream_append(struct stream_set *set, struct stream *stream, struct bytes *frame,
                   int64_t at_ms)
{
    bool empty = stream->first == stream->next;
    if (stream->next - stream->first == stream->capacity)
        resize(stream, stream->capacity ? stream->capacity * 2 : FIRST_CAPACITY);
    if (empty) {
        count_bytes(set, stream, (int64_t)cost_of(stream));
        metric_add(M_STREAMS, 1);
    }
    if (!stream->created_ms)
        stream->created_ms = at_ms;
    stream->ring[stream->next++ % stream->capacity] = (struct stream_chunk){ frame, at_ms };
    stream->last_ms = at_ms;
    count_bytes(set, stream, frame->len + CHUNK_COST);
    metric_add(M_STREAM_CHUNKS, 1);
    list_remove(&stream->link);
    list_append(&set->written, &stream->link);
    while (too_much(set, stream)) {
        drop_oldest(set, stream);
        metric_add(M_STREAM_DROPPED, 1);
    }
    make_room(set, stream);
    expire(set, at_ms);
}

/* ---- reading ---- */

uint64_t stream_after(const struct stream *stream, int64_t at_ms, uint64_t index)
{
    bool ours = index < stream->next && (at_ms < 0 || at_ms >= stream->created_ms);
    return ours ? index + 1 : stream->begun;
}

uint64_t stream_missed(const struct stream *stream, uint64_t place)
{
    if (place < stream->begun)
        place = stream->begun;
    return place < stream->first ? stream->first - place : 0;
}

struct bytes *stream_read(const struct stream *stream, uint64_t *place)
{
    if (*place < stream->first)
        *place = stream->first;
    if (*place >= stream->next)
        return NULL;
    return stream->ring[(*place)++ % stream->capacity].frame;
}

/* ---- writers ---- */

static struct stream_client *find_client(struct stream_clients *clients, struct slice name)
{
    for (uint32_t i = 0; i < clients->count; i++)
        if (slice_equal(bytes_slice(clients->all[i].name), name))
            return &clients->all[i];
    return NULL;
}

static struct stream_client *oldest_client(struct stream_clients *clients)
{
    struct stream_client *oldest = &clients->all[0];
    for (uint32_t i = 1; i < clients->count; i++)
        if (clients->all[i].used < oldest->used)
            oldest = &clients->all[i];
    return oldest;
}

int64_t stream_client_last(struct stream_clients *clients, struct slice name)
{
    const struct stream_client *client = find_client(clients, name);
    return client ? (int64_t)client->last : -1;
}

void stream_client_wrote(struct stream_clients *clients, struct slice name, uint64_t index)
{
    struct stream_client *client = find_client(clients, name);
    if (!clients->all)
        clients->all = mem_new_array(struct stream_client, STREAM_CLIENTS_MAX);
    if (!client && clients->count < STREAM_CLIENTS_MAX)
        client = &clients->all[clients->count++];
    else if (!client)
        client = oldest_client(clients);
    if (!client->name || !slice_equal(bytes_slice(client->name), name)) {
        bytes_unref(client->name);
        client->name = bytes_create(name);
    }
    client->last = index;
    client->used = ++clients->clock;
}
