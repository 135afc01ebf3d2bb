/* sqlite_writer.c - writes waiting commits in groups, each with one transaction and fsync.
 *
 *   loop thread                      writer thread
 *   commit ──► line ───── wake ────► take the next commits (commit_line.h)
 *                                    BEGIN; each request; COMMIT
 *   done()  ◄── done ◄── finished ── one fsync for all of them
 *
 * While one transaction is being synced, the next group gathers. So groups grow with the
 * load, and a single commit does not wait.
 *
 * A failed request does not affect the others. A savepoint for each request would copy
 * every page that it changes, which is a third of the cost of a trigger here; and nearly
 * all failing requests have written nothing yet. If one has, the transaction is rolled back
 * and the requests before it are applied again. After that, savepoints are used for a
 * while, so that a client that provokes this costs the others no more than savepoints do.
 *
 * After a failed COMMIT or fsync, it is unknown what is on the disk. No request succeeds,
 * and nothing is written until the database has been reopened, checked, written to and
 * synced, with a back-off in between. A full disk needs no such check: one request per
 * second is tried, the others are rejected at once. Checkpoints run in parallel with the
 * groups, by size (sqlite_checkpoint.h). */
#include "store/sqlite/sqlite_writer.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/metrics.h"

enum {
    CHECKPOINT_PAGES = (32 << 20) / SQLITE_PAGE_BYTES, /* of log between two checkpoints */
    WAITED_FOR_PAGES = (48 << 20) / SQLITE_PAGE_BYTES,
    RESTART_PAGES =
        (64 << 20) / SQLITE_PAGE_BYTES, /* from here on, readers must let it restart */
    RESTART_WAIT_MS = 250,
    SLOW_MS = 100, /* a group that takes longer is logged at debug */
    BACK_OFF_FIRST_S = 1,
    BACK_OFF_MAX_S = 30,
    GROUPS_APART = 256, /* groups with savepoints after a rollback */
};

static const uint64_t second_ns = 1000000000;

/* ---- writer thread: one transaction ---- */

static void note_trouble(struct sqlite_writer *writer, int code)
{
    uv_mutex_lock(&writer->lock);
    snprintf(writer->trouble, sizeof(writer->trouble), "%s (%d)", sqlite3_errstr(code),
             code);
    uv_mutex_unlock(&writer->lock);
}

static int sqlite_writer_begin(struct sqlite_writer *writer)
{
    writer->apply.trouble = SQLITE_OK;
    return sqlite_db_run(&writer->db, SQL_BEGIN);
}

/* Writes the rest of the transaction and syncs it. */
static int commit(struct sqlite_writer *writer)
{
    int64_t begun_us = commit_report_now_us();
    int code = sqlite_db_run(&writer->db, SQL_COMMIT);
    writer->synced_us = commit_report_now_us();
    writer->sync_took_us = writer->synced_us - begun_us;
    return code;
}

/* Ends the transaction. Unless it returns STORE_OK, none of it may be trusted. */
static enum store_status end(struct sqlite_writer *writer, int code)
{
    if (code == SQLITE_OK)
        code = writer->apply.trouble;
    if (code == SQLITE_OK)
        code = commit(writer);
    if (code == SQLITE_OK) {
        sqlite_apply_keep(&writer->apply);
        return STORE_OK;
    }
    if (!sqlite3_get_autocommit(writer->db.handle))
        sqlite_db_run(&writer->db, SQL_ROLLBACK);
    sqlite_apply_forget(&writer->apply);
    note_trouble(writer, code);
    return sqlite_status(code) == STORE_NO_SPACE ? STORE_NO_SPACE : STORE_FAILED;
}

static void keep_apart(struct sqlite_writer *writer, unsigned groups)
{
    writer->apart_left = groups;
    writer->apply.keeps_apart = groups > 0;
}

/* Rolls back the transaction, because the last request failed after writing something.
 *
 * Then reapplies the requests before it that had succeeded. Failed ones have written
 * nothing and keep their status. */
static int redo_group(struct sqlite_writer *writer, struct list *group, struct list *last)
{
    int code = sqlite_db_run(&writer->db, SQL_ROLLBACK);
    sqlite_apply_forget(&writer->apply);
    keep_apart(writer, GROUPS_APART);
    if (!code)
        code = sqlite_writer_begin(writer);
    for (struct list *link = group->next; link != last && !code; link = link->next) {
        struct store_commit *req = container_of(link, struct store_commit, link);
        if (req->status == STORE_OK)
            sqlite_apply_commit(&writer->apply, req);
    }
    return code;
}

static enum store_status write_group(struct sqlite_writer *writer, struct list *group)
{
    int64_t now_ms = 0;
    int code = sqlite_writer_begin(writer);
    keep_apart(writer, writer->apart_left - (writer->apart_left > 0));
    list_each (link, group) {
        struct store_commit *req = container_of(link, struct store_commit, link);
        if (code || writer->apply.trouble)
            break;
        if (!sqlite_apply_commit(&writer->apply, req))
            code = redo_group(writer, group, link);
        now_ms = req->now_ms > now_ms ? req->now_ms : now_ms;
    }
    if (!code && !writer->apply.trouble)
        sqlite_apply_sweep(&writer->apply, now_ms);
    if (!code && !writer->apply.trouble)
        sqlite_apply_counters(&writer->apply);

    enum store_status status = end(writer, code);
    list_each (link, group) {
        struct store_commit *req = container_of(link, struct store_commit, link);
        req->synced_us = writer->synced_us;
        if (status)
            req->status = status;
    }
    return status;
}

static enum store_status write_purge(struct sqlite_writer *writer, struct store_purge *req)
{
    int code = sqlite_writer_begin(writer);
    if (!code)
        sqlite_apply_purge(&writer->apply, req);
    if (!code && !writer->apply.trouble)
        sqlite_apply_counters(&writer->apply);
    enum store_status status = end(writer, code);
    if (status)
        req->status = status;
    return status;
}

static enum store_status judge(struct sqlite_writer *writer, int code)
{
    if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED ||
        sqlite_status(code) == STORE_NO_SPACE)
        return STORE_OK;
    note_trouble(writer, code);
    return STORE_FAILED;
}

/* Copies the rest of the log; readers may keep the log from restarting.
 *
 * Once all of it is copied, new readers use only the database, so that the wait for earlier
 * readers ends. While a process reads an older state, as a backup does, the log cannot be
 * copied completely, and commits do not wait for that. */
static int copy_rest(struct sqlite_writer *writer)
{
    bool large = writer->db.wal_pages > RESTART_PAGES;
    sqlite3 *handle = writer->db.handle;
    int pages, copied;
    int code =
        sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    if (code == SQLITE_OK && large && copied == pages) {
        sqlite3_busy_timeout(handle, RESTART_WAIT_MS);
        code =
            sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        sqlite3_busy_timeout(handle, SQLITE_BUSY_MS);
    }
    writer->checkpointed_pages = writer->db.wal_pages;
    return code;
}

/* Begins checkpoints while commits continue, and copies what was added meanwhile.
 *
 * Waits for a checkpoint if the log grows faster than it is copied. A log that has not
 * grown restarts with the next commit and needs nothing more. */
static enum store_status checkpoint(struct sqlite_writer *writer)
{
    int code;
    if (writer->db.wal_pages < writer->checkpointed_pages)
        writer->checkpointed_pages = 0; /* it has restarted */
    unsigned more = writer->db.wal_pages - writer->checkpointed_pages;
    bool copied =
        sqlite_checkpoint_take(&writer->checkpoint, more >= WAITED_FOR_PAGES, &code);
    if (copied && judge(writer, code))
        return STORE_FAILED;
    if (more < CHECKPOINT_PAGES)
        return STORE_OK;
    if (copied)
        return judge(writer, copy_rest(writer));
    sqlite_checkpoint_begin(&writer->checkpoint);
    return STORE_OK;
}

/* ---- writer thread: after a failure ---- */

/* Opens the file again. Trusts it only if it is sound and accepts a synced write. */
static bool reopen(struct sqlite_writer *writer)
{
    struct failure why;
    int code;
    sqlite_checkpoint_take(&writer->checkpoint, true, &code);
    sqlite_apply_forget(&writer->apply);
    sqlite_db_close(&writer->db);
    writer->checkpointed_pages = 0;
    if (sqlite_db_open(&writer->db, writer->options, SQLITE_WRITER, &why))
        return false;
    return sqlite_db_is_sound(&writer->db) && sqlite_apply_load_claims(&writer->apply) &&
           sqlite_db_run(&writer->db, SQL_PROBE) == SQLITE_OK &&
           sqlite3_wal_checkpoint_v2(writer->db.handle, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                     NULL, NULL) == SQLITE_OK;
}

static void fail_all(struct list *to, struct list *from, struct list *purges_to,
                     struct list *purges_from, enum store_status status)
{
    list_each (link, from)
        container_of(link, struct store_commit, link)->status = status;
    list_each (link, purges_from)
        container_of(link, struct store_purge, link)->status = status;
    list_move_all(to, from);
    list_move_all(purges_to, purges_from);
}

/* Called and left with the lock held. From here on new requests are rejected. */
static void start_failing(struct sqlite_writer *writer)
{
    struct list waiting;
    list_init(&waiting);
    commit_line_empty_into(&writer->line, &waiting);
    writer->failing = true;
    fail_all(&writer->done, &waiting, &writer->purges_done, &writer->purges, STORE_FAILED);
    uv_async_send(&writer->finished);
}

/* Called and left with the lock held, which is released while waiting and opening. */
static void wait_and_reopen(struct sqlite_writer *writer)
{
    uint64_t wait_s = BACK_OFF_FIRST_S;
    while (writer->failing && !writer->stopping) {
        uint64_t until = uv_hrtime() + wait_s * second_ns;
        for (uint64_t now; !writer->stopping && (now = uv_hrtime()) < until;)
            uv_cond_timedwait(&writer->wake, &writer->lock, until - now);
        if (writer->stopping)
            break;
        uv_mutex_unlock(&writer->lock);
        bool open = reopen(writer);
        uv_mutex_lock(&writer->lock);
        writer->failing = !open;
        wait_s = wait_s * 2 > BACK_OFF_MAX_S ? BACK_OFF_MAX_S : wait_s * 2;
    }
    uv_async_send(&writer->finished);
}

/* ---- writer thread: the loop ---- */

/* Called and left with the lock held. */
static void note_synced(struct sqlite_writer *writer)
{
    writer->groups++;
    buckets_note(&writer->sync_times, metric_bounds(H_SYNC), writer->sync_took_us);
    sqlite_growths_take(&writer->grown, &writer->apply.growths);
}

/* Called and left with the lock held. */
static void settle(struct sqlite_writer *writer, enum store_status status)
{
    if (status == STORE_OK)
        note_synced(writer);
    writer->full = status == STORE_NO_SPACE;
    if (writer->full)
        writer->next_try = uv_hrtime() + second_ns;
    if (status == STORE_FAILED)
        start_failing(writer);
    uv_async_send(&writer->finished);
}

static int64_t count_commits(const struct list *group)
{
    int64_t count = 0;
    list_each (link, group)
        count++;
    return count;
}

static void log_slow(const struct list *group, int64_t took_ms)
{
    int64_t commits = count_commits(group), changes = 0;
    list_each (link, group)
        changes +=
            (int64_t)container_of(link, const struct store_commit, link)->change_count;
    log_decision("slow commit", NULL, NULL, "the disk or the amount", "ms",
                 log_number(took_ms), "commits", log_number(commits), "changes",
                 log_number(changes), NULL);
}

/* Called and left with the lock held. */
static void serve_group(struct sqlite_writer *writer)
{
    struct list group;
    list_init(&group);
    commit_line_take(&writer->line, &group);
    uv_mutex_unlock(&writer->lock);
    uint64_t begun = uv_hrtime();
    enum store_status status = write_group(writer, &group);
    int64_t took_ms = (int64_t)(uv_hrtime() - begun) / 1000000;
    if (log_has_debug() && took_ms > SLOW_MS)
        log_slow(&group, took_ms);
    int64_t commits = count_commits(&group);
    uv_mutex_lock(&writer->lock);
    if (status == STORE_OK)
        buckets_note(&writer->group_sizes, metric_bounds(H_GROUP), commits);
    list_move_all(&writer->done, &group);
    settle(writer, status);
}

/* Called and left with the lock held. */
static void serve_purge(struct sqlite_writer *writer)
{
    struct list *link = writer->purges.next;
    list_remove(link);
    uv_mutex_unlock(&writer->lock);
    enum store_status status =
        write_purge(writer, container_of(link, struct store_purge, link));
    uv_mutex_lock(&writer->lock);
    list_append(&writer->purges_done, link);
    settle(writer, status);
}

/* Called and left with the lock held. */
static void keep_log_short(struct sqlite_writer *writer)
{
    uv_mutex_unlock(&writer->lock);
    enum store_status status = checkpoint(writer);
    uv_mutex_lock(&writer->lock);
    if (status)
        start_failing(writer);
}

/* Called with the lock held. */
static bool has_work(const struct sqlite_writer *writer)
{
    return !commit_line_empty(&writer->line) || !list_empty(&writer->purges);
}

/* Called and left with the lock held. Commits that arrive meanwhile wait. */
static void load_claims(struct sqlite_writer *writer)
{
    uv_mutex_unlock(&writer->lock);
    bool loaded = sqlite_apply_load_claims(&writer->apply);
    uv_mutex_lock(&writer->lock);
    if (loaded)
        return;
    start_failing(writer);
    wait_and_reopen(writer);
}

static void writer_main(void *arg)
{
    struct sqlite_writer *writer = arg;
    uv_mutex_lock(&writer->lock);
    if (writer->stopped) {
        uv_mutex_unlock(&writer->lock);
        return;
    }
    load_claims(writer);
    for (;;) {
        while (!has_work(writer) && !writer->stopping)
            uv_cond_wait(&writer->wake, &writer->lock);
        if (!has_work(writer))
            break;
        if (!commit_line_empty(&writer->line))
            serve_group(writer);
        if (!writer->failing && !list_empty(&writer->purges))
            serve_purge(writer);
        if (!writer->failing)
            keep_log_short(writer);
        if (writer->failing)
            wait_and_reopen(writer);
    }
    uv_mutex_unlock(&writer->lock);
    sqlite_apply_finish(&writer->apply);
    sqlite_checkpoint_stop(&writer->checkpoint);
    sqlite_db_close(&writer->db);

    uv_mutex_lock(&writer->lock);
    writer->stopped = true;
    uv_async_send(&writer->finished);
    uv_mutex_unlock(&writer->lock);
}

/* ---- loop thread ---- */

static void report_purges(struct sqlite_writer *writer, struct list *done)
{
    list_each (link, done) {
        struct store_purge *req = container_of(link, struct store_purge, link);
        list_remove(link);
        if (req->status == STORE_OK) {
            req->position.stored = positions_get(writer->report.positions, req->env).stored;
            positions_put(writer->report.positions, req->position);
        }
        req->done(req, req->status);
    }
}

static void report_growth(struct sqlite_writer *writer, struct sqlite_growths *grown)
{
    sqlite_growths_merge(grown);
    for (size_t i = 0; i < grown->count; i++)
        commit_report_growth(&writer->report, grown->entries[i].env,
                             grown->entries[i].bytes);
    sqlite_growths_finish(grown);
}

static void on_closed(uv_handle_t *handle)
{
    struct sqlite_writer *writer =
        container_of((uv_async_t *)handle, struct sqlite_writer, finished);
    sqlite_growths_finish(&writer->grown);
    commit_line_finish(&writer->line);
    commit_report_finish(&writer->report);
    writer->stopped_fn(writer);
}

static void on_stopped(struct sqlite_writer *writer)
{
    uv_thread_join(&writer->thread);
    uv_cond_destroy(&writer->wake);
    uv_mutex_destroy(&writer->lock);
    uv_close((uv_handle_t *)&writer->finished, on_closed);
}

/* Reports requests to their callers, a portion per turn. */
static void on_finished(uv_async_t *async)
{
    struct sqlite_writer *writer = container_of(async, struct sqlite_writer, finished);
    struct list purges_done;
    char trouble[sizeof(writer->trouble)];
    list_init(&purges_done);

    uv_mutex_lock(&writer->lock);
    commit_report_take(&writer->report, &writer->done);
    if (!list_empty(&writer->purges_done))
        list_append(&purges_done, list_take(&writer->purges_done));
    bool more = !list_empty(&writer->done) || !list_empty(&writer->purges_done);
    bool stopped = writer->stopped && !more;
    bool failing = writer->failing, full = writer->full;
    unsigned groups = writer->groups;
    writer->groups = 0;
    struct buckets group_sizes = writer->group_sizes, sync_times = writer->sync_times;
    writer->group_sizes = writer->sync_times = (struct buckets){ 0 };
    struct sqlite_growths grown = writer->grown;
    writer->grown = (struct sqlite_growths){ 0 };
    memcpy(trouble, writer->trouble, sizeof(trouble));
    uv_mutex_unlock(&writer->lock);

    metric_add(M_COMMIT_GROUPS, groups);
    metric_merge(H_GROUP, &group_sizes);
    metric_merge(H_SYNC, &sync_times);
    commit_report_state(&writer->report, failing, full, trouble);
    report_growth(writer, &grown);
    more = !commit_report_run(&writer->report) || more;
    report_purges(writer, &purges_done);
    if (stopped && !more)
        on_stopped(writer);
    else if (more)
        uv_async_send(&writer->finished);
}

enum err sqlite_writer_start(struct sqlite_writer *writer, uv_loop_t *loop,
                             struct failure *why)
{
    commit_line_init(&writer->line);
    list_init(&writer->done);
    list_init(&writer->purges);
    list_init(&writer->purges_done);
    sqlite_apply_init(&writer->apply, &writer->db);

    if (!sqlite_checkpoint_start(&writer->checkpoint, writer->options))
        goto fail;
    if (uv_mutex_init(&writer->lock))
        goto fail_checkpoint;
    if (uv_cond_init(&writer->wake))
        goto fail_lock;
    uv_mutex_lock(&writer->lock); /* the thread waits until everything is initialized */
    if (uv_thread_create(&writer->thread, writer_main, writer))
        goto fail_wake;
    if (uv_async_init(loop, &writer->finished, on_finished))
        goto fail_thread;
    uv_mutex_unlock(&writer->lock);
    return OK;

fail_thread:
    writer->stopped = true;
fail_wake:
    uv_mutex_unlock(&writer->lock);
    if (writer->stopped)
        uv_thread_join(&writer->thread);
    uv_cond_destroy(&writer->wake);
fail_lock:
    uv_mutex_destroy(&writer->lock);
fail_checkpoint:
    sqlite_checkpoint_stop(&writer->checkpoint);
fail:
    sqlite_apply_finish(&writer->apply);
    return explain(why, ERR_STORE, "cannot start the thread that writes the database");
}

/* Called with the lock held. While the disk is full, one request per second is tried. */
static enum store_status refusal(struct sqlite_writer *writer)
{
    uint64_t now = uv_hrtime();
    if (writer->failing)
        return STORE_FAILED;
    if (!writer->full)
        return STORE_OK;
    if (now < writer->next_try)
        return STORE_NO_SPACE;
    writer->next_try = now + second_ns;
    return STORE_OK;
}

void sqlite_writer_commit(struct sqlite_writer *writer, const struct store *store,
                          struct store_commit *req)
{
    req->begun_us = commit_report_now_us();
    uv_mutex_lock(&writer->lock);
    assert(!writer->stopping);
    req->status = refusal(writer);
    if (req->status) {
        list_append(&writer->done, &req->link);
        uv_async_send(&writer->finished);
    } else {
        commit_line_add(&writer->line, store, req);
    }
    bool waits = !req->status;
    uv_mutex_unlock(&writer->lock);
    if (waits) /* only now: woken earlier, the thread would wait for the lock */
        uv_cond_signal(&writer->wake);
}

void sqlite_writer_purge(struct sqlite_writer *writer, struct store_purge *req)
{
    uv_mutex_lock(&writer->lock);
    assert(!writer->stopping);
    req->status = writer->failing ? STORE_FAILED : STORE_OK;
    if (req->status) {
        list_append(&writer->purges_done, &req->link);
        uv_async_send(&writer->finished);
    } else {
        list_append(&writer->purges, &req->link);
        uv_cond_signal(&writer->wake);
    }
    uv_mutex_unlock(&writer->lock);
}

void sqlite_writer_stop(struct sqlite_writer *writer,
                        void (*stopped)(struct sqlite_writer *writer))
{
    writer->stopped_fn = stopped;
    uv_mutex_lock(&writer->lock);
    writer->stopping = true;
    uv_cond_signal(&writer->wake);
    uv_mutex_unlock(&writer->lock);
}
