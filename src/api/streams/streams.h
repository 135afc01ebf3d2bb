/* streams.h - streams of runs: written by a task while it executes, or sent to it.
 *
 *   PUT, POST …/append, POST with lines that arrive one by one ─► ring ─► readers
 *
 * The contents are in memory (stream.h); the names belong to the run. A reader that has
 * everything waits at its stream; one that may be written to is ready. While it has unsent
 * bytes it is neither. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct environment;
struct loop;
struct quotas;
struct timeslice;
struct streams;

/* quotas: memory budgets by environment, which the contents count in. budget: bytes per
 * environment; twice that per project, four times that in total. stream_bytes: bytes per
 * stream. */
struct streams *streams_create(struct loop *loop, struct quotas *quotas, size_t budget,
                               size_t stream_bytes);

/* No reader or writer may be left. Ignores NULL. */
void streams_destroy(struct streams *streams);

/* Frees the streams of an environment, which has no readers or writers. Returns false if
 * the time slice ends first: call it again. */
bool streams_forget(struct streams *streams, const struct environment *env,
                    struct timeslice *timeslice);

/* Finds the first record of an input from index `from` on. If the stream began after
 * known_ms, when the caller learned `from`, its indexes are new, so its first record is
 * taken. If there is one, returns true and appends its JSON to data. */
bool streams_find_input(struct streams *streams, struct environment *env, struct slice run,
                        struct slice key, int64_t from, int64_t known_ms, struct buf *data);

/* Returns ERR_INVALID, with why, if the key cannot name a stream. */
enum err streams_check_key(struct slice key, struct failure *why);

/* Returns ERR_NOT_FOUND with its message: the environment has no run with this id. */
enum err streams_unknown(struct failure *why);
