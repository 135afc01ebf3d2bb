/* stream.h - the newest chunks of the streams of runs, in memory.
 *
 *   append ─► │ first … next-1 │ ─► readers, each at its own place
 *             └ a ring of frames: each encoded once and shared by all readers
 *
 * Chunks are numbered from 0. A chunk's time is never earlier than that of the previous
 * one. A ring holds up to stream_bytes of its set, but always its newest chunk. A set holds
 * the streams of one environment and has a budget: beyond it, chunks are discarded oldest
 * first, beginning with the least recently written stream. A reader whose place was
 * discarded can tell how many chunks it missed. The contents do not survive the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/quota.h"
#include "base/table.h"

enum {
    STREAM_CLIENTS_MAX = 128, /* writers that a stream keeps track of */
    STREAM_KEPT_MS = 24 * 60 * 60 * 1000,
};

enum stream_kind {
    STREAM_OUTPUT = 'o', /* written by the run */
    STREAM_INPUT = 'i',  /* written to the run */
};

struct stream_chunk {
    struct bytes *frame;
    int64_t at_ms; /* Unix */
};

/* A writer and its progress. The least recently used one is forgotten first. */
struct stream_client {
    struct bytes *name;
    uint64_t last; /* index of its last chunk, in the writer's own count */
    uint64_t used; /* stream_clients::clock at its last use */
};

struct stream_clients {
    struct stream_client *all;
    uint32_t count;
    uint64_t clock;
};

struct stream {
    struct bytes *name; /* kind, run and key */
    struct stream_chunk *ring;
    uint32_t capacity;
    uint64_t first, next; /* chunks kept: first to next - 1 */
    uint64_t begun;       /* index of the stream's first chunk */
    int64_t created_ms;   /* Unix ms: time of the first chunk */
    int64_t last_ms;      /* Unix ms: time of the newest chunk */
    size_t bytes;
    struct stream_clients clients; /* by X-Client-Id */
    /* by X-Part-Id; for an input, requests by their idempotency keys */
    struct stream_clients parts;
    uint32_t users;      /* the stream is kept while this is not 0 */
    uint32_t writers;    /* pipes in progress; counted by the caller */
    struct list waiting; // the caller's readers that have everything
    struct list link;    // stream_set::written; linked while it has chunks
};

struct stream_set {
    struct table table;  /* struct stream, by name */
    struct list written; // stream::link; the one written to last is at the end
    size_t bytes, budget;
    size_t stream_bytes; /* limit of one stream, including the overhead of its chunks */
    /* Unix ms: if a run was created later than this, its streams that are not here
     * never had a chunk */
    int64_t whole_since;
    struct quota *quota; /* memory budget of its environment; used by the caller */
};

void stream_set_init(struct stream_set *set, size_t budget, size_t stream_bytes,
                     int64_t now_ms);

/* Frees the streams. None may be in use. */
void stream_set_finish(struct stream_set *set);

/* Returns a stream; NULL if it was never written to or all its chunks are gone. */
struct stream *stream_find(const struct stream_set *set, enum stream_kind kind,
                           struct slice run, struct slice key);

/* Returns a stream and creates it if necessary. It stays until stream_release. */
struct stream *stream_use(struct stream_set *set, enum stream_kind kind, struct slice run,
                          struct slice key);
void stream_release(struct stream_set *set, struct stream *stream);

/* Sets the index of the first chunk, for a client that got chunks before a restart. Does
 * nothing if the stream has had a chunk. */
void stream_start_at(struct stream *stream, uint64_t index);

/* Returns the time of a chunk that arrives now. */
int64_t stream_time(const struct stream *stream, int64_t now_ms);

/* Appends chunk stream->next. Takes ownership of the reference to its frame. */
void stream_append(struct stream_set *set, struct stream *stream, struct bytes *frame,
                   int64_t at_ms);

/* Discards the oldest chunk of the least recently written stream. */
void stream_set_drop(struct stream_set *set);

/* Returns the place after the chunk with this index, which arrived at at_ms (-1: unknown).
 * If the stream never had such a chunk, it is from before a restart; the beginning is
 * returned then. */
uint64_t stream_after(const struct stream *stream, int64_t at_ms, uint64_t index);

/* Returns how many chunks from this place on were discarded. */
uint64_t stream_missed(const struct stream *stream, uint64_t place);

/* Returns the chunk at *place, or the first kept one after it, and moves *place past it.
 * NULL at the end. */
struct bytes *stream_read(const struct stream *stream, uint64_t *place);

/* Returns the index of the writer's last chunk; -1 if it has none or was forgotten. */
int64_t stream_client_last(struct stream_clients *clients, struct slice name);
void stream_client_wrote(struct stream_clients *clients, struct slice name, uint64_t index);
