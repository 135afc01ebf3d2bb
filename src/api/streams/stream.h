/* stream.h - the newest chunks of the streams of runs, in memory.
 *
 *   append ─► │ first … next-1 │ ─► readers, each at a place of its own
 *             └ a ring of frames: encoded once, shared by all who read
 *
 * Chunks are counted from 0, and each has the time of its coming, which never goes back. A
 * ring holds as many bytes as the set lets a stream have, but always its newest chunk. A
 * set (one environment) keeps its budget: chunks beyond it are dropped oldest first,
 * beginning with the stream that was not written to for longest. A reader whose place was
 * dropped can see how many chunks it missed. The contents do not survive the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/room.h"
#include "base/table.h"

enum {
    STREAM_CLIENTS_MAX = 128, /* writers that a stream remembers */
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

/* Who wrote, and how far; the one used longest ago is forgotten first. */
struct stream_client {
    struct bytes *name;
    uint64_t last; /* index of its last chunk, counted by itself */
    uint64_t used; /* stream_clients::clock, then */
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
    uint64_t begun;       /* the first index that a chunk had */
    int64_t born_ms;      /* of chunk 0 */
    int64_t last_ms;      /* of the newest */
    size_t bytes;
    struct stream_clients clients; /* X-Client-Id */
    struct stream_clients parts;   /* X-Part-Id; of an input, requests by their keys */
    uint32_t users;                /* it stays while there are some */
    uint32_t writers;              /* that are writing now; the caller's */
    struct list waiting;           // the caller's readers that have everything
    struct list link;              // stream_set::written; linked while it has chunks
};

struct stream_set {
    struct table table;  /* of struct stream, by name */
    struct list written; // stream::link; the one written to last is at the end
    size_t bytes, budget;
    size_t stream_bytes; /* of one stream, with the overhead of its chunks */
    int64_t
        whole_since; /* Unix ms: a stream of a run that was created later, and which is not
                            here, never had a chunk */
    struct room *room; /* of its environment; the caller's, who counts there */
};

void stream_set_init(struct stream_set *set, size_t budget, size_t stream_bytes,
                     int64_t now_ms);

/* Nobody uses a stream any more. */
void stream_set_finish(struct stream_set *set);

/* NULL: nobody has written to it, or all of it is gone. */
struct stream *stream_find(const struct stream_set *set, enum stream_kind kind,
                           struct slice run, struct slice key);

/* The same, made when there is none; the caller's until stream_release. */
struct stream *stream_use(struct stream_set *set, enum stream_kind kind, struct slice run,
                          struct slice key);
void stream_release(struct stream_set *set, struct stream *stream);

/* Before the first chunk of a stream: gives that one this index, for a client that knows of
 * chunks from before a restart. */
void stream_start_at(struct stream *stream, uint64_t index);

/* The time of a chunk that comes now. */
int64_t stream_time(const struct stream *stream, int64_t now_ms);

/* Takes over the reference to the frame of chunk stream->next. */
void stream_append(struct stream_set *set, struct stream *stream, struct bytes *frame,
                   int64_t at_ms);

/* The oldest chunk of the stream that was not written to for longest goes. */
void stream_set_drop(struct stream_set *set);

/* Where a reader continues that has the chunk of this index, which came at at_ms (-1: not known).
 * A place that this stream never had is from before a restart: then from its beginning. */
uint64_t stream_after(const struct stream *stream, int64_t at_ms, uint64_t index);

/* How many chunks from this place on were dropped. */
uint64_t stream_missed(const struct stream *stream, uint64_t place);

/* The chunk at *place, or the first after it that is kept; *place moves to the next one. NULL at
 * the end. */
struct bytes *stream_read(const struct stream *stream, uint64_t *place);

/* Index of the last chunk of this writer; -1: none, or forgotten. */
int64_t stream_client_last(struct stream_clients *clients, struct slice name);
void stream_client_wrote(struct stream_clients *clients, struct slice name, uint64_t index);
