/* sqlite_find.c - builds filters and walks as queries for run ids.
 *
 * Every query is driven by one index in the order of the result, so that the cost of a page
 * depends only on its size:
 *
 *   batch, parent,    their index
 *   bulk action
 *   packet            the few runs that refer to it, by the indexes of packets
 *   tags, tasks       a query per value, merged: each returns a page, the newest win
 *   unfinished only   the index of unfinished runs, if they are few
 *   otherwise         the runs themselves, newest first
 *
 * A count uses the same index, but reads all of its runs instead of a page.
 *
 * Conditions that this index does not cover are checked run by run. The time limit ends a
 * search with a filter that matches too few runs. */
#include "store/sqlite/sqlite_find.h"

#include "base/mem.h"

enum {
    FEW = 5000, /* up to here, sorting is cheaper than searching a longer order */
    FINAL_STATUSES = ~0u << RUN_CANCELED,
    ID_TIME_END = 4 + 9,            /* "run_" and the characters with the time */
    CREATED_SLACK_MS = 3600 * 1000, /* most that an id's time and created_at differ */
};

/* ---- lists ---- */

enum lead {
    LEAD_RUNS,
    LEAD_BATCH,
    LEAD_PARENT,
    LEAD_BULK,
    LEAD_TAG,
    LEAD_TASK,
    LEAD_UNFINISHED
};

static const struct {
    const char *from;
    const char *id;
} leads[] = {
    [LEAD_RUNS] = { "FROM run r NOT INDEXED WHERE r.env = ?", "r.id" },
    [LEAD_BATCH] = { "FROM run r INDEXED BY run_batch WHERE r.env = ?", "r.id" },
    [LEAD_PARENT] = { "FROM run r INDEXED BY run_parent WHERE r.env = ?", "r.id" },
    [LEAD_BULK] = { "FROM run r INDEXED BY run_bulk WHERE r.env = ?", "r.id" },
    [LEAD_TAG] = { "FROM run_tag d CROSS JOIN run r ON r.env = d.env AND r.id = d.id"
                   " WHERE d.env = ?",
                   "d.id" },
    [LEAD_TASK] = { "FROM run r INDEXED BY run_task WHERE r.env = ?", "r.id" },
    [LEAD_UNFINISHED] = { "FROM run r INDEXED BY run_unfinished WHERE r.env = ?"
                          " AND (r.status < 7 OR r.execution <> 7)",
                          "r.id" },
};

/* Makes an id of that time.
 *
 * fill makes it sort before or after all others of its millisecond. */
static void id_at(int64_t unix_ms, char fill, char id[ID_MAX])
{
    text_make_id("run", unix_ms > 0 ? unix_ms : 0, id);
    memset(id + ID_TIME_END, fill, strlen(id + ID_TIME_END));
}

/* Ids contain their time, so the bounds keep a search out of times that cannot match. */
static void add_id_bounds(struct sqlite_query *query, const struct run_filter *filter,
                          const char *column, char from[ID_MAX], char to[ID_MAX])
{
    if (filter->created_from > CREATED_SLACK_MS) {
        id_at(filter->created_from - CREATED_SLACK_MS, '1', from);
        sqlite_query_add(query, " AND ");
        sqlite_query_add(query, column);
        sqlite_query_text(query, " >= ?", slice_of(from));
    }
    if (filter->created_to && filter->created_to < INT64_C(1) << 44) {
        id_at(filter->created_to + CREATED_SLACK_MS, 'z', to);
        sqlite_query_add(query, " AND ");
        sqlite_query_add(query, column);
        sqlite_query_text(query, " <= ?", slice_of(to));
    }
}

static void add_bits(struct sqlite_query *query, const char *sql, unsigned bits)
{
    if (!bits)
        return;
    sqlite_query_add(query, sql);
    const char *before = " (?";
    for (int i = 0; i < 32; i++) {
        if (!(bits & 1u << i))
            continue;
        sqlite_query_number(query, before, i);
        before = ", ?";
    }
    sqlite_query_add(query, ")");
}

static void add_text(struct sqlite_query *query, const char *sql, struct slice text)
{
    if (text.ptr)
        sqlite_query_text(query, sql, text);
}

/* Adds the condition on tags: any of them, unless a tag is the lead; or each of them. */
static void add_tags(struct sqlite_query *query, const struct run_filter *f, enum lead lead)
{
    static const char exists[] = " AND EXISTS (SELECT 1 FROM run_tag t WHERE t.env = r.env"
                                 " AND t.id = r.id AND t.tag";
    for (size_t i = 0; f->every_tag && i < f->tag_count; i++) {
        sqlite_query_add(query, exists);
        sqlite_query_text(query, " = ?)", f->tags[i]);
    }
    if (f->every_tag || lead == LEAD_TAG || f->tag_count == 0)
        return;
    sqlite_query_add(query, exists);
    sqlite_query_any(query, " IN", f->tags, f->tag_count);
    sqlite_query_add(query, ")");
}

/* Finds ids by the indexes of packets, and looks up their runs. */
static void add_packet(struct sqlite_query *query, uint32_t env, struct slice name)
{
    if (!name.ptr)
        return;
    sqlite_query_number(query,
                        " AND r.id IN (SELECT id FROM run_payload INDEXED BY payload_packet"
                        " WHERE env = ?",
                        env);
    sqlite_query_text(query,
                      " AND body = CAST(? AS BLOB) AND type = 'application/store'"
                      " UNION ALL SELECT id FROM run_output INDEXED BY output_packet",
                      name);
    sqlite_query_number(query, " WHERE env = ?", env);
    sqlite_query_text(query, " AND body = CAST(? AS BLOB) AND type = 'application/store')",
                      name);
}

static void add_conditions(struct sqlite_query *query, const struct run_filter *f,
                           enum lead lead)
{
    add_text(query, " AND r.batch = ?", f->batch);
    if (f->parent.ptr && !f->parent.len)
        sqlite_query_add(query, " AND r.parent IS NULL");
    else
        add_text(query, " AND r.parent = ?", f->parent);
    add_text(query, " AND r.schedule = ?", f->schedule);
    add_text(query, " AND r.bulk = ?", f->bulk);
    add_bits(query, " AND r.status IN", f->statuses);
    add_bits(query, " AND r.machine IN", f->machines);
    if (f->is_test >= 0)
        sqlite_query_number(query, " AND (r.flags & 1) = ?", f->is_test != 0);
    if (f->created_from)
        sqlite_query_number(query, " AND r.created_at >= ?", f->created_from);
    if (f->created_to)
        sqlite_query_number(query, " AND r.created_at <= ?", f->created_to);
    if (lead != LEAD_TASK)
        sqlite_query_any(query, " AND r.task IN", f->tasks, f->task_count);
    sqlite_query_any(query, " AND r.worker_version IN", f->versions, f->version_count);
    sqlite_query_any(query, " AND r.queue IN", f->queues, f->queue_count);
    sqlite_query_any(query, " AND r.region IN", f->regions, f->region_count);
    add_tags(query, f, lead);
}

/* Finds the page of one value of the leading index. */
static enum store_status find_page(struct sqlite_db *db, const struct store_list *req,
                                   enum lead lead, struct slice value,
                                   struct sqlite_ids *ids)
{
    struct sqlite_query query = { 0 };
    const char *id = leads[lead].id;
    char from[ID_MAX], to[ID_MAX];
    bool upwards = *req->before;

    sqlite_query_add(&query, "SELECT ");
    sqlite_query_add(&query, id);
    sqlite_query_add(&query, " ");
    sqlite_query_number(&query, leads[lead].from, req->read.env);
    if (lead == LEAD_TAG)
        sqlite_query_text(&query, " AND d.tag = ?", value);
    if (lead == LEAD_TASK)
        sqlite_query_text(&query, " AND r.task = ?", value);
    if (upwards || *req->after) {
        sqlite_query_add(&query, " AND ");
        sqlite_query_add(&query, id);
        sqlite_query_text(&query, upwards ? " > ?" : " < ?",
                          slice_of(upwards ? req->before : req->after));
    }
    add_id_bounds(&query, &req->filter, id, from, to);
    add_packet(&query, req->read.env, req->filter.packet);
    add_conditions(&query, &req->filter, lead);
    sqlite_query_add(&query, " ORDER BY ");
    sqlite_query_add(&query, id);
    sqlite_query_number(&query, upwards ? " LIMIT ?" : " DESC LIMIT ?",
                        (int64_t)req->limit + 1);
    enum store_status status = sqlite_query_collect(&query, db, ids);
    sqlite_query_finish(&query);
    return status;
}

static enum store_status few_unfinished(struct sqlite_db *db, uint32_t env, bool *few)
{
    struct sqlite_query query = { 0 };
    int64_t count = 0;
    sqlite_query_number(&query,
                        "SELECT count(*) FROM (SELECT 1 FROM run INDEXED BY run_unfinished"
                        " WHERE env = ? AND (status < 7 OR execution <> 7)",
                        env);
    sqlite_query_number(&query, " LIMIT ?)", FEW);
    enum store_status status = sqlite_query_ask(&query, db, &count);
    sqlite_query_finish(&query);
    *few = count < FEW;
    return status;
}

static enum store_status choose_lead(struct sqlite_db *db, uint32_t env,
                                     const struct run_filter *f, enum lead *lead)
{
    bool few = false;
    enum store_status status = STORE_OK;
    if (f->statuses && !(f->statuses & FINAL_STATUSES))
        status = few_unfinished(db, env, &few);
    *lead = f->batch.ptr    ? LEAD_BATCH
            : f->parent.len ? LEAD_PARENT
            : f->bulk.ptr   ? LEAD_BULK
            : f->tag_count  ? LEAD_TAG
            : few           ? LEAD_UNFINISHED
            : f->task_count ? LEAD_TASK
                            : LEAD_RUNS;
    return status;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Cuts the merged pages to one page, without duplicates, nearest to the cursor. */
static void cut_page(struct store_list *req, struct sqlite_ids *ids)
{
    bool upwards = *req->before;
    qsort(ids->ids, ids->count, sizeof(ids->ids[0]), by_id);
    size_t kept = 0;
    for (size_t i = 0; i < ids->count; i++) {
        if (kept == 0 || strcmp(ids->ids[kept - 1], ids->ids[i]))
            memmove(ids->ids[kept++], ids->ids[i], sizeof(ids->ids[0]));
    }
    size_t count = kept < req->limit ? kept : req->limit;
    size_t first = upwards ? 0 : kept - count;
    req->more = kept > count;
    for (size_t i = 0; i < count / 2; i++) {
        char swap[ID_MAX];
        memcpy(swap, ids->ids[first + i], ID_MAX);
        memcpy(ids->ids[first + i], ids->ids[first + count - 1 - i], ID_MAX);
        memcpy(ids->ids[first + count - 1 - i], swap, ID_MAX);
    }
    if (count > 0)
        memmove(ids->ids[0], ids->ids[first], count * sizeof(ids->ids[0]));
    ids->count = count;
}

enum store_status sqlite_find_listed(struct sqlite_db *db, struct store_list *req,
                                     struct sqlite_ids *ids)
{
    const struct run_filter *f = &req->filter;
    req->more = false;
    if (f->nothing)
        return STORE_OK;
    enum lead lead;
    enum store_status status = choose_lead(db, req->read.env, f, &lead);
    const struct slice *values = lead == LEAD_TAG    ? f->tags
                                 : lead == LEAD_TASK ? f->tasks
                                                     : NULL;
    size_t count = lead == LEAD_TAG    ? (f->every_tag ? 1 : f->tag_count)
                   : lead == LEAD_TASK ? f->task_count
                                       : 1;
    for (size_t i = 0; i < count && !status; i++)
        status = find_page(db, req, lead, values ? values[i] : (struct slice){ 0 }, ids);
    if (!status && ids->count > 0)
        cut_page(req, ids);
    return status;
}

/* ---- counts ---- */

/* Counts each run once.
 *
 * One query finds the runs of all tags or tasks; a list merges a page of each. */
static void add_count_source(struct sqlite_query *query, const struct store_count *req,
                             enum lead lead)
{
    const struct run_filter *f = &req->filter;
    bool any_tag = lead == LEAD_TAG && !f->every_tag && f->tag_count > 1;
    sqlite_query_add(query, "SELECT r.status, count(*) ");
    sqlite_query_number(query, leads[any_tag ? LEAD_RUNS : lead].from, req->read.env);
    if (any_tag) {
        sqlite_query_number(query, " AND r.id IN (SELECT id FROM run_tag WHERE env = ?",
                            req->read.env);
        sqlite_query_any(query, " AND tag IN", f->tags, f->tag_count);
        sqlite_query_add(query, ")");
    } else if (lead == LEAD_TAG) {
        sqlite_query_text(query, " AND d.tag = ?", f->tags[0]);
    } else if (lead == LEAD_TASK) {
        sqlite_query_any(query, " AND r.task IN", f->tasks, f->task_count);
    }
}

enum store_status sqlite_find_counts(struct sqlite_db *db, struct store_count *req)
{
    struct sqlite_query query = { 0 };
    char from[ID_MAX], to[ID_MAX];
    enum lead lead;
    if (req->filter.nothing)
        return STORE_OK;
    enum store_status status = choose_lead(db, req->read.env, &req->filter, &lead);
    if (status)
        return status;
    add_count_source(&query, req, lead);
    add_id_bounds(&query, &req->filter, "r.id", from, to);
    add_packet(&query, req->read.env, req->filter.packet);
    add_conditions(&query, &req->filter, lead);
    sqlite_query_add(&query, " GROUP BY r.status");
    status = sqlite_query_tally(&query, db, req->counts, RUN_STATUS_COUNT);
    sqlite_query_finish(&query);
    return status;
}

/* ---- walks ---- */

/* Sets *large if the tag has many runs. Many are found in the order of changes; a few are
 * sorted. */
static enum store_status is_large_tag(struct sqlite_db *db, const struct store_walk *req,
                                      bool *large)
{
    struct sqlite_query query = { 0 };
    int64_t count = 0;
    sqlite_query_number(&query, "SELECT count(*) FROM (SELECT 1 FROM run_tag WHERE env = ?",
                        req->read.env);
    sqlite_query_text(&query, " AND tag = ?", bytes_slice(req->name));
    sqlite_query_number(&query, " LIMIT ?)", FEW);
    enum store_status status = sqlite_query_ask(&query, db, &count);
    sqlite_query_finish(&query);
    *large = count == FEW;
    return status;
}

static void add_walk_source(struct sqlite_query *query, const struct store_walk *req,
                            bool large_tag)
{
    struct slice name = bytes_slice(req->name);
    sqlite_query_add(query, "SELECT r.id ");
    if (req->kind == WALK_ALL || req->kind == WALK_SETTLED) {
        sqlite_query_number(query, "FROM run r INDEXED BY run_rev WHERE r.env = ?",
                            req->read.env);
        if (req->kind == WALK_SETTLED)
            sqlite_query_add(query, " AND r.status >= 7 AND r.execution = 7");
    } else if (req->kind == WALK_UNFINISHED) {
        sqlite_query_number(query, leads[LEAD_UNFINISHED].from, req->read.env);
    } else if (req->kind == WALK_BATCH) {
        sqlite_query_number(query, leads[LEAD_BATCH].from, req->read.env);
        sqlite_query_text(query, " AND r.batch = ?", name);
    } else if (large_tag) {
        sqlite_query_number(query, "FROM run r INDEXED BY run_rev WHERE r.env = ?",
                            req->read.env);
        sqlite_query_text(query,
                          " AND EXISTS (SELECT 1 FROM run_tag t WHERE t.env = r.env"
                          " AND t.id = r.id AND t.tag = ?)",
                          name);
    } else {
        sqlite_query_number(query, leads[LEAD_TAG].from, req->read.env);
        sqlite_query_text(query, " AND d.tag = ?", name);
    }
}

static int64_t as_signed(uint64_t rev)
{
    return rev > INT64_MAX ? INT64_MAX : (int64_t)rev;
}

enum store_status sqlite_find_walked(struct sqlite_db *db, const struct store_walk *req,
                                     struct sqlite_ids *ids)
{
    struct sqlite_query query = { 0 };
    bool large_tag = false;
    enum store_status status = STORE_OK;
    if (req->kind == WALK_TAG)
        status = is_large_tag(db, req, &large_tag);
    if (status)
        return status;
    add_walk_source(&query, req, large_tag);
    sqlite_query_number(&query, " AND r.rev > ?", as_signed(req->after));
    sqlite_query_number(&query, " AND r.rev <= ?", as_signed(req->up_to));
    if (req->created_from)
        sqlite_query_number(&query, " AND r.created_at >= ?", req->created_from);
    sqlite_query_add(&query,
                     req->newest_first ? " ORDER BY r.rev DESC" : " ORDER BY r.rev");
    sqlite_query_number(&query, " LIMIT ?", (int64_t)req->limit + 1);
    status = sqlite_query_collect(&query, db, ids);
    sqlite_query_finish(&query);
    return status;
}
