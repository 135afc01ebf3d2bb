/* sqlite_read.h - the connections for reads, and the reads waiting for one. */
#pragma once

#include <uv.h>

#include "store/read_line.h"
#include "store/sqlite/sqlite_db.h"

enum { SQLITE_READERS_MAX = 16 };

struct sqlite_reader {
    struct sqlite_db db;
    struct list link; // sqlite_readers::idle
};

/* Used on the loop thread. */
struct sqlite_readers {
    uv_loop_t *loop;
    const struct store *store; /* its share_of returns the project of an environment */
    struct sqlite_reader readers[SQLITE_READERS_MAX];
    size_t count;             /* of readers */
    struct list idle;         /* connections not in use */
    struct read_line waiting; /* reads waiting for a connection */
    size_t begun;             /* reads in progress */
    size_t slow;              /* how many of these are slow */
    void (*stopped_fn)(struct sqlite_readers *readers);
};

enum err sqlite_readers_open(struct sqlite_readers *readers, const struct store *store,
                             uv_loop_t *loop, const struct sqlite_options *options,
                             struct failure *why);

void sqlite_readers_begin(struct sqlite_readers *readers, struct store_read *req);

/* Closes the connections once no read is left, then calls stopped, perhaps at once. */
void sqlite_readers_stop(struct sqlite_readers *readers,
                         void (*stopped)(struct sqlite_readers *readers));

/* Closes connections that no read uses, after a failed open. */
void sqlite_readers_finish(struct sqlite_readers *readers);
