/* sqlite_writer.h - the writer thread: group commit, and recovery after a failure. */
#pragma once

#include <uv.h>

#include "base/buckets.h"
#include "store/commit_line.h"
#include "store/commit_report.h"
#include "store/sqlite/sqlite_apply.h"
#include "store/sqlite/sqlite_checkpoint.h"
#include "store/sqlite/sqlite_db.h"

struct sqlite_writer {
    /* Used on the loop thread. */
    struct commit_report report;
    uv_thread_t thread;
    uv_async_t finished;
    void (*stopped_fn)(struct sqlite_writer *writer);

    uv_mutex_t lock;
    uv_cond_t wake;
    /* Guarded by the lock: */
    struct commit_line line;         /* waiting commits */
    struct list done;                /* store_commit::link */
    struct list purges, purges_done; /* store_purge::link */
    bool stopping, stopped;
    bool failing;      /* nothing is written until the database has been checked */
    bool full;         /* the last transaction found no space */
    uint64_t next_try; /* uv_hrtime; while full, earlier requests fail at once */
    unsigned groups;   /* synced and not reported yet */
    struct buckets group_sizes, sync_times; /* of these groups, for H_GROUP and H_SYNC */
    struct sqlite_growths grown;            /* of these groups */
    char trouble[160];                      /* SQLite's last error */

    /* Used by the writer thread once it runs. */
    const struct sqlite_options *options;
    struct sqlite_db db; /* opened by the caller of sqlite_writer_start */
    struct sqlite_apply apply;
    unsigned apart_left; /* groups that still get savepoints */
    struct sqlite_checkpoint checkpoint;
    unsigned checkpointed_pages; /* size of the log after the last checkpoint */
    int64_t synced_us;           /* when the last transaction was on the disk */
    int64_t sync_took_us;        /* how long its COMMIT took */
};

/* The caller must have set report and options and opened db.
 *
 * If this fails, the caller closes db. */
enum err sqlite_writer_start(struct sqlite_writer *writer, uv_loop_t *loop,
                             struct failure *why);

/* store->share_of returns the project of the commit.
 *
 * The project decides the turn (commit_line.h). */
void sqlite_writer_commit(struct sqlite_writer *writer, const struct store *store,
                          struct store_commit *req);
void sqlite_writer_purge(struct sqlite_writer *writer, struct store_purge *req);

/* Finishes and reports all requests first, then closes the connection. */
void sqlite_writer_stop(struct sqlite_writer *writer,
                        void (*stopped)(struct sqlite_writer *writer));
