/* sqlite_apply.c - applies requests to the tables: a commit's claims, then its changes.
 *
 *   claims    all are tried, so that each taken one is reported with its owner
 *   changes   stop at the first one that fails; STORE_LOST: the row has another version
 *
 * There are two kinds of errors. An error that only this request can have caused (a value
 * too large for the database) fails only this request. Any other error (no space, I/O,
 * damage) is stored in trouble and ends the transaction, which SQLite may already have
 * rolled back. */
#include "store/sqlite/sqlite_apply.h"

#include "base/mem.h"
#include "store/sqlite/sqlite_rows.h"
#include "store/sqlite/sqlite_sizes.h"

enum { COUNTERS_KEPT = 20000 };

/* A counter of an environment (no task) or of the runs of a task in it. */
struct counter {
    uint64_t last;
    struct list link; // sqlite_apply::changed
    uint32_t env;
    bool of_task;
    size_t key_len;
    char key[]; /* env; for a task then ':' and the task */
};

static struct slice counter_key(const void *value)
{
    const struct counter *counter = value;
    return (struct slice){ counter->key, counter->key_len };
}

static struct slice counter_task(const struct counter *counter)
{
    return slice_from(counter_key(counter), sizeof(counter->env) + 1);
}

void sqlite_apply_init(struct sqlite_apply *apply, struct sqlite_db *db)
{
    *apply = (struct sqlite_apply){ .db = db };
    table_init(&apply->counters, counter_key);
    list_init(&apply->changed);
}

static void forget_counters(struct sqlite_apply *apply)
{
    size_t at = 0;
    for (struct counter *c; (c = table_next(&apply->counters, &at));)
        free(c);
    table_finish(&apply->counters);
    table_init(&apply->counters, counter_key);
    list_init(&apply->changed);
}

void sqlite_apply_keep(struct sqlite_apply *apply)
{
    claim_index_keep(&apply->brief);
}

void sqlite_apply_forget(struct sqlite_apply *apply)
{
    forget_counters(apply);
    apply->growths.count = 0;
    claim_index_undo(&apply->brief, 0);
}

void sqlite_apply_finish(struct sqlite_apply *apply)
{
    sqlite_apply_forget(apply);
    table_finish(&apply->counters);
    sqlite_growths_finish(&apply->growths);
    claim_index_finish(&apply->brief);
    buf_finish(&apply->text);
}

/* ---- results ---- */

static enum store_status outcome(struct sqlite_apply *apply, int code)
{
    return sqlite_apply_outcome(apply, code);
}

static enum store_status sqlite_apply_finish_statement(struct sqlite_apply *apply,
                                                       sqlite3_stmt *stmt)
{
    return outcome(apply, sqlite_db_finish(apply->db, stmt));
}

static void grow(struct sqlite_apply *apply, uint32_t env, int64_t bytes)
{
    sqlite_growths_add(&apply->growths, env, bytes);
}

static enum store_status run_sql(struct sqlite_apply *apply, enum sqlite_statement which)
{
    return outcome(apply, sqlite_db_run(apply->db, which));
}

static sqlite3_stmt *statement(struct sqlite_apply *apply, enum sqlite_statement which)
{
    return sqlite_db_stmt(apply->db, which);
}

static bool nothing_changed(struct sqlite_apply *apply)
{
    return sqlite3_changes(apply->db->handle) == 0;
}

/* ---- counters ---- */

static void read_counter(struct sqlite_apply *apply, struct counter *counter)
{
    sqlite3_stmt *stmt = statement(apply, counter->of_task ? SQL_GET_NUMBER : SQL_GET_SEQ);
    sqlite3_bind_int64(stmt, 1, counter->env);
    if (counter->of_task)
        sqlite_bind_text(stmt, 2, counter_task(counter));
    int code = stmt ? sqlite3_step(stmt) : sqlite3_extended_errcode(apply->db->handle);
    if (code == SQLITE_ROW)
        counter->last = (uint64_t)sqlite3_column_int64(stmt, 0);
    else if (code != SQLITE_DONE)
        outcome(apply, code);
    sqlite3_reset(stmt);
}

static struct counter *find_counter(struct sqlite_apply *apply, uint32_t env,
                                    const struct bytes *task)
{
    buf_clear(&apply->text);
    buf_add(&apply->text, (struct slice){ (const char *)&env, sizeof(env) });
    if (task) {
        buf_add_char(&apply->text, ':');
        buf_add(&apply->text, bytes_slice(task));
    }
    struct slice key = buf_slice(&apply->text);
    struct counter *counter = table_find(&apply->counters, key);
    if (counter)
        return counter;
    counter = mem_new_flex(struct counter, key.len);
    counter->env = env;
    counter->of_task = task != NULL;
    counter->key_len = key.len;
    memcpy(counter->key, key.ptr, key.len);
    list_init(&counter->link);
    table_insert(&apply->counters, counter);
    read_counter(apply, counter);
    return counter;
}

static uint64_t count_up(struct sqlite_apply *apply, struct counter *counter)
{
    list_remove(&counter->link);
    list_append(&apply->changed, &counter->link);
    return ++counter->last;
}

/* Returns the next run number of the task. The first one adds a row. */
static uint32_t next_number(struct sqlite_apply *apply, const struct change *change)
{
    const struct bytes *task = change->run.task;
    uint64_t number = count_up(apply, find_counter(apply, change->env, task));
    if (number == 1)
        grow(apply, change->env, stored_task_bytes(bytes_slice(task).len));
    return (uint32_t)number;
}

static bool is_numbered(const struct change *change)
{
    return change->kind == CHANGE_RUN && change->expected == 0 && change->run.task;
}

/* Gives the change its place in the environment's order, and a new run its number. */
static void count_change(struct sqlite_apply *apply, struct change *change)
{
    change_number(change, count_up(apply, find_counter(apply, change->env, NULL)));
    if (is_numbered(change))
        change->run.number = next_number(apply, change);
}

static void uncount_change(struct sqlite_apply *apply, struct change *change)
{
    find_counter(apply, change->env, NULL)->last--;
    if (is_numbered(change))
        find_counter(apply, change->env, change->run.task)->last--;
}

static void put_stored(struct sqlite_apply *apply)
{
    sqlite_growths_merge(&apply->growths);
    for (size_t i = 0; i < apply->growths.count; i++) {
        sqlite3_stmt *stmt = statement(apply, SQL_PUT_STORED);
        sqlite3_bind_int64(stmt, 1, apply->growths.entries[i].env);
        sqlite3_bind_int64(stmt, 2, apply->growths.entries[i].bytes);
        sqlite_apply_finish_statement(apply, stmt);
    }
}

void sqlite_apply_counters(struct sqlite_apply *apply)
{
    put_stored(apply);
    list_each (link, &apply->changed) {
        struct counter *counter = container_of(link, struct counter, link);
        sqlite3_stmt *stmt =
            statement(apply, counter->of_task ? SQL_PUT_NUMBER : SQL_PUT_SEQ);
        sqlite3_bind_int64(stmt, 1, counter->env);
        if (counter->of_task)
            sqlite_bind_text(stmt, 2, counter_task(counter));
        sqlite3_bind_int64(stmt, 3, (int64_t)counter->last);
        if (!counter->of_task || counter->last)
            sqlite_apply_finish_statement(apply, stmt);
        list_remove(link);
    }
    if (apply->counters.count > COUNTERS_KEPT)
        forget_counters(apply);
}

/* ---- changes ---- */

static sqlite3_stmt *run_statement(struct sqlite_apply *apply, enum sqlite_statement which,
                                   const struct change *change)
{
    sqlite3_stmt *stmt = statement(apply, which);
    sqlite3_bind_int64(stmt, 1, change->env);
    sqlite_bind_text(stmt, 2, slice_of(change->run.id));
    return stmt;
}

enum store_status sqlite_apply_tags(struct sqlite_apply *apply, const struct change *change,
                                    struct slice tags, enum sqlite_statement which)
{
    enum store_status status = STORE_OK;
    struct slice tag;
    while (!status && run_tags_next(&tags, &tag)) {
        sqlite3_stmt *stmt = run_statement(apply, which, change);
        sqlite_bind_text(stmt, 3, tag);
        status = sqlite_apply_finish_statement(apply, stmt);
    }
    return status;
}

/* Returns the text of the tags column; absent without tags. */
static struct slice tags_text(struct sqlite_apply *apply, const struct run *run)
{
    buf_clear(&apply->text);
    run_tags_add(&apply->text, run->tags);
    return run->tags ? buf_slice(&apply->text) : (struct slice){ 0 };
}

static enum store_status rewrite_tags(struct sqlite_apply *apply,
                                      const struct change *change)
{
    sqlite3_stmt *stmt = run_statement(apply, SQL_GET_TAGS, change);
    int code = stmt ? sqlite3_step(stmt) : sqlite3_extended_errcode(apply->db->handle);
    struct bytes *old = code == SQLITE_ROW ? sqlite_column_copy(stmt, 0) : NULL;
    sqlite3_reset(stmt);

    struct slice tags = tags_text(apply, &change->run);
    enum store_status status = outcome(apply, code == SQLITE_ROW ? SQLITE_OK : code);
    if (!status && !slice_equal(bytes_slice(old), tags)) {
        status = sqlite_apply_tags(apply, change, bytes_slice(old), SQL_DELETE_TAG);
        if (!status)
            status = sqlite_apply_tags(apply, change, tags, SQL_INSERT_TAG);
        stmt = run_statement(apply, SQL_PUT_TAGS, change);
        sqlite_bind_text(stmt, 3, tags);
        if (!status)
            status = sqlite_apply_finish_statement(apply, stmt);
        grow(apply, change->env, 2 * ((int64_t)tags.len - (int64_t)bytes_slice(old).len));
    }
    bytes_unref(old);
    return status;
}

static enum store_status put_packet(struct sqlite_apply *apply, const struct change *change,
                                    enum sqlite_statement which)
{
    const struct run *run = &change->run;
    int64_t more = 0;
    enum store_status status =
        outcome(apply, sqlite_grow_packet(apply->db, change, which, &more));
    if (status)
        return status;
    grow(apply, change->env, more);
    sqlite3_stmt *stmt = run_statement(apply, which, change);
    if (which == SQL_PUT_PAYLOAD) {
        sqlite_bind_blob(stmt, 3, run->payload);
        sqlite_bind_text(stmt, 4, bytes_slice(run_rare(run)->payload_type));
    } else if (which == SQL_PUT_METADATA) {
        sqlite_bind_blob(stmt, 3, run->metadata);
        sqlite_bind_blob(stmt, 4, run->metadata_seed);
    } else {
        sqlite_bind_blob(stmt, 3, run->output);
        sqlite_bind_text(stmt, 4, bytes_slice(run_rare(run)->output_type));
        sqlite_bind_blob(stmt, 5, run->error);
    }
    return sqlite_apply_finish_statement(apply, stmt);
}

/* A new run needs no rows for absent packets. */
static enum store_status put_packets(struct sqlite_apply *apply,
                                     const struct change *change)
{
    const struct run *run = &change->run;
    bool is_old = change->expected > 0;
    enum store_status status = STORE_OK;

    if (change->marks & MARK_PAYLOAD &&
        (is_old || run->payload || run_rare(run)->payload_type))
        status = put_packet(apply, change, SQL_PUT_PAYLOAD);
    if (!status && change->marks & MARK_METADATA &&
        (is_old || run->metadata || run->metadata_seed))
        status = put_packet(apply, change, SQL_PUT_METADATA);
    if (!status && change->marks & MARK_OUTPUT)
        status = put_packet(apply, change, SQL_PUT_OUTPUT);
    return status;
}

/* Checks that the packet document exists.
 *
 * Readers fetch it, so a run without it would break them. */
static enum store_status find_packet(struct sqlite_apply *apply,
                                     const struct change *change)
{
    sqlite3_stmt *stmt = statement(apply, SQL_HAS_DOCUMENT);
    sqlite3_bind_int(stmt, 1, DOC_PACKET);
    sqlite3_bind_int64(stmt, 2, change->env);
    sqlite_bind_text(stmt, 3, bytes_slice(change->run.payload));
    int code = stmt ? sqlite3_step(stmt) : sqlite3_extended_errcode(apply->db->handle);
    sqlite3_reset(stmt);
    if (code == SQLITE_DONE)
        return STORE_MISSING;
    return outcome(apply, code == SQLITE_ROW ? SQLITE_OK : code);
}

/* Adds how much the row of the run and its tags grow. */
static enum store_status grow_run(struct sqlite_apply *apply, const struct change *change,
                                  struct slice tags)
{
    int64_t more = STORED_RUN + 2 * (int64_t)tags.len +
                   run_columns_size(&change->run, COLUMN_TEXTS_ALL);
    enum store_status status = STORE_OK;
    if (change->expected)
        status = outcome(apply, sqlite_grow_run(apply->db, change, &more));
    grow(apply, change->env, more);
    return status;
}

static enum store_status write_run(struct sqlite_apply *apply, const struct change *change)
{
    bool is_new = change->expected == 0;
    bool names_packet = change->marks & MARK_PACKET;
    enum store_status status = names_packet ? find_packet(apply, change) : STORE_OK;
    struct slice tags = tags_text(apply, &change->run);
    if (!status)
        status = grow_run(apply, change, tags);
    if (status)
        return status;
    sqlite3_stmt *stmt = statement(apply, is_new ? SQL_INSERT_RUN : SQL_UPDATE_RUN);
    if (stmt && is_new)
        sqlite_rows_bind_insert(stmt, change, tags);
    else if (stmt)
        sqlite_rows_bind_update(stmt, change);

    status = sqlite_apply_finish_statement(apply, stmt);
    if (!status && nothing_changed(apply))
        return STORE_LOST;
    if (!status && is_new)
        status = sqlite_apply_tags(apply, change, tags, SQL_INSERT_TAG);
    else if (!status && change->marks & MARK_WHOLE)
        status = rewrite_tags(apply, change);
    return status ? status : put_packets(apply, change);
}

static enum store_status write_document(struct sqlite_apply *apply,
                                        const struct change *change, int64_t now_ms)
{
    const struct document *document = &change->document;
    int64_t more = 0;
    enum store_status status =
        outcome(apply, sqlite_grow_document(apply->db, change, &more));
    if (status)
        return status;
    grow(apply, change->env, more);
    sqlite3_stmt *stmt = statement(apply, !document->body         ? SQL_DELETE_DOCUMENT
                                          : change->expected == 0 ? SQL_INSERT_DOCUMENT
                                                                  : SQL_UPDATE_DOCUMENT);
    sqlite3_bind_int(stmt, 1, (int)document->kind);
    sqlite3_bind_int64(stmt, 2, change->env);
    sqlite_bind_text(stmt, 3, bytes_slice(document->name));
    sqlite3_bind_int64(stmt, 7, change->expected);
    if (document->body) {
        sqlite3_bind_int64(stmt, 4, document->version);
        sqlite3_bind_int64(stmt, 5, (int64_t)change->seq);
        sqlite_bind_blob(stmt, 6, document->body);
        sqlite3_bind_int64(stmt, 8, now_ms);
        sqlite3_bind_int64(stmt, 9, document->stale_at);
    }
    status = sqlite_apply_finish_statement(apply, stmt);
    return !status && nothing_changed(apply) ? STORE_LOST : status;
}

static enum store_status write_changes(struct sqlite_apply *apply, struct store_commit *req)
{
    enum store_status status = STORE_OK;
    size_t i = 0;
    for (; i < req->change_count && !status; i++) {
        struct change *change = &req->changes[i];
        count_change(apply, change);
        status = change->kind == CHANGE_RUN ? write_run(apply, change)
                                            : write_document(apply, change, req->now_ms);
    }
    while (status && i-- > 0)
        uncount_change(apply, &req->changes[i]);
    return status;
}

static void apply_request(struct sqlite_apply *apply, struct store_commit *req)
{
    size_t grown = apply->growths.count, brief = apply->brief.added_count;
    req->status = sqlite_apply_claims(apply, req);
    if (!req->status)
        req->status = write_changes(apply, req);
    if (req->status) {
        apply->growths.count = grown;
        claim_index_undo(&apply->brief, brief);
    }
}

static void apply_in_savepoint(struct sqlite_apply *apply, struct store_commit *req)
{
    req->status = run_sql(apply, SQL_SAVEPOINT);
    if (!req->status)
        apply_request(apply, req);
    if (req->status && !apply->trouble)
        run_sql(apply, SQL_ROLLBACK_TO);
    if (!apply->trouble)
        run_sql(apply, SQL_RELEASE);
}

bool sqlite_apply_commit(struct sqlite_apply *apply, struct store_commit *req)
{
    if (apply->keeps_apart) {
        apply_in_savepoint(apply, req);
        return true;
    }
    int before = sqlite3_total_changes(apply->db->handle);
    apply_request(apply, req);
    return !req->status || apply->trouble ||
           sqlite3_total_changes(apply->db->handle) == before;
}
