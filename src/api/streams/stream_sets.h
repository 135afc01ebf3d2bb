/* stream_sets.h - the streams of all environments, for those who read and write them. */
#pragma once

#include "api/streams/stream.h"
#include "api/streams/streams.h"
#include "base/loop.h"
#include "base/slots.h"
#include "runcast/run.h"

struct streams {
    struct loop *loop;
    struct rooms *rooms; /* borrowed */
    size_t budget;       /* of an environment; of a project twice, of all four times that */
    size_t stream_bytes; /* of one stream */
    size_t bytes;        /* of all */
    struct slots sets;   /* of struct stream_set, by number of the environment */
    struct list ready;   // stream_reader::link
    struct flusher flusher;
    uint32_t kind; /* of the readers' timers */
};

struct stream_set *streams_of(struct streams *streams, struct environment *env);

/* Adds the chunk, encoded for its kind, and wakes who reads: data is text without a NUL
 * for an output, JSON for an input. */
void streams_append(struct streams *streams, struct stream_set *set, struct stream *stream,
                    enum stream_kind kind, struct slice data);
