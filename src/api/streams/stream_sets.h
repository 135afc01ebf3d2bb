/* stream_sets.h - the streams of all environments, for the files of this folder. */
#pragma once

#include "api/streams/stream.h"
#include "api/streams/streams.h"
#include "base/loop.h"
#include "base/slots.h"
#include "runcast/run.h"

struct streams {
    struct loop *loop;
    struct quotas *quotas; /* borrowed */
    size_t budget;         /* bytes per environment; quotas has the wider limits */
    size_t stream_bytes;   /* bytes per stream */
    struct slots sets;     /* struct stream_set, by number of the environment */
    struct list ready;     // stream_reader::link
    struct flusher flusher;
    uint32_t kind; /* of the readers' timers */
};

struct stream_set *streams_of(struct streams *streams, struct environment *env);

/* Encodes and appends a chunk and wakes the readers. data: text without a NUL for an
 * output, JSON for an input. */
void streams_append(struct streams *streams, struct stream_set *set, struct stream *stream,
                    enum stream_kind kind, struct slice data);
