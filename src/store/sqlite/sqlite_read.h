/* sqlite_read.h - reads, on libuv's worker threads, each with a connection of its own. */
#pragma once

#include <uv.h>

#include "store/read_line.h"
#include "store/sqlite/sqlite_db.h"

enum { SQLITE_READERS_MAX = 16 };

struct sqlite_reader {
    struct sqlite_db db;
    struct list link; // sqlite_readers::idle
};

/* The loop thread's. */
struct sqlite_readers {
    uv_loop_t *loop;
    const struct store *store; /* says whose an environment is */
    struct sqlite_reader readers[SQLITE_READERS_MAX];
    size_t count;             /* of them */
    struct list idle;         /* connections that nobody uses */
    struct read_line waiting; /* reads for which there is none */
    size_t begun;             /* reads without an answer */
    size_t slow;              /* of them, those that are searched for now */
    void (*stopped_fn)(struct sqlite_readers *readers);
};

enum err sqlite_readers_open(struct sqlite_readers *readers, const struct store *store,
                             uv_loop_t *loop, const struct sqlite_options *options,
                             struct failure *why);

void sqlite_readers_begin(struct sqlite_readers *readers, struct store_read *req);

/* When no read is left the connections are closed and stopped is called; that may be at
 * once. */
void sqlite_readers_stop(struct sqlite_readers *readers,
                         void (*stopped)(struct sqlite_readers *readers));

/* Closes connections that no read uses; for an open that failed. */
void sqlite_readers_finish(struct sqlite_readers *readers);
