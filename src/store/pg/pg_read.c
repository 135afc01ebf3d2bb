/* pg_read.c - sends reads to PostgreSQL, and decodes the results on worker threads.
 *
 *   loop thread                                      worker thread
 *   begin ─► waiting ─► idle link ─► statement
 *                ▲          lost │      │ answered
 *                └───────────────┘      └──────────► decode_work: rows into runs
 *   done ◄───────────────────────────────────────── after_decode
 *
 * The server stops a search after two seconds, a wait for a lock after two, and a read by
 * key, which may be large, after ten. Only reads at startup may take longer, because a
 * start needs their results. If a connection is lost or silent for five seconds, its read
 * is repeated, for up to ten seconds. A waiting read fails when nothing has arrived on any
 * connection for five seconds, or thirty for a start. While other reads are answered it
 * just waits for its turn. An abandoned read is not sent any more. If it was sent, the
 * server's limit ends it, and its answer is not decoded.
 *
 * The runs that a start walks arrive by COPY. Between two pages, the COPY is paused and its
 * connection serves no other read. The next page of the walk resumes it; another walk at
 * startup drops it. */
#include "store/pg/pg_read.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/work.h"
#include "store/pg/sql/pg_answer.h"
#include "store/pg/sql/pg_refusal.h"
#include "store/pg/sql/pg_rows.h"

enum {
    STOP_SEARCH_MS = 2000,
    STOP_LOCK_MS = 2000,
    STOP_MS = 10000,
    DEADLINE_MS = 5000,
    TIMEOUT_MS = 5000,
    START_TIMEOUT_MS = 30000,
    LOOK_MS = 1000, /* interval of checks for reads that have waited too long */
};

/* A page of the runs that a start walks. A zeroed struct is empty. */
struct start_page {
    struct buf rows; /* one after the other, each preceded by its length */
    size_t count;
    uint64_t last; /* rev of its last row */
};

struct pg_read {
    struct work work;
    struct pg_readers *readers;
    struct store_read *req;
    enum store_status status;
    struct read_waiter waiter;
    struct list link; // pg_readers::reads
    PGresult *answer;
    struct start_page page; /* for a walk by COPY */
    uint64_t begun_ms;
    uint64_t served_ms; /* when it first had a connection; 0: never */
};

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static struct store_walk *walk_of(const struct pg_read *read)
{
    return container_of(read->req, struct store_walk, read);
}

/* ---- pages of a start's walk ---- */

/* A statement per page would cost the server four times as much. So one COPY sends all
 * runs, and is paused between two pages (pg_link.h).
 *
 * Rows wait for a worker. The loop reads only the rev of each, from which a broken COPY
 * continues. Rows are copied out of the memory that libpq allocates for each, so that it is
 * freed where it was allocated, which costs the allocator least. */

static bool page_is_full(const struct start_page *page, const struct store_walk *req)
{
    return page->count == req->limit ||
           (req->byte_limit && page->rows.len > req->byte_limit);
}

/* Skips a row that is malformed or out of order: it is then missing from the count. */
static void page_keep(struct start_page *page, struct slice row)
{
    uint64_t rev;
    if (!pg_rows_read_copied_rev(row, &rev) || rev <= page->last)
        return;
    page->last = rev;
    pg_add_int4(&page->rows, (int32_t)row.len);
    buf_add(&page->rows, row);
    page->count++;
}

/* Takes rows that have arrived until the page is full. Returns true once it is. */
static bool page_take(struct start_page *page, struct pg_link *link,
                      const struct store_walk *req)
{
    struct slice row;
    while (!page_is_full(page, req) && (row = pg_link_take_row(link)).ptr) {
        page_keep(page, row);
        PQfreemem((void *)row.ptr);
    }
    return page_is_full(page, req);
}

static struct slice take_row(struct slice *rows)
{
    int32_t len = 0;
    pg_take_int4(rows, &len);
    struct slice row = { rows->ptr, (size_t)len };
    *rows = slice_from(*rows, (size_t)len);
    return row;
}

/* Decodes the rows into runs, on a worker thread. */
static void page_read(struct start_page *page, struct store_walk *req)
{
    struct slice rows = buf_slice(&page->rows);
    req->runs = page->count ? mem_new_array(struct run, page->count) : NULL;
    for (req->count = 0; req->count < page->count; req->count++)
        pg_rows_read_copied(take_row(&rows), &req->runs[req->count]);
}

static void page_finish(struct start_page *page)
{
    buf_finish(&page->rows);
    *page = (struct start_page){ 0 };
}

/* ---- worker threads: decoding ---- */

static bool is_copied(const struct pg_read *read)
{
    return read->req->kind == READ_WALK && walk_of(read)->takes_its_time &&
           walk_of(read)->kind == WALK_UNFINISHED;
}

/* The COPY's result arrives after its last row, so without it there are more rows. */
static enum store_status copied_work(struct pg_read *read)
{
    struct store_walk *req = walk_of(read);
    page_read(&read->page, req);
    req->more = !read->answer;
    req->seq = req->up_to;
    return STORE_OK;
}

static enum store_status answer_work(struct pg_read *read)
{
    if (store_read_is_abandoned(read->req))
        return STORE_FAILED;
    return is_copied(read) ? copied_work(read) : pg_answer_read(read->req, read->answer);
}

/* The answer of an abandoned read is not decoded, or not to its end. */
static void decode_work(struct work *work)
{
    struct pg_read *read = container_of(work, struct pg_read, work);
    read->status = answer_work(read);
    if (store_read_is_abandoned(read->req)) {
        store_read_finish(read->req);
        read->status = STORE_FAILED;
    }
    PQclear(read->answer);
    read->answer = NULL;
}

/* ---- finishing reads ---- */

static void maybe_closing(struct pg_readers *readers);

/* Keeps the memory for the next page, because new memory would cost as much as reading into
 * it. */
static void keep_memory(struct pg_read *read)
{
    struct buf *kept = &read->readers->copied_rows;
    if (is_copied(read) && walk_of(read)->more && !kept->ptr) {
        *kept = read->page.rows;
        read->page.rows = (struct buf){ 0 };
        buf_clear(kept);
    }
    page_finish(&read->page);
}

static void pg_read_finish(struct pg_read *read)
{
    struct pg_readers *readers = read->readers;
    list_remove(&read->link);
    keep_memory(read);
    metric_add(M_STORE_READS, 1);
    read->req->done(read->req, read->status);
    free(read);
    maybe_closing(readers);
}

static void after_decode(struct work *work)
{
    pg_read_finish(container_of(work, struct pg_read, work));
}

/* Finishes a read without a result. */
static void finish_without(struct pg_read *read, enum store_status status)
{
    read->status = status;
    pg_read_finish(read);
}

/* ---- serving reads ---- */

static void serve(struct pg_reader *reader, struct pg_read *read)
{
    reader->read = read;
    reader->all->slow += read->waiter.slow;
    if (!read->served_ms)
        read->served_ms = now_ms();
}

static void wait_in_line(struct pg_read *read)
{
    read_line_add(&read->readers->waiting, &read->waiter);
}

/* Puts a read whose connection was lost back into line. The time limit of an unbounded read
 * starts again. */
static void wait_again(struct pg_read *read)
{
    if (!read->waiter.bounded)
        read->begun_ms = now_ms();
    wait_in_line(read);
}

/* After a broken COPY the page keeps its rows, and more are added. */
static void start_copy(struct pg_reader *reader, const struct pg_read *read)
{
    struct pg_query query = { 0 };
    const struct store_walk *req = walk_of(read);
    reader->copied = 0;
    pg_query_copy_walk(&query, pg_schema_name(reader->all->options), req,
                       read->page.count ? read->page.last : req->after);
    buf_add_char(&query.sql, '\0');
    pg_link_copy(&reader->link, query.sql.ptr);
    pg_query_finish(&query);
}

static void start(struct pg_reader *reader, struct pg_read *read)
{
    struct pg_query query = { 0 };
    serve(reader, read);
    if (is_copied(read)) {
        start_copy(reader, read);
        return;
    }
    pg_query_read(&query, read->req);
    buf_add_char(&query.sql, '\0');
    bool searches = read->req->kind == READ_LIST || read->req->kind == READ_COUNT;
    struct pg_statement statement = {
        .sql = query.sql.ptr,
        .params = &query.params,
        .stop_ms = !read->waiter.bounded ? 0
                   : searches            ? STOP_SEARCH_MS
                                         : STOP_MS,
        .lock_ms = read->waiter.bounded ? STOP_LOCK_MS : 0,
        .deadline_ms = read->waiter.bounded ? DEADLINE_MS : 0,
    };
    pg_link_send(&reader->link, &statement);
    pg_query_finish(&query);
}

static void on_timeout_check(uv_timer_t *timer);
static void decode(struct pg_read *read);

/* Returns the next read to be served; NULL: none. Abandoned ones end without a statement. */
static struct pg_read *take_next(struct pg_readers *readers)
{
    bool slow_may = read_line_slow_may(readers->slow, readers->count);
    for (struct read_waiter *next; (next = read_line_take(&readers->waiting, slow_may));) {
        struct pg_read *read = container_of(next, struct pg_read, waiter);
        if (!store_read_is_abandoned(read->req))
            return read;
        decode(read);
    }
    return NULL;
}

static void start_waiting(struct pg_readers *readers)
{
    for (size_t i = 0; i < readers->count; i++) {
        struct pg_reader *reader = &readers->readers[i];
        if (reader->link.state != PG_IDLE || reader->read)
            continue;
        struct pg_read *next = take_next(readers);
        if (!next)
            break;
        start(reader, next);
    }
    if (!read_line_is_empty(&readers->waiting) &&
        !uv_is_active((uv_handle_t *)&readers->timeout))
        uv_timer_start(&readers->timeout, on_timeout_check, LOOK_MS, 0);
}

/* When bytes last arrived, on any connection. */
static uint64_t last_received_ms(const struct pg_readers *readers)
{
    uint64_t newest_ms = 0;
    for (size_t i = 0; i < readers->count; i++)
        if (readers->readers[i].link.last_received_ms > newest_ms)
            newest_ms = readers->readers[i].link.last_received_ms;
    return newest_ms;
}

static bool has_timed_out(const struct pg_read *read, uint64_t now)
{
    uint64_t timeout_ms = read->waiter.bounded ? TIMEOUT_MS : START_TIMEOUT_MS;
    uint64_t received = last_received_ms(read->readers);
    return now >= (read->begun_ms > received ? read->begun_ms : received) + timeout_ms;
}

/* Fails reads that have waited too long.
 *
 * A line only returns the next read, so all are taken out, and those that may wait longer
 * are added again. */
static void on_timeout_check(uv_timer_t *timer)
{
    struct pg_readers *readers = container_of(timer, struct pg_readers, timeout);
    struct list timed_out;
    list_init(&timed_out);
    struct read_line fresh;
    read_line_init(&fresh);
    for (struct read_waiter *next; (next = read_line_take(&readers->waiting, true));) {
        struct pg_read *read = container_of(next, struct pg_read, waiter);
        if (!has_timed_out(read, now_ms())) {
            read_line_add(&fresh, next);
            continue;
        }
        list_remove(&read->link);
        list_append(&timed_out, &read->link);
    }
    for (struct read_waiter *next; (next = read_line_take(&fresh, true));)
        read_line_add(&readers->waiting, next);
    read_line_finish(&fresh);
    start_waiting(readers);
    while (!list_empty(&timed_out))
        finish_without(container_of(timed_out.next, struct pg_read, link), STORE_FAILED);
}

/* Ends the reader's work on its read, and returns it. */
static struct pg_read *take_read(struct pg_reader *reader)
{
    struct pg_read *read = reader->read;
    reader->read = NULL;
    if (read)
        reader->all->slow -= read->waiter.slow;
    return read;
}

static struct pg_reader *reader_of(struct pg_link *link)
{
    return container_of(link, struct pg_reader, link);
}

/* Limits the retries with a database that accepts connections but never responds. */
static bool may_be_repeated(const struct pg_read *read)
{
    return !read->waiter.bounded || now_ms() < read->served_ms + STOP_MS;
}

/* A canceled read without limits is repeated, because another session has canceled it. */
static bool is_repeated(const struct pg_read *read, enum pg_remedy remedy)
{
    return (remedy == PG_REPEAT && may_be_repeated(read)) ||
           (remedy == PG_STOPPED && !read->waiter.bounded);
}

static void take_error(struct pg_reader *reader, struct pg_read *read, PGresult *answer)
{
    enum pg_remedy remedy = pg_remedy_of(PQresultErrorField(answer, PG_DIAG_SQLSTATE));
    char reason[PG_REASON_MAX];
    pg_reason(reason, PQresultErrorMessage(answer));
    PQclear(answer);
    if (is_repeated(read, remedy)) {
        if (remedy == PG_STOPPED)
            log_warn("the database canceled a read of the start; continuing", "reason",
                     reason, NULL);
        pg_link_reopen(&reader->link);
        wait_again(read);
        start_waiting(reader->all);
        return;
    }
    if (remedy != PG_STOPPED)
        log_warn("the database rejected a read", "reason", reason, NULL);
    start_waiting(reader->all);
    finish_without(read, remedy == PG_STOPPED ? STORE_SLOW : STORE_FAILED);
}

static void decode(struct pg_read *read)
{
    read->work.run = decode_work;
    read->work.done = after_decode;
    work_begin(read->readers->loop, &read->work, WORK_DECODE);
}

/* Compares the number of rows, because otherwise missing runs could go unnoticed. */
static bool has_all(const struct pg_reader *reader, PGresult *answer)
{
    return strtoull(PQcmdTuples(answer), NULL, 10) == reader->copied;
}

static void on_answer(struct pg_link *link, PGresult *answer)
{
    struct pg_reader *reader = reader_of(link);
    struct pg_read *read = take_read(reader);
    if (PQresultStatus(answer) != (is_copied(read) ? PGRES_COMMAND_OK : PGRES_TUPLES_OK)) {
        take_error(reader, read, answer);
        return;
    }
    if (is_copied(read) && !has_all(reader, answer)) {
        PQclear(answer);
        log_error("malformed response from the database: the number of runs is wrong",
                  NULL);
        start_waiting(reader->all);
        finish_without(read, STORE_FAILED);
        return;
    }
    read->answer = answer;
    decode(read);
    start_waiting(reader->all);
}

static void on_rows(struct pg_link *link)
{
    struct pg_reader *reader = reader_of(link);
    struct pg_readers *readers = reader->all;
    struct start_page *page = &reader->read->page;
    size_t before = page->count;
    bool is_full = page_take(page, link, walk_of(reader->read));
    reader->copied += page->count - before;
    if (!is_full)
        return;
    struct pg_read *read = take_read(reader);
    readers->copying = reader;
    readers->copied_env = read->req->env;
    readers->copied_to = read->page.last;
    pg_link_pause(link);
    decode(read);
}

static void on_ready(struct pg_link *link)
{
    start_waiting(reader_of(link)->all);
}

static void on_lost(struct pg_link *link, bool was_busy)
{
    struct pg_read *read = take_read(reader_of(link));
    (void)was_busy;
    bool again = read && may_be_repeated(read);
    if (again)
        wait_again(read);
    start_waiting(reader_of(link)->all);
    if (read && !again)
        finish_without(read, STORE_FAILED);
}

/* ---- beginning reads ---- */

/* Resumes the paused COPY if this read is for the next page.
 *
 * A walk for anything else drops it, because the rest will not be requested. Other reads
 * leave it paused. */
static bool goes_on(struct pg_readers *readers, struct pg_read *read)
{
    struct pg_reader *reader = readers->copying;
    if (!reader || !is_copied(read))
        return false;
    readers->copying = NULL;
    if (read->req->env != readers->copied_env ||
        walk_of(read)->after != readers->copied_to) {
        pg_link_reopen(&reader->link);
        return false;
    }
    serve(reader, read);
    pg_link_resume(&reader->link);
    return true;
}

void pg_readers_begin_history(struct pg_readers *readers, const char *timeline)
{
    if (readers->copying)
        pg_link_reopen(&readers->copying->link);
    readers->copying = NULL;
    for (size_t i = 0; i < readers->count; i++) {
        struct pg_link *link = &readers->readers[i].link;
        if (link->state == PG_IDLE && strcmp(link->hello.timeline, timeline) != 0)
            pg_link_reopen(link);
    }
}

void pg_readers_begin(struct pg_readers *readers, struct store_read *req)
{
    assert(!readers->stopped_fn);
    struct pg_read *read = mem_new(struct pg_read);
    read->readers = readers;
    read->req = req;
    read->begun_ms = now_ms();
    read_waiter_init(&read->waiter, readers->store, req);
    list_append(&readers->reads, &read->link);
    if (is_copied(read)) {
        read->page.rows = readers->copied_rows;
        readers->copied_rows = (struct buf){ 0 };
    }
    if (goes_on(readers, read))
        return;
    wait_in_line(read);
    start_waiting(readers);
}

/* ---- beginning and ending ---- */

static void maybe_stopped(struct pg_readers *readers)
{
    if (readers->links || readers->handles)
        return;
    read_line_finish(&readers->waiting);
    buf_finish(&readers->copied_rows);
    readers->stopped_fn(readers);
}

static void on_link_closed(struct pg_link *link)
{
    struct pg_readers *readers = reader_of(link)->all;
    readers->links--;
    maybe_stopped(readers);
}

static void on_timeout_closed(uv_handle_t *handle)
{
    struct pg_readers *readers =
        container_of((uv_timer_t *)handle, struct pg_readers, timeout);
    readers->handles--;
    maybe_stopped(readers);
}

static void maybe_closing(struct pg_readers *readers)
{
    if (!readers->stopped_fn || readers->closing || !list_empty(&readers->reads))
        return;
    readers->closing = true;
    readers->handles = 1;
    readers->links = readers->count;
    uv_close((uv_handle_t *)&readers->timeout, on_timeout_closed);
    for (size_t i = 0; i < readers->count; i++)
        pg_link_close(&readers->readers[i].link);
}

void pg_readers_start(struct pg_readers *readers, uv_loop_t *loop)
{
    int wanted = readers->options->readers;
    readers->loop = loop;
    readers->count = wanted > 0 ? (size_t)wanted : 3;
    if (readers->count > PG_READERS_MAX)
        readers->count = PG_READERS_MAX;
    read_line_init(&readers->waiting);
    list_init(&readers->reads);
    uv_timer_init(loop, &readers->timeout);
    for (size_t i = 0; i < readers->count; i++) {
        struct pg_reader *reader = &readers->readers[i];
        reader->all = readers;
        reader->link = (struct pg_link){ .loop = loop,
                                         .options = readers->options,
                                         .reads = true,
                                         .on_ready = on_ready,
                                         .on_answer = on_answer,
                                         .on_rows = on_rows,
                                         .on_lost = on_lost,
                                         .on_closed = on_link_closed };
        pg_link_begin(&reader->link);
    }
}

void pg_readers_stop(struct pg_readers *readers,
                     void (*stopped)(struct pg_readers *readers))
{
    readers->stopped_fn = stopped;
    maybe_closing(readers);
}
