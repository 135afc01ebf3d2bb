/* pg_read.c - reads.
 *
 *   loop thread                                      worker thread
 *   begin ─► waiting ─► idle link ─► statement
 *                ▲          lost │      │ answered
 *                └───────────────┘      └──────────► decode_work: rows into runs
 *   done ◄───────────────────────────────────────── after_decode
 *
 * The server ends a search that takes longer than two seconds, what waits for a lock as long, and
 * what is found by its key, which may be large, after ten; only what a start reads, which cannot
 * do without, may take longer. A read whose connection is lost, or silent for five seconds, is
 * begun again, for ten seconds. One that waits fails when nothing has come on any connection for
 * five seconds, of a start for thirty: in a line that moves it waits for its turn.
 *
 * The runs that a start walks come by COPY. Between two pages it stands still, and its connection
 * serves nobody else: the next page of the walk goes on with it, anything else gives it up. */
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
    PATIENCE_MS = 5000,
    START_PATIENCE_MS = 30000,
    LOOK_MS = 1000, /* between two looks at who has waited too long */
};

enum pg_read_kind { READ_LOAD, READ_PIECE, READ_LIST, READ_COUNT, READ_WALK, READ_SCAN };

/* A page of the runs that a start walks; zero is empty. */
struct start_page {
    struct buf rows; /* one behind the other, each after its length */
    size_t count;
    uint64_t last; /* the rev of its last row */
};

struct pg_read {
    struct work work;
    struct pg_readers *readers;
    enum pg_read_kind kind;
    union {
        struct store_load *load;
        struct store_piece *piece;
        struct store_list *list;
        struct store_count *count;
        struct store_walk *walk;
        struct store_scan *scan;
    } req;
    struct read_waiter waiter;
    struct list link; // pg_readers::reads
    PGresult *answer;
    struct start_page page; /* of a walk by COPY */
    uint64_t begun_ms;
    uint64_t served_ms; /* when it had a connection first; 0: it has had none */
};

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

static enum store_status *status_of(struct pg_read *read)
{
    switch (read->kind) {
    case READ_LOAD: return &read->req.load->status;
    case READ_PIECE: return &read->req.piece->status;
    case READ_LIST: return &read->req.list->status;
    case READ_COUNT: return &read->req.count->status;
    case READ_WALK: return &read->req.walk->status;
    default: return &read->req.scan->status;
    }
}

/* ---- pages of a start ---- */

/* Each page as a statement of its own would cost the server four times as much: so one COPY sends
 * all runs, and stands still between two pages (pg_link.h). Rows wait for a worker: the loop looks
 * at nothing in them but where the walk has come to, from where a COPY that was cut off is begun
 * again. They are copied out of the memory that libpq gives each, so that this is freed where it
 * was allocated, which costs the allocator least. */

static bool page_is_full(const struct start_page *page, const struct store_walk *req)
{
    return page->count == req->limit ||
           (req->byte_limit && page->rows.len > req->byte_limit);
}

/* What cannot be read, or does not come after what came before, is missing in the count. */
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

/* Takes rows that have come until the page is full, as req says it. Returns true when it is. */
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

/* Makes runs of the rows; on a worker thread. */
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

/* ---- worker threads: answers into what was asked for ---- */

static bool is_copied(const struct pg_read *read)
{
    return read->kind == READ_WALK && read->req.walk->takes_its_time &&
           read->req.walk->kind == WALK_UNFINISHED;
}

/* Whether there are more says the answer, which comes when all rows were taken. */
static void copied_work(struct pg_read *read)
{
    struct store_walk *req = read->req.walk;
    page_read(&read->page, req);
    req->more = !read->answer;
    req->seq = req->up_to;
    req->status = STORE_OK;
}

static void decode_work(struct work *work)
{
    struct pg_read *read = container_of(work, struct pg_read, work);
    switch (read->kind) {
    case READ_LOAD: pg_answer_load(read->req.load, read->answer); break;
    case READ_PIECE: pg_answer_piece(read->req.piece, read->answer); break;
    case READ_LIST: pg_answer_list(read->req.list, read->answer); break;
    case READ_COUNT: pg_answer_count(read->req.count, read->answer); break;
    case READ_WALK:
        if (is_copied(read))
            copied_work(read);
        else
            pg_answer_walk(read->req.walk, read->answer);
        break;
    case READ_SCAN: pg_answer_scan(read->req.scan, read->answer); break;
    }
    PQclear(read->answer);
    read->answer = NULL;
}

/* ---- answers ---- */

static void tell(const struct pg_read *read)
{
    metric_add(M_STORE_READS, 1);
    switch (read->kind) {
    case READ_LOAD: read->req.load->done(read->req.load, read->req.load->status); break;
    case READ_PIECE: read->req.piece->done(read->req.piece, read->req.piece->status); break;
    case READ_LIST: read->req.list->done(read->req.list, read->req.list->status); break;
    case READ_COUNT: read->req.count->done(read->req.count, read->req.count->status); break;
    case READ_WALK: read->req.walk->done(read->req.walk, read->req.walk->status); break;
    case READ_SCAN: read->req.scan->done(read->req.scan, read->req.scan->status); break;
    }
}

static void maybe_closing(struct pg_readers *readers);

/* Fresh memory for each page would cost as much as what is read into it. */
static void keep_memory(struct pg_read *read)
{
    struct buf *kept = &read->readers->copied_rows;
    if (is_copied(read) && read->req.walk->more && !kept->ptr) {
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
    tell(read);
    free(read);
    maybe_closing(readers);
}

static void after_decode(struct work *work)
{
    pg_read_finish(container_of(work, struct pg_read, work));
}

/* Nothing was found. */
static void finish_without(struct pg_read *read, enum store_status status)
{
    if (read->kind == READ_LIST)
        read->req.list->runs = NULL, read->req.list->count = 0;
    else if (read->kind == READ_WALK)
        read->req.walk->runs = NULL, read->req.walk->count = 0;
    else if (read->kind == READ_SCAN)
        read->req.scan->documents = NULL, read->req.scan->count = 0;
    *status_of(read) = status;
    pg_read_finish(read);
}

/* ---- who is next ---- */

static void build(const struct pg_read *read, struct pg_query *query)
{
    switch (read->kind) {
    case READ_LOAD:
        if (read->req.load->is_document)
            pg_query_load_document(query, read->req.load);
        else
            pg_query_load_run(query, read->req.load);
        break;
    case READ_PIECE: pg_query_piece(query, read->req.piece); break;
    case READ_LIST: pg_query_list(query, read->req.list); break;
    case READ_COUNT: pg_query_count(query, read->req.count); break;
    case READ_WALK: pg_query_walk(query, read->req.walk); break;
    case READ_SCAN: pg_query_scan(query, read->req.scan); break;
    }
    buf_add_char(&query->sql, '\0');
}

/* Whether a read ends in time: a page does, what a start reads when it is through. */
static bool is_bounded(const struct pg_read *read)
{
    if (read->kind == READ_WALK)
        return !read->req.walk->takes_its_time;
    return read->kind != READ_SCAN || read->req.scan->limit;
}

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

/* Whoever has lost its connection. What has a start to end waits as patiently as if it had just
 * come. */
static void wait_again(struct pg_read *read)
{
    if (!is_bounded(read))
        read->begun_ms = now_ms();
    wait_in_line(read);
}

/* Of a COPY that was cut off the page has its rows, and is filled up behind them. */
static void start_copy(struct pg_reader *reader, const struct pg_read *read)
{
    struct pg_query query = { 0 };
    const struct store_walk *req = read->req.walk;
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
    build(read, &query);
    bool searches = read->kind == READ_LIST || read->kind == READ_COUNT;
    struct pg_statement statement = {
        .sql = query.sql.ptr,
        .params = &query.params,
        .stop_ms = !is_bounded(read) ? 0
                   : searches        ? STOP_SEARCH_MS
                                     : STOP_MS,
        .lock_ms = is_bounded(read) ? STOP_LOCK_MS : 0,
        .deadline_ms = is_bounded(read) ? DEADLINE_MS : 0,
    };
    pg_link_send(&reader->link, &statement);
    pg_query_finish(&query);
}

static void on_patience(uv_timer_t *timer);

static bool is_waiting(const struct pg_readers *readers)
{
    return !list_empty(&readers->waiting.quick.waiting) ||
           !list_empty(&readers->waiting.slow.waiting);
}

/* All connections but one may be searching; an only one may, too. */
static bool slow_may(const struct pg_readers *readers)
{
    return readers->slow + 1 < readers->count || (!readers->slow && readers->count == 1);
}

static void start_waiting(struct pg_readers *readers)
{
    for (size_t i = 0; i < readers->count; i++) {
        struct pg_reader *reader = &readers->readers[i];
        if (reader->link.state != PG_IDLE || reader->read)
            continue;
        struct read_waiter *next = read_line_take(&readers->waiting, slow_may(readers));
        if (!next)
            break;
        start(reader, container_of(next, struct pg_read, waiter));
    }
    if (is_waiting(readers) && !uv_is_active((uv_handle_t *)&readers->patience))
        uv_timer_start(&readers->patience, on_patience, LOOK_MS, 0);
}

/* When bytes came last, on whatever connection. */
static uint64_t heard_ms(const struct pg_readers *readers)
{
    uint64_t newest_ms = 0;
    for (size_t i = 0; i < readers->count; i++)
        if (readers->readers[i].link.heard_ms > newest_ms)
            newest_ms = readers->readers[i].link.heard_ms;
    return newest_ms;
}

static bool is_late(const struct pg_read *read, uint64_t now)
{
    uint64_t patience_ms = is_bounded(read) ? PATIENCE_MS : START_PATIENCE_MS;
    uint64_t heard = heard_ms(read->readers);
    return now >= (read->begun_ms > heard ? read->begun_ms : heard) + patience_ms;
}

/* A line gives only who is next: so all leave it, and those that may wait on stand in it again. */
static void on_patience(uv_timer_t *timer)
{
    struct pg_readers *readers = container_of(timer, struct pg_readers, patience);
    struct list late;
    list_init(&late);
    struct read_line fresh;
    read_line_init(&fresh);
    for (struct read_waiter *next; (next = read_line_take(&readers->waiting, true));) {
        struct pg_read *read = container_of(next, struct pg_read, waiter);
        if (!is_late(read, now_ms())) {
            read_line_add(&fresh, next);
            continue;
        }
        list_remove(&read->link);
        list_append(&late, &read->link);
    }
    for (struct read_waiter *next; (next = read_line_take(&fresh, true));)
        read_line_add(&readers->waiting, next);
    read_line_finish(&fresh);
    start_waiting(readers);
    while (!list_empty(&late))
        finish_without(container_of(late.next, struct pg_read, link), STORE_FAILED);
}

/* The reader serves nobody any more. */
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

/* A database that takes whoever comes and answers nobody is not asked for ever. */
static bool may_be_repeated(const struct pg_read *read)
{
    return !is_bounded(read) || now_ms() < read->served_ms + STOP_MS;
}

/* What was stopped although no limit of ours was over, somebody else has stopped. */
static bool is_repeated(const struct pg_read *read, enum pg_remedy remedy)
{
    return (remedy == PG_REPEAT && may_be_repeated(read)) ||
           (remedy == PG_STOPPED && !is_bounded(read));
}

static void take_error(struct pg_reader *reader, struct pg_read *read, PGresult *answer)
{
    enum pg_remedy remedy = pg_remedy_of(PQresultErrorField(answer, PG_DIAG_SQLSTATE));
    char reason[256];
    pg_reason(reason, PQresultErrorMessage(answer));
    PQclear(answer);
    if (is_repeated(read, remedy)) {
        if (remedy == PG_STOPPED)
            log_warn("the database stopped what a start reads: it is read on", "reason",
                     reason, NULL);
        pg_link_reopen(&reader->link);
        wait_again(read);
        start_waiting(reader->all);
        return;
    }
    if (remedy != PG_STOPPED)
        log_warn("the database refuses a read", "reason", reason, NULL);
    start_waiting(reader->all);
    finish_without(read, remedy == PG_STOPPED ? STORE_SLOW : STORE_FAILED);
}

static void decode(struct pg_read *read)
{
    read->work.run = decode_work;
    read->work.done = after_decode;
    work_begin(read->readers->loop, &read->work, WORK_DECODE);
}

/* Else runs would be missing, and nobody would know. */
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
        log_error("the database has sent other runs than it counts", NULL);
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
    bool is_full = page_take(page, link, reader->read->req.walk);
    reader->copied += page->count - before;
    if (!is_full)
        return;
    struct pg_read *read = take_read(reader);
    readers->copying = reader;
    readers->copied_env = read->req.walk->env;
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

/* ---- what is asked for ---- */

static uint64_t owner_of(const struct pg_readers *readers, uint32_t env)
{
    const struct store *store = readers->store;
    return store->share_of ? store->share_of(store->stored_owner, env) : env;
}

/* The COPY that stands still goes on with this read, if it is for the next page; if not, nobody
 * will ask for the rest of it. */
static bool goes_on(struct pg_readers *readers, struct pg_read *read)
{
    struct pg_reader *reader = readers->copying;
    if (!reader || !is_copied(read))
        return false;
    readers->copying = NULL;
    if (read->req.walk->env != readers->copied_env ||
        read->req.walk->after != readers->copied_to) {
        pg_link_reopen(&reader->link);
        return false;
    }
    serve(reader, read);
    pg_link_resume(&reader->link);
    return true;
}

static void pg_read_begin(struct pg_readers *readers, uint32_t env, struct pg_read read)
{
    assert(!readers->stopped_fn);
    struct pg_read *own = mem_new(struct pg_read);
    *own = read;
    own->readers = readers;
    own->begun_ms = now_ms();
    own->waiter.owner = owner_of(readers, env);
    own->waiter.env = env;
    list_init(&own->waiter.link);
    list_append(&readers->reads, &own->link);
    if (is_copied(own)) {
        own->page.rows = readers->copied_rows;
        readers->copied_rows = (struct buf){ 0 };
    }
    if (goes_on(readers, own))
        return;
    wait_in_line(own);
    start_waiting(readers);
}

void pg_readers_load(struct pg_readers *readers, struct store_load *req)
{
    pg_read_begin(readers, req->env,
                  (struct pg_read){ .kind = READ_LOAD, .req.load = req });
}

void pg_readers_piece(struct pg_readers *readers, struct store_piece *req)
{
    pg_read_begin(readers, req->env,
                  (struct pg_read){ .kind = READ_PIECE, .req.piece = req });
}

void pg_readers_list(struct pg_readers *readers, struct store_list *req)
{
    pg_read_begin(readers, req->env,
                  (struct pg_read){ .kind = READ_LIST,
                                    .req.list = req,
                                    .waiter.slow = !read_line_is_narrow(&req->filter) });
}

void pg_readers_count(struct pg_readers *readers, struct store_count *req)
{
    pg_read_begin(
        readers, req->env,
        (struct pg_read){ .kind = READ_COUNT, .req.count = req, .waiter.slow = true });
}

void pg_readers_walk(struct pg_readers *readers, struct store_walk *req)
{
    pg_read_begin(
        readers, req->env,
        (struct pg_read){ .kind = READ_WALK, .req.walk = req, .waiter.slow = true });
}

void pg_readers_scan(struct pg_readers *readers, struct store_scan *req)
{
    pg_read_begin(readers, req->env,
                  (struct pg_read){ .kind = READ_SCAN, .req.scan = req });
}

/* ---- beginning and end ---- */

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

static void on_patience_closed(uv_handle_t *handle)
{
    struct pg_readers *readers =
        container_of((uv_timer_t *)handle, struct pg_readers, patience);
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
    uv_close((uv_handle_t *)&readers->patience, on_patience_closed);
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
    uv_timer_init(loop, &readers->patience);
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
