/* sqlite_writer.h - the thread that writes: group commit, and what follows a failure. */
#pragma once

#include <uv.h>

#include "base/buckets.h"
#include "store/commit_line.h"
#include "store/commit_report.h"
#include "store/sqlite/sqlite_apply.h"
#include "store/sqlite/sqlite_checkpoint.h"
#include "store/sqlite/sqlite_db.h"

struct sqlite_writer {
    /* The loop thread's. */
    struct commit_report report;
    uv_thread_t thread;
    uv_async_t finished;
    void (*stopped_fn)(struct sqlite_writer *writer);

    uv_mutex_t lock;
    uv_cond_t wake;
    /* The lock guards: */
    struct commit_line line;         /* of commits */
    struct list done;                /* store_commit::link */
    struct list purges, purges_done; /* store_purge::link */
    bool stopping, stopped;
    bool failing;      /* nothing is written until the database was checked */
    bool full;         /* the last transaction found no space */
    uint64_t next_try; /* uv_hrtime: while full, who comes earlier fails at once */
    unsigned groups;   /* synced and not yet reported */
    struct buckets group_sizes, sync_times; /* of those, as H_GROUP and H_SYNC */
    struct sqlite_growths grown;            /* the same */
    char trouble[160];                      /* what SQLite said last */

    /* The writer thread's, once it runs. */
    const struct sqlite_options *options;
    struct sqlite_db db; /* opened by whoever starts the writer */
    struct sqlite_apply apply;
    unsigned apart_left; /* groups whose requests are kept apart */
    struct sqlite_checkpoint checkpoint;
    unsigned checkpointed_pages; /* where the log stood after the last attempt */
    int64_t synced_us;           /* when the last transaction was on the disk, and how */
    int64_t sync_took_us;        /* long its end took */
};

/* The caller has set report and options and opened db, and closes db if this
 * fails. */
enum err sqlite_writer_start(struct sqlite_writer *writer, uv_loop_t *loop,
                             struct failure *why);

/* store->share_of decides whose turn the commit is (commit_line.h). */
void sqlite_writer_commit(struct sqlite_writer *writer, const struct store *store,
                          struct store_commit *req);
void sqlite_writer_purge(struct sqlite_writer *writer, struct store_purge *req);

/* Everything begun is done and reported first; the connection is closed then. */
void sqlite_writer_stop(struct sqlite_writer *writer,
                        void (*stopped)(struct sqlite_writer *writer));
