/* sqlite_read.c - executes reads on libuv's worker threads, each with a connection.
 *
 *   loop thread              worker thread
 *   begin ─► idle connection ─► read_work: query, copy rows into new memory
 *   done  ◄─ connection idle ◄─ after_read
 *
 * A read without an idle connection waits on the loop thread (read_line.h), so that no
 * worker has to wait. A read is stopped after two seconds; only reads of a start may take
 * longer, because the start needs their results. An abandoned read is not executed, or is
 * interrupted. Functions whose names end with _work run
 * on worker threads. */
#include "store/sqlite/sqlite_read.h"

#include <assert.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "base/work.h"
#include "store/sqlite/sqlite_find.h"
#include "store/sqlite/sqlite_rows.h"

static const uint64_t read_limit_ns = UINT64_C(2000000000);

struct read {
    struct work work;
    struct sqlite_readers *readers;
    struct sqlite_reader *reader;
    struct store_read *req;
    enum store_status status;
    struct read_waiter waiter;
};

/* ---- worker threads ---- */

static enum store_status load_run_work(struct sqlite_db *db, uint32_t env, struct slice id,
                                       enum store_parts parts, struct run *run)
{
    static const enum sqlite_statement statements[] = {
        [STORE_METADATA] = SQL_LOAD_METADATA,
        [STORE_FACTS_ALONE] = SQL_LOAD_FACTS,
        [STORE_PACKETS] = SQL_LOAD_RUN,
    };
    sqlite3_stmt *stmt = sqlite_db_stmt(db, statements[parts]);
    if (!stmt)
        return sqlite_status(sqlite3_extended_errcode(db->handle));
    sqlite3_bind_int64(stmt, 1, env);
    sqlite_bind_text(stmt, 2, id);
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        sqlite_rows_read(stmt, run, parts);
    sqlite3_reset(stmt);
    return code == SQLITE_DONE ? STORE_MISSING : sqlite_status(code);
}

static struct document read_document(sqlite3_stmt *stmt, enum document_kind kind)
{
    return (struct document){
        .kind = kind,
        .env = (uint32_t)sqlite3_column_int64(stmt, 0),
        .version = (uint32_t)sqlite3_column_int64(stmt, 1),
        .name = sqlite_column_copy(stmt, 2),
        .body = sqlite_column_copy(stmt, 3),
    };
}

static enum store_status find_run_work(struct sqlite_db *db, struct store_load *req)
{
    struct slice id = bytes_slice(req->name);
    uint32_t *env = &req->read.env;
    enum store_status status =
        *env ? load_run_work(db, *env, id, STORE_PACKETS, &req->run) : STORE_MISSING;
    for (size_t i = 0; i < req->other_count && status == STORE_MISSING; i++) {
        *env = req->others[i];
        status = load_run_work(db, *env, id, STORE_PACKETS, &req->run);
    }
    return status;
}

static enum store_status load_work(struct sqlite_db *db, struct store_read *read)
{
    struct store_load *req = container_of(read, struct store_load, read);
    if (!req->is_document)
        return find_run_work(db, req);
    sqlite3_stmt *stmt = sqlite_db_stmt(db, SQL_LOAD_DOCUMENT);
    if (!stmt)
        return sqlite_status(sqlite3_extended_errcode(db->handle));
    sqlite3_bind_int(stmt, 1, (int)req->kind);
    sqlite3_bind_int64(stmt, 2, read->env);
    sqlite_bind_text(stmt, 3, bytes_slice(req->name));
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        req->document = read_document(stmt, req->kind);
    sqlite3_reset(stmt);
    return code == SQLITE_DONE ? STORE_MISSING : sqlite_status(code);
}

static sqlite3_stmt *bind_piece(struct sqlite_db *db, const struct store_piece *req)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(db, SQL_LOAD_PIECE);
    int64_t limit = (int64_t)req->limit;
    if (!stmt)
        return NULL;
    sqlite3_bind_int(stmt, 1, (int)req->kind);
    sqlite3_bind_int64(stmt, 2, req->read.env);
    sqlite_bind_text(stmt, 3, bytes_slice(req->name));
    sqlite3_bind_int64(stmt, 4, req->last ? -limit : (int64_t)req->offset + 1);
    sqlite3_bind_int64(stmt, 5, limit);
    sqlite3_bind_int64(stmt, 6, (int64_t)req->seq);
    return stmt;
}

static enum store_status piece_work(struct sqlite_db *db, struct store_read *read)
{
    struct store_piece *req = container_of(read, struct store_piece, read);
    sqlite3_stmt *stmt = bind_piece(db, req);
    if (!stmt)
        return sqlite_status(sqlite3_extended_errcode(db->handle));
    int code = sqlite3_step(stmt);
    enum store_status status = code == SQLITE_DONE ? STORE_MISSING : sqlite_status(code);
    if (code == SQLITE_ROW) {
        uint64_t seq = (uint64_t)sqlite3_column_int64(stmt, 0);
        if (req->seq && req->seq != seq)
            status = STORE_LOST;
        else
            req->piece = sqlite_column_copy(stmt, 2);
        req->seq = seq;
        req->total = (size_t)sqlite3_column_int64(stmt, 1);
    }
    sqlite3_reset(stmt);
    return status;
}

static uint64_t read_seq(struct sqlite_db *db, uint32_t env)
{
    sqlite3_stmt *stmt = sqlite_db_stmt(db, SQL_SEQ);
    uint64_t seq = 0;
    sqlite3_bind_int64(stmt, 1, env);
    if (stmt && sqlite3_step(stmt) == SQLITE_ROW)
        seq = (uint64_t)sqlite3_column_int64(stmt, 0);
    sqlite3_reset(stmt);
    return seq;
}

static enum store_status list_work(struct sqlite_db *db, struct store_read *read)
{
    struct store_list *req = container_of(read, struct store_list, read);
    struct sqlite_ids ids = { 0 };
    size_t bytes = 0;
    req->count = 0;
    req->seq = read_seq(db, read->env);
    enum store_status status = sqlite_find_listed(db, req, &ids);
    req->runs = mem_new_array(struct run, ids.count);
    for (size_t i = 0; i < ids.count && !status; i++) {
        struct run *run = &req->runs[req->count];
        if (req->byte_limit && bytes > req->byte_limit) {
            req->more = true;
            break;
        }
        status = load_run_work(db, read->env, slice_of(ids.ids[i]), req->parts, run);
        req->count += status == STORE_OK;
        bytes += status == STORE_OK ? run_packet_bytes(run) : 0;
    }
    sqlite_ids_finish(&ids);
    return status;
}

static enum store_status count_work(struct sqlite_db *db, struct store_read *read)
{
    struct store_count *req = container_of(read, struct store_count, read);
    memset(req->counts, 0, sizeof(req->counts));
    req->seq = read_seq(db, read->env);
    return sqlite_find_counts(db, req);
}

static enum store_status walk_work(struct sqlite_db *db, struct store_read *read)
{
    struct store_walk *req = container_of(read, struct store_walk, read);
    struct sqlite_ids ids = { 0 };
    size_t bytes = 0;
    req->count = 0;
    req->seq = read_seq(db, read->env);
    enum store_status status = sqlite_find_walked(db, req, &ids);
    size_t limit = ids.count < req->limit ? ids.count : req->limit;
    req->runs = mem_new_array(struct run, limit);
    while (req->count < limit && !status) {
        if (req->byte_limit && bytes > req->byte_limit)
            break;
        struct run *run = &req->runs[req->count];
        struct slice id = slice_of(ids.ids[req->count]);
        status = load_run_work(db, read->env, id, STORE_PACKETS, run);
        if (status)
            break;
        bytes += run_packet_bytes(run);
        req->count++;
    }
    req->more = req->count < ids.count;
    sqlite_ids_finish(&ids);
    return status;
}

/* Sorts after every name: the highest character. */
#define HIGHEST "\xF4\x8F\xBF\xBF"

static sqlite3_stmt *bind_scan(struct sqlite_db *db, const struct store_scan *req)
{
    bool every = req->read.env == ENV_EVERY;
    enum sqlite_statement which = every ? SQL_SCAN : SQL_SCAN_ENV;
    if (req->of_claims)
        which = every ? SQL_SCAN_CLAIMS : SQL_SCAN_CLAIMS_ENV;
    if (req->limit)
        which = req->downwards ? SQL_SCAN_DOWN : SQL_SCAN_UP;
    sqlite3_stmt *stmt = sqlite_db_stmt(db, which);
    if (!stmt)
        return NULL;
    sqlite3_bind_int(stmt, 1, req->of_claims ? (int)req->claim_kind : (int)req->kind);
    if (!every)
        sqlite3_bind_int64(stmt, 2, req->read.env);
    if (req->limit) {
        const char *from = req->downwards && !req->from[0] ? HIGHEST : req->from;
        sqlite3_bind_text(stmt, 3, from, -1, SQLITE_STATIC);
    }
    return stmt;
}

static bool scan_is_full(const struct store_scan *req, size_t bytes)
{
    return req->limit &&
           (req->count == req->limit || (req->byte_limit && bytes > req->byte_limit));
}

static enum store_status scan_work(struct sqlite_db *db, struct store_read *read)
{
    struct store_scan *req = container_of(read, struct store_scan, read);
    size_t capacity = 0, bytes = 0;
    int code = SQLITE_ROW;
    req->documents = NULL;
    req->count = 0;
    req->more = false;
    sqlite3_stmt *stmt = bind_scan(db, req);
    if (!stmt)
        code = sqlite3_extended_errcode(db->handle);
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        if ((req->more = scan_is_full(req, bytes))) {
            code = SQLITE_DONE;
            break;
        }
        if (req->count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            req->documents = mem_resize(req->documents, capacity * sizeof(*req->documents));
        }
        struct document *document = &req->documents[req->count++];
        *document = read_document(stmt, req->kind);
        if (req->of_claims)
            document->stale_at = sqlite3_column_int64(stmt, 4);
        bytes += document->body ? document->body->len : 0;
    }
    sqlite3_reset(stmt);
    return sqlite_status(code);
}

static void read_work(struct work *work)
{
    static enum store_status (*const works[])(struct sqlite_db *, struct store_read *) = {
        [READ_LOAD] = load_work,   [READ_PIECE] = piece_work, [READ_LIST] = list_work,
        [READ_COUNT] = count_work, [READ_WALK] = walk_work,   [READ_SCAN] = scan_work,
    };
    struct read *read = container_of(work, struct read, work);
    struct sqlite_db *db = &read->reader->db;
    if (store_read_is_abandoned(read->req)) {
        read->status = STORE_FAILED;
        return;
    }
    db->read = read->req;
    db->deadline_ns = read->waiter.bounded ? uv_hrtime() + read_limit_ns : 0;
    sqlite_db_run(db, SQL_BEGIN_READ); /* one snapshot of the database for the whole read */
    read->status = works[read->req->kind](db, read->req);
    if (store_read_is_abandoned(read->req))
        read->status = STORE_FAILED;
    if (read->status)
        store_read_finish(read->req);
    db->deadline_ns = 0;
    db->read = NULL;
    sqlite_db_run(db, SQL_ROLLBACK);
}

/* ---- loop thread ---- */

static void maybe_stopped(struct sqlite_readers *readers)
{
    if (!readers->stopped_fn || readers->begun > 0)
        return;
    sqlite_readers_finish(readers);
    readers->stopped_fn(readers);
}

static void after_read(struct work *work);

static void start(struct sqlite_readers *readers, struct read *read)
{
    read->reader = container_of(list_take(&readers->idle), struct sqlite_reader, link);
    readers->slow += read->waiter.slow;
    read->work.run = read_work;
    read->work.done = after_read;
    work_begin(readers->loop, &read->work, WORK_READ);
}

static void start_waiting(struct sqlite_readers *readers)
{
    struct read_waiter *next;
    while (!list_empty(&readers->idle) &&
           (next = read_line_take(&readers->waiting,
                                  read_line_slow_may(readers->slow, readers->count))))
        start(readers, container_of(next, struct read, waiter));
}

static void after_read(struct work *work)
{
    struct read *read = container_of(work, struct read, work);
    struct sqlite_readers *readers = read->readers;
    readers->slow -= read->waiter.slow;
    /* first, because its cache is warm */
    list_append(readers->idle.next, &read->reader->link);
    start_waiting(readers);
    metric_add(M_STORE_READS, 1);
    read->req->done(read->req, read->status);
    free(read);
    readers->begun--;
    maybe_stopped(readers);
}

void sqlite_readers_begin(struct sqlite_readers *readers, struct store_read *req)
{
    assert(!readers->stopped_fn);
    struct read *read = mem_new(struct read);
    read->readers = readers;
    read->req = req;
    read_waiter_init(&read->waiter, readers->store, req);
    readers->begun++;
    read_line_add(&readers->waiting, &read->waiter);
    start_waiting(readers);
}

enum err sqlite_readers_open(struct sqlite_readers *readers, const struct store *store,
                             uv_loop_t *loop, const struct sqlite_options *options,
                             struct failure *why)
{
    int count = options->readers > 0 ? options->readers : 2;
    *readers = (struct sqlite_readers){ .loop = loop, .store = store };
    list_init(&readers->idle);
    read_line_init(&readers->waiting);
    for (int i = 0; i < count && i < SQLITE_READERS_MAX; i++) {
        struct sqlite_reader *reader = &readers->readers[i];
        if (sqlite_db_open(&reader->db, options, SQLITE_READER, why)) {
            sqlite_readers_finish(readers);
            return ERR_STORE;
        }
        list_append(&readers->idle, &reader->link);
        readers->count++;
    }
    return OK;
}

void sqlite_readers_finish(struct sqlite_readers *readers)
{
    for (int i = 0; i < SQLITE_READERS_MAX; i++)
        sqlite_db_close(&readers->readers[i].db);
    read_line_finish(&readers->waiting);
}

void sqlite_readers_stop(struct sqlite_readers *readers,
                         void (*stopped)(struct sqlite_readers *readers))
{
    readers->stopped_fn = stopped;
    maybe_stopped(readers);
}
