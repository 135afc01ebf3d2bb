/* pg_writers.c - assigns commits to the writers, and reports and ends them.
 *
 * See the drawing in pg_writer.c. */
#include "store/pg/pg_writer.h"

#include <assert.h>

#include "base/log.h"

enum {
    STOP_MS = 5000,
    LOOK_MS = 1000, /* interval of checks whether the database has become unreachable */
};

static const uint64_t second_ns = 1000000000;

static void maybe_closing(struct pg_writers *writers);

/* ---- finishing requests ---- */

static void wake(struct pg_writers *writers)
{
    uv_async_send(&writers->finished);
}

/* A rejection for one environment counts for all: this process no longer leads. */
static void report_moved(struct pg_writers *writers)
{
    struct store *store = writers->report.store;
    if (store->on_moved)
        store->on_moved(store->moved_owner);
}

void pg_writers_finish(struct pg_writers *writers, struct store_commit *req,
                       enum store_status status)
{
    if (status == STORE_MOVED)
        report_moved(writers);
    req->status = status;
    req->synced_us = commit_report_now_us();
    list_remove(&req->link);
    list_append(&writers->done, &req->link);
    wake(writers);
}

void pg_writers_finish_all(struct pg_writers *writers, struct list *commits,
                           enum store_status status)
{
    list_each (link, commits)
        pg_writers_finish(writers, container_of(link, struct store_commit, link), status);
}

void pg_writers_finish_purge(struct pg_writers *writers, struct store_purge *req,
                             enum store_status status)
{
    if (status == STORE_MOVED)
        report_moved(writers);
    req->status = status;
    list_append(&writers->purges_done, &req->link);
    wake(writers);
}

void pg_writers_finish_purges(struct pg_writers *writers, struct list *purges,
                              enum store_status status)
{
    while (!list_empty(purges))
        pg_writers_finish_purge(
            writers, container_of(list_take(purges), struct store_purge, link), status);
}

/* ---- state of the store ---- */

void pg_writers_follow(struct pg_writers *writers)
{
    bool failing = writers->lost, full = false;
    const char *trouble = writers->lost ? writers->lost : "";
    for (unsigned i = 0; i < writers->count; i++) {
        const struct pg_writer *writer = &writers->writers[i];
        failing |= writer->failing;
        full |= writer->full;
        if (writer->failing || writer->full)
            trouble = writer->trouble;
    }
    if (writers->lost && writers->leaves)
        writers->report.store->failing = true; /* as planned: not reported as a failure */
    commit_report_state(&writers->report, failing, full, trouble);
}

void pg_writers_lose(struct pg_writers *writers, const char *reason)
{
    if (!writers->lost && writers->leaves)
        log_info("this process no longer leads", "reason", "it gave up the lead", NULL);
    else if (!writers->lost)
        log_error("this process no longer leads", "reason", reason, NULL);
    if (!writers->lost)
        writers->lost = reason;
    for (unsigned i = 0; i < writers->count; i++) {
        struct pg_writer *writer = &writers->writers[i];
        pg_writer_give_up(writer, STORE_MOVED);
    }
    pg_writers_finish_all(writers, &writers->wide, STORE_MOVED);
    pg_writers_follow(writers);
    report_moved(writers);
}

/* ---- the next step ---- */

bool pg_writers_rest(const struct pg_writers *writers)
{
    for (unsigned i = 0; i < writers->count; i++)
        if (!pg_writer_rests(&writers->writers[i]))
            return false;
    return true;
}

void pg_writers_go_on(struct pg_writers *writers)
{
    for (unsigned i = 0; i < writers->count; i++)
        pg_writer_go_on(&writers->writers[i]);
    maybe_closing(writers);
}

/* ---- ending ---- */

void pg_writers_closed(struct pg_writers *writers)
{
    if (--writers->open)
        return;
    for (unsigned i = 0; i < writers->count; i++)
        pg_writer_finish(&writers->writers[i]);
    commit_report_finish(&writers->report);
    writers->stopped_fn(writers);
}

static void on_stop_timer_closed(uv_handle_t *handle)
{
    struct pg_writers *writers =
        container_of((uv_timer_t *)handle, struct pg_writers, stop_timer);
    pg_writers_closed(writers);
}

static void on_finished_closed(uv_handle_t *handle)
{
    struct pg_writers *writers =
        container_of((uv_async_t *)handle, struct pg_writers, finished);
    pg_writers_closed(writers);
}

static void close_all(struct pg_writers *writers)
{
    writers->closing = true;
    writers->open = 2 + 2 * writers->count;
    uv_close((uv_handle_t *)&writers->finished, on_finished_closed);
    uv_close((uv_handle_t *)&writers->stop_timer, on_stop_timer_closed);
    for (unsigned i = 0; i < writers->count; i++)
        pg_writer_close(&writers->writers[i]);
}

static bool is_at_rest(const struct pg_writers *writers)
{
    bool rests = list_empty(&writers->wide) && list_empty(&writers->done) &&
                 list_empty(&writers->purges_done) &&
                 !commit_turns_count(&writers->report.turns);
    for (unsigned i = 0; i < writers->count && rests; i++)
        rests = !pg_writer_has_work(&writers->writers[i]);
    return rests;
}

static void maybe_closing(struct pg_writers *writers)
{
    if (writers->stopping && !writers->closing && is_at_rest(writers))
        close_all(writers);
}

/* Gives up: it is unknown whether requests in flight were written. */
static void on_stop_timeout(uv_timer_t *timer)
{
    struct pg_writers *writers = container_of(timer, struct pg_writers, stop_timer);
    if (!writers->stopping && !writers->report.store->failing) {
        uv_timer_start(timer, on_stop_timeout, LOOK_MS, 0);
        return;
    }
    writers->over = true;
    for (unsigned i = 0; i < writers->count; i++) {
        struct pg_writer *writer = &writers->writers[i];
        pg_writer_give_up(writer, STORE_FAILED);
    }
    pg_writers_finish_all(writers, &writers->wide, STORE_FAILED);
    wake(writers);
}

void pg_writers_limit_wait(struct pg_writers *writers)
{
    uv_timer_start(&writers->stop_timer, on_stop_timeout, STOP_MS, 0);
}

void pg_writers_stop(struct pg_writers *writers,
                     void (*stopped)(struct pg_writers *writers))
{
    writers->stopped_fn = stopped;
    writers->stopping = true;
    uv_timer_start(&writers->stop_timer, on_stop_timeout, STOP_MS, 0);
    wake(writers);
}

/* ---- reporting ---- */

static void report_purge(struct pg_writers *writers)
{
    struct store_purge *req =
        container_of(list_take(&writers->purges_done), struct store_purge, link);
    if (req->status == STORE_OK) {
        req->position.stored = positions_get(writers->report.positions, req->env).stored;
        positions_put(writers->report.positions, req->position);
    }
    req->done(req, req->status);
}

static void on_finished(uv_async_t *async)
{
    struct pg_writers *writers = container_of(async, struct pg_writers, finished);
    commit_report_take(&writers->report, &writers->done);
    bool all = commit_report_run(&writers->report);
    if (!list_empty(&writers->purges_done))
        report_purge(writers);
    if (!all || !list_empty(&writers->done) || !list_empty(&writers->purges_done))
        wake(writers);
    maybe_closing(writers);
}

/* ---- beginning ---- */

enum err pg_writers_start(struct pg_writers *writers, uv_loop_t *loop, PGconn *conn,
                          const struct pg_hello *hello, struct failure *why)
{
    int wanted = writers->options->writers;
    writers->loop = loop;
    writers->types = hello->types;
    memcpy(writers->timeline, hello->timeline, sizeof(hello->timeline));
    writers->count = wanted > 0 ? (unsigned)wanted : 2;
    if (writers->count > PG_WRITERS_MAX)
        writers->count = PG_WRITERS_MAX;
    list_init(&writers->wide);
    list_init(&writers->done);
    list_init(&writers->purges_done);
    if (uv_async_init(loop, &writers->finished, on_finished))
        return explain(why, ERR_STORE, "cannot watch the sockets of the database");
    uv_timer_init(loop, &writers->stop_timer);
    for (unsigned i = 0; i < writers->count; i++) {
        struct pg_hello own = *hello;
        struct failure none; /* without a connection now, the writer retries on the loop */
        pg_writer_begin(writers, i,
                        i ? pg_connect(writers->options, NULL, &own, &none) : conn, &own);
    }
    return OK;
}

/* ---- beginning requests ---- */

/* While the store is full or rejects writes, one commit per second is tried. */
static enum store_status refusal(struct pg_writer *writer)
{
    uint64_t now = uv_hrtime();
    if (writer->all->lost)
        return STORE_MOVED;
    if (writer->all->over)
        return STORE_FAILED;
    if (!writer->failing && !writer->full)
        return STORE_OK;
    if (now < writer->next_try)
        return writer->full ? STORE_NO_SPACE : STORE_FAILED;
    writer->next_try = now + second_ns;
    return STORE_OK;
}

static struct pg_writer *writer_of_env(struct pg_writers *writers, uint32_t env)
{
    return &writers->writers[env % writers->count];
}

/* Returns the writer of all its environments; NULL if there are several. */
static struct pg_writer *writer_of_commit(struct pg_writers *writers,
                                          const struct store_commit *req)
{
    struct pg_writer *writer = NULL;
    for (size_t i = 0; i < req->change_count + req->claim_count; i++) {
        uint32_t env = i < req->change_count ? req->changes[i].env
                                             : req->claims[i - req->change_count].env;
        struct pg_writer *own = writer_of_env(writers, env);
        if (writer && writer != own)
            return NULL;
        writer = own;
    }
    return writer ? writer : &writers->writers[0];
}

void pg_writers_commit(struct pg_writers *writers, const struct store *store,
                       struct store_commit *req)
{
    struct pg_writer *writer = writer_of_commit(writers, req);
    assert(!writers->stopping);
    req->begun_us = commit_report_now_us();
    list_init(&req->link);
    enum store_status status = refusal(writer ? writer : &writers->writers[0]);
    if (status) {
        pg_writers_finish(writers, req, status);
        return;
    }
    if (writer)
        commit_line_add(&writer->line, store, req);
    else
        list_append(&writers->wide, &req->link);
    pg_writers_go_on(writers);
}

void pg_writers_purge(struct pg_writers *writers, struct store_purge *req)
{
    struct pg_writer *writer = writer_of_env(writers, req->env);
    assert(!writers->stopping);
    list_init(&req->link);
    if (writers->lost || writers->over || writer->failing) {
        pg_writers_finish_purge(writers, req, writers->lost ? STORE_MOVED : STORE_FAILED);
        return;
    }
    list_append(&writer->purges, &req->link);
    pg_writer_go_on(writer);
}
