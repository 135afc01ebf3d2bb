/* streams.h - the streams of runs: what a task writes while it runs, and what is written to
 * it (realtime-protocol §3).
 *
 *   PUT, POST …/append, POST with lines that come one by one ─► ring ─► readers
 *
 * The contents are in memory (live/stream.h), the names are the run's. A reader waits at
 * its stream when it has everything, is ready when it may be written to, and neither while
 * it has unsent bytes. */
#pragma once

#include "base/slots.h"
#include "call/route.h"
#include "streams/stream.h"

struct streams {
    struct loop *loop;
    size_t budget;     /* of an environment; of a project twice, of all four times that */
    size_t bytes;      /* of all */
    struct slots sets; /* of struct stream_set, by number of the environment */
    struct list ready; // stream_reader::link
    struct flusher flusher;
    uint32_t kind; /* of the readers' timers */
};

struct streams *streams_create(struct loop *loop, size_t budget);

/* Nobody reads or writes any more. NULL is fine. */
void streams_destroy(struct streams *streams);

struct stream_set *streams_of(struct streams *streams, struct environment *env);
/* Its streams leave memory; nobody reads or writes one. */
void streams_forget(struct streams *streams, const struct environment *env);

/* Adds the chunk, encoded for its kind, and wakes who reads: data is text without a NUL
 * for an output, JSON for an input. */
void streams_append(struct streams *streams, struct stream_set *set, struct stream *stream,
                    enum stream_kind kind, struct slice data);

/* True when a record of this input is there, the first of those from index from on, or any
 * if the stream was born after known_ms, when from was counted: data is its JSON. */
bool streams_find_input(struct streams *streams, struct environment *env, struct slice run,
                        struct slice key, int64_t from, int64_t known_ms, struct buf *data);

/* ERR_INVALID unless the last parameter of the path may name a stream. */
enum err streams_check_key(struct api_call *call, struct slice key);

/* Writes to readers that are ready; true when the turn's time is over and more are. */
bool streams_flush(struct flusher *flusher);

/* Timer of a reader. */
void streams_on_time(struct timer *timer);

/* No run of the environment has this id: what is said about anybody else's too. */
enum err streams_unknown(struct api_call *call);

/* stream_read.c */
route_fn stream_open_output, stream_open_input;

/* stream_write.c */
route_fn stream_create, stream_append_part, stream_pipe, stream_probe, stream_send;
enum err stream_take_piece(struct api_call *call, struct slice piece);
