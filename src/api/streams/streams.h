/* streams.h - the streams of runs: what a task writes while it runs, and what is written to
 * it.
 *
 *   PUT, POST …/append, POST with lines that come one by one ─► ring ─► readers
 *
 * The contents are in memory (stream.h), the names are the run's. A reader waits at
 * its stream when it has everything, is ready when it may be written to, and neither while
 * it has unsent bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct environment;
struct loop;
struct rooms;
struct stint;
struct streams;

/* rooms: where the contents of each environment count. budget: bytes of contents that an
 * environment has; of a project twice, of all four times that. stream_bytes: of one stream. */
struct streams *streams_create(struct loop *loop, struct rooms *rooms, size_t budget,
                               size_t stream_bytes);

/* Nobody reads or writes any more. NULL is fine. */
void streams_destroy(struct streams *streams);

/* Those of the environment leave memory; nobody reads or writes one. False when the time is
 * over before they all have. */
bool streams_forget(struct streams *streams, const struct environment *env,
                    struct stint *stint);

/* True when a record of this input is there, the first of those from index from on, or any
 * if the stream was born after known_ms, when from was counted: data is its JSON. */
bool streams_find_input(struct streams *streams, struct environment *env, struct slice run,
                        struct slice key, int64_t from, int64_t known_ms, struct buf *data);

/* ERR_INVALID unless the key may name a stream. */
enum err streams_check_key(struct slice key, struct failure *why);

/* ERR_NOT_FOUND: no run of the environment has this id, or it is anybody else's. */
enum err streams_unknown(struct failure *why);
