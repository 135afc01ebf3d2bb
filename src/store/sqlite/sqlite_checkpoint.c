/* sqlite_checkpoint.c - runs checkpoints on a separate connection.
 *
 *   writer: … commit, commit, begin, commit, commit, take, copy the rest, commit …
 *   here:                       └─ copy, sync ───────┘
 *
 * Copying tens of megabytes and syncing them takes tens of milliseconds, more on a busy
 * disk. SQLite permits commits meanwhile; if the writer did it, they would all have to
 * wait. They write little in that time; the writer copies that, and then the log restarts.
 *
 * The connection is open only during a copy, so that after a failure, the writer can reopen
 * the database without another connection in the way. */
#include "store/sqlite/sqlite_checkpoint.h"

static int copy(const struct sqlite_options *options)
{
    struct sqlite_db db;
    struct failure why;
    /* perhaps no descriptor is left; the writer copies when it must */
    if (sqlite_db_open(&db, options, SQLITE_WRITER, &why))
        return SQLITE_BUSY;
    int code =
        sqlite3_wal_checkpoint_v2(db.handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    sqlite_db_close(&db);
    return code;
}

static void thread_main(void *arg)
{
    struct sqlite_checkpoint *checkpoint = arg;
    uv_mutex_lock(&checkpoint->lock);
    for (;;) {
        while (!checkpoint->wanted && !checkpoint->stopping)
            uv_cond_wait(&checkpoint->changed, &checkpoint->lock);
        if (!checkpoint->wanted)
            break;
        uv_mutex_unlock(&checkpoint->lock);
        int code = copy(checkpoint->options);
        uv_mutex_lock(&checkpoint->lock);
        checkpoint->code = code;
        checkpoint->wanted = false;
        checkpoint->through = true;
        uv_cond_broadcast(&checkpoint->changed);
    }
    uv_mutex_unlock(&checkpoint->lock);
}

bool sqlite_checkpoint_start(struct sqlite_checkpoint *checkpoint,
                             const struct sqlite_options *options)
{
    *checkpoint = (struct sqlite_checkpoint){ .options = options };
    if (uv_mutex_init(&checkpoint->lock))
        return false;
    if (uv_cond_init(&checkpoint->changed))
        goto fail_lock;
    if (uv_thread_create(&checkpoint->thread, thread_main, checkpoint))
        goto fail_changed;
    return true;

fail_changed:
    uv_cond_destroy(&checkpoint->changed);
fail_lock:
    uv_mutex_destroy(&checkpoint->lock);
    return false;
}

void sqlite_checkpoint_stop(struct sqlite_checkpoint *checkpoint)
{
    uv_mutex_lock(&checkpoint->lock);
    checkpoint->stopping = true;
    uv_cond_broadcast(&checkpoint->changed);
    uv_mutex_unlock(&checkpoint->lock);
    uv_thread_join(&checkpoint->thread);
    uv_cond_destroy(&checkpoint->changed);
    uv_mutex_destroy(&checkpoint->lock);
}

void sqlite_checkpoint_begin(struct sqlite_checkpoint *checkpoint)
{
    uv_mutex_lock(&checkpoint->lock);
    checkpoint->wanted = true;
    uv_cond_broadcast(&checkpoint->changed);
    uv_mutex_unlock(&checkpoint->lock);
}

bool sqlite_checkpoint_take(struct sqlite_checkpoint *checkpoint, bool wait, int *code)
{
    uv_mutex_lock(&checkpoint->lock);
    while (wait && checkpoint->wanted)
        uv_cond_wait(&checkpoint->changed, &checkpoint->lock);
    bool through = checkpoint->through;
    checkpoint->through = false;
    *code = checkpoint->code;
    uv_mutex_unlock(&checkpoint->lock);
    return through;
}
