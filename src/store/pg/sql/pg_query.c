/* pg_query.c - builds reads as SQL; filters and walks are one statement each.
 *
 *   WITH page AS (ids, one more than requested, in the order of the result)
 *   sized: with the bytes of their packets
 *   kept: their position in the page, their total, and the bytes before each
 *   SELECT seq, total, run and packets … of those that fit, in any order
 *
 * If several tags or tasks are given, each has its own page, and the page is made from
 * these. Conditions that no index covers are checked run by run. The server's time limit
 * ends a search with a filter that matches too few runs. */
#include "store/pg/sql/pg_query.h"

#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "store/pg/sql/pg_rows.h"
#include "store/run_sql.h"

enum {
    FINAL_STATUSES = ~0u << RUN_CANCELED,
    ID_TIME_END = 4 + 9,            /* "run_" and the characters with the time */
    CREATED_SLACK_MS = 3600 * 1000, /* most that an id's time and created_at differ */
};

#define SEQ_OF_ENV                                                                         \
    "(SELECT coalesce((SELECT e.seq FROM environment e WHERE e.env = $1), 0) AS seq) s"

void pg_query_finish(struct pg_query *query)
{
    buf_finish(&query->sql);
    pg_params_finish(&query->params);
    pg_array_finish(&query->envs);
}

/* ---- parts ---- */

static void add(struct pg_query *query, const char *sql)
{
    buf_add_text(&query->sql, sql);
}

/* Adds "$3", the number of the parameter added last. */
static void add_last(struct pg_query *query)
{
    buf_print(&query->sql, "$%zu", query->params.count);
}

static void add_number(struct pg_query *query, const char *sql, int64_t number)
{
    add(query, sql);
    pg_param_int8(&query->params, number);
    add_last(query);
}

static void add_small(struct pg_query *query, const char *sql, int32_t number)
{
    add(query, sql);
    pg_param_int4(&query->params, number);
    add_last(query);
}

static void add_bytes(struct pg_query *query, const char *sql, struct slice bytes)
{
    add(query, sql);
    pg_param_bytes(&query->params, bytes);
    add_last(query);
}

static void add_given(struct pg_query *query, const char *sql, struct slice bytes)
{
    if (bytes.ptr)
        add_bytes(query, sql, bytes);
}

/* Adds sql "… IN" and the list; nothing if it is empty. */
static void add_any(struct pg_query *query, const char *sql, const struct slice *texts,
                    size_t count)
{
    if (!count)
        return;
    add(query, sql);
    for (size_t i = 0; i < count; i++)
        add_bytes(query, i ? ", " : " (", texts[i]);
    add(query, ")");
}

static void add_bits(struct pg_query *query, const char *sql, unsigned bits)
{
    const char *before = " (";
    if (!bits)
        return;
    add(query, sql);
    for (int i = 0; i < 32; i++) {
        if (!(bits & 1u << i))
            continue;
        add_small(query, before, i);
        before = ", ";
    }
    add(query, ")");
}

/* ---- filters ---- */

/* Makes an id of that time.
 *
 * fill makes it sort before or after all others of its millisecond. */
static void id_at(int64_t unix_ms, char fill, char id[ID_MAX])
{
    text_make_id("run", unix_ms > 0 ? unix_ms : 0, id);
    memset(id + ID_TIME_END, fill, strlen(id + ID_TIME_END));
}

/* by_tag: bounds the index of tags alone. With a bound of the runs, a planner without
 * statistics, as in the first minutes of a database, may search all runs within it for each
 * tag, instead of one by its id. */
static void add_id_bound(struct pg_query *query, bool by_tag, const char *relation,
                         const char *id)
{
    buf_print(&query->sql, " AND %s.id %s ", by_tag ? "d" : "r", relation);
    add_bytes(query, "", slice_of(id));
}

/* Ids contain their time, so the bounds keep a search out of times that cannot match. */
static void add_id_bounds(struct pg_query *query, const struct run_filter *filter,
                          bool by_tag)
{
    if (filter->created_from > CREATED_SLACK_MS) {
        id_at(filter->created_from - CREATED_SLACK_MS, '1', query->from);
        add_id_bound(query, by_tag, ">=", query->from);
    }
    if (filter->created_to && filter->created_to < INT64_C(1) << 44) {
        id_at(filter->created_to + CREATED_SLACK_MS, 'z', query->to);
        add_id_bound(query, by_tag, "<=", query->to);
    }
}

static void add_packet(struct pg_query *query, struct slice name)
{
    if (!name.ptr)
        return;
    add_bytes(query,
              " AND r.id IN (SELECT id FROM run_payload WHERE env = $1"
              " AND type = 'application/store' AND sha256(body) = sha256(",
              name);
    add_bytes(query,
              ") UNION ALL SELECT id FROM run_output WHERE env = $1"
              " AND type = 'application/store' AND sha256(body) = sha256(",
              name);
    add(query, "))");
}

static const char has_tag[] = " AND EXISTS (SELECT 1 FROM run_tag t WHERE t.env = r.env"
                              " AND t.id = r.id AND t.tag = ";

static void add_every_tag(struct pg_query *query, const struct run_filter *f)
{
    for (size_t i = 0; f->every_tag && i < f->tag_count; i++) {
        add_bytes(query, has_tag, f->tags[i]);
        add(query, ")");
    }
}

/* Adds all conditions except any-of tags and tasks. by_tag: the tag is joined as d. */
static void add_conditions(struct pg_query *query, const struct run_filter *f, bool by_tag)
{
    if (f->nothing)
        add(query, " AND false");
    add_id_bounds(query, f, by_tag);
    add_packet(query, f->packet);
    add_given(query, " AND r.batch = ", f->batch);
    if (f->parent.ptr && !f->parent.len)
        add(query, " AND r.parent IS NULL");
    else
        add_given(query, " AND r.parent = ", f->parent);
    add_given(query, " AND r.schedule = ", f->schedule);
    add_given(query, " AND r.bulk = ", f->bulk);
    add_bits(query, " AND r.status IN", f->statuses);
    if (f->statuses && !(f->statuses & FINAL_STATUSES))
        add(query, " AND (r.status < 7 OR r.execution <> 7)"); /* there is an index */
    add_bits(query, " AND r.machine IN", f->machines);
    if (f->is_test >= 0)
        add_small(query, " AND (r.flags & 1) = ", f->is_test != 0);
    if (f->created_from)
        add_number(query, " AND r.created_at >= ", f->created_from);
    if (f->created_to)
        add_number(query, " AND r.created_at <= ", f->created_to);
    add_any(query, " AND r.worker_version IN", f->versions, f->version_count);
    add_any(query, " AND r.queue IN", f->queues, f->queue_count);
    add_any(query, " AND r.region IN", f->regions, f->region_count);
    add_every_tag(query, f);
}

/* ---- pages ---- */

/* The order of a page: its column, and the directions of taking and returning runs. */
struct pg_page {
    const char *key;   /* id or rev */
    const char *taken; /* ASC or DESC */
    const char *answered;
    enum store_parts parts;
    unsigned limit;
    size_t byte_limit;
};

static void add_page_end(struct pg_query *query, const struct pg_page *page,
                         const char *key)
{
    buf_print(&query->sql, " ORDER BY %s %s", key, page->taken);
    add_number(query, " LIMIT ", (int64_t)page->limit + 1);
}

/* Adds the size of each run's packets without the packets: windows copy their input. */
static void add_sizes(struct pg_query *query, enum store_parts parts)
{
    static const char *const tables[][2] = {
        { "run_metadata m", "coalesce(octet_length(m.body), 0)" },
        { "run_payload p", "coalesce(octet_length(p.body), 0)" },
        { "run_output o", "coalesce(octet_length(o.body), 0)" },
    };
    int count = parts == STORE_PACKETS ? 3 : parts == STORE_METADATA;
    add(query, ", sized AS MATERIALIZED (SELECT g.*, 0");
    for (int i = 0; i < count; i++)
        buf_print(&query->sql, " + %s", tables[i][1]);
    add(query, " AS size FROM page g");
    for (int i = 0; i < count; i++)
        buf_print(&query->sql, " LEFT JOIN %s ON %c.env = $1 AND %c.id = g.id",
                  tables[i][0], tables[i][0][4], tables[i][0][4]);
    add(query, ")");
}

static int64_t as_signed(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

/* Follows "WITH page AS (…)".
 *
 * The sizes in the database are smaller than those in memory, by which the caller cuts the
 * page. The caller also sorts the runs, because sorting here would copy them with all their
 * packets. */
static void add_runs_of_page(struct pg_query *query, const struct pg_page *page)
{
    bool bounded = page->byte_limit;
    if (bounded)
        add_sizes(query, page->parts);
    buf_print(&query->sql,
              ", kept AS (SELECT g.id, count(*) OVER () AS total,"
              " row_number() OVER (ORDER BY g.%s %s) AS place",
              page->key, page->taken);
    if (bounded)
        buf_print(
            &query->sql,
            ", sum(g.size) OVER (ORDER BY g.%s %s"
            " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes FROM sized g",
            page->key, page->answered);
    else
        add(query, ", 0 AS bytes FROM page g");
    add(query, ") SELECT s.seq, k.total, ");
    pg_rows_add_run(&query->sql, page->parts);
    /* OFFSET keeps a planner without statistics from choosing a scan for each run.
     *
     * It would scan all runs of the environment for each run of the page. */
    add(query, " FROM " SEQ_OF_ENV " LEFT JOIN (kept k CROSS JOIN LATERAL"
               " (SELECT * FROM run r WHERE r.env = $1 AND r.id = k.id OFFSET 0) r");
    run_columns_add_joins(&query->sql, page->parts);
    add_number(query, ") ON k.place <= ", page->limit);
    add_number(query, " AND coalesce(k.bytes, 0) <= ", as_signed(page->byte_limit));
}

static void begin_page(struct pg_query *query, uint32_t env)
{
    pg_param_int4(&query->params, (int32_t)env);
    add(query, "WITH page AS MATERIALIZED (");
}

/* Returns true if the filter has a condition that is likely to match fewer runs than a tag,
 * and has an index. */
static bool has_narrow_index(const struct run_filter *f)
{
    return f->packet.ptr || f->batch.ptr || f->parent.len || f->bulk.ptr ||
           (f->statuses && !(f->statuses & FINAL_STATUSES));
}

/* OFFSET makes the planner look up each run of the tag by its id, in the order of ids, until
 * the page is full. Without statistics it may combine the tag with all runs instead. */
static void add_runs_of_tag(struct pg_query *query, const struct run_filter *f,
                            struct slice tag)
{
    if (has_narrow_index(f))
        add(query, "run r JOIN run_tag d ON d.env = r.env AND d.id = r.id"
                   " WHERE r.env = $1");
    else
        add(query, "run_tag d CROSS JOIN LATERAL (SELECT * FROM run WHERE env = $1"
                   " AND id = d.id OFFSET 0) r WHERE true");
    add_bytes(query, " AND d.env = $1 AND d.tag = ", tag);
}

/* Adds the page of one tag or task, or of all runs. */
static void add_listed(struct pg_query *query, const struct store_list *req,
                       const struct pg_page *page, const struct slice *tag,
                       const struct slice *task)
{
    bool upwards = *req->before;
    add(query, "(SELECT r.id FROM ");
    if (tag)
        add_runs_of_tag(query, &req->filter, *tag);
    else
        add(query, "run r WHERE r.env = $1");
    if (task)
        add_bytes(query, " AND r.task = ", *task);
    if (upwards || *req->after)
        add_id_bound(query, tag, upwards ? ">" : "<", upwards ? req->before : req->after);
    add_conditions(query, &req->filter, tag);
    if (tag)
        add_any(query, " AND r.task IN", req->filter.tasks, req->filter.task_count);
    add_page_end(query, page, tag ? "d.id" : "r.id");
    add(query, ")");
}

static void add_list(struct pg_query *query, const struct store_read *read)
{
    const struct store_list *req = container_of(read, struct store_list, read);
    const struct run_filter *f = &req->filter;
    const struct pg_page page = { .key = "id",
                                  .taken = *req->before ? "ASC" : "DESC",
                                  .answered = "DESC",
                                  .parts = req->parts,
                                  .limit = req->limit,
                                  .byte_limit = req->byte_limit };
    bool by_tag = f->tag_count && !f->every_tag;
    size_t count = by_tag ? f->tag_count : f->task_count;
    begin_page(query, req->read.env);
    for (size_t i = 0; i < count; i++) {
        add(query, i ? " UNION " : "");
        add_listed(query, req, &page, by_tag ? &f->tags[i] : NULL,
                   by_tag ? NULL : &f->tasks[i]);
    }
    if (!count)
        add_listed(query, req, &page, NULL, NULL);
    if (count > 1)
        add_page_end(query, &page, "id");
    add(query, ")");
    add_runs_of_page(query, &page);
}

static void add_walk(struct pg_query *query, const struct store_read *read)
{
    const struct store_walk *req = container_of(read, struct store_walk, read);
    const char *direction = req->newest_first ? "DESC" : "ASC";
    const struct pg_page page = { .key = "rev",
                                  .taken = direction,
                                  .answered = direction,
                                  .parts = STORE_PACKETS,
                                  .limit = req->limit,
                                  .byte_limit = req->byte_limit };
    begin_page(query, req->read.env);
    add(query, "SELECT r.id, r.rev FROM run r");
    if (req->kind == WALK_TAG)
        add(query, " JOIN run_tag d ON d.env = r.env AND d.id = r.id");
    add(query, " WHERE r.env = $1");
    if (req->kind == WALK_TAG)
        add_bytes(query, " AND d.env = $1 AND d.tag = ", bytes_slice(req->name));
    if (req->kind == WALK_BATCH)
        add_bytes(query, " AND r.batch = ", bytes_slice(req->name));
    if (req->kind == WALK_UNFINISHED)
        add(query, " AND (r.status < 7 OR r.execution <> 7)");
    if (req->kind == WALK_SETTLED)
        add(query, " AND r.status >= 7 AND r.execution = 7");
    add_number(query, " AND r.rev > ", as_signed(req->after));
    add_number(query, " AND r.rev <= ", as_signed(req->up_to));
    if (req->created_from)
        add_number(query, " AND r.created_at >= ", req->created_from);
    add_page_end(query, &page, "r.rev");
    add(query, ")");
    add_runs_of_page(query, &page);
}

/* The plan needs no statistics: it follows the index and looks up the packets of each run,
 * so that a COPY can begin at once.
 *
 * There is no time limit. But the server ends the COPY if its client, perhaps suspended,
 * has read nothing for half a minute, because its locks would keep the next leader from
 * changing a table. */
void pg_query_copy_walk(struct pg_query *query, const char *schema,
                        const struct store_walk *req, uint64_t after)
{
    static const char *const packets[] = { "metadata m", "payload p", "output o" };
    buf_print(&query->sql,
              "SELECT set_config('search_path', '%s', true),"
              " set_config('statement_timeout', '0', true),"
              " set_config('tcp_user_timeout', '30s', true), set_config(name, 'off', true)"
              " FROM unnest(ARRAY['jit', 'enable_seqscan', 'enable_bitmapscan',"
              " 'enable_sort', 'enable_material', 'enable_hashjoin', 'enable_mergejoin'])"
              " name; COPY (SELECT r.rev, ",
              schema);
    run_columns_add(&query->sql, STORE_PACKETS);
    add(query, " FROM run r");
    for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++)
        buf_print(&query->sql,
                  " LEFT JOIN LATERAL (SELECT * FROM run_%s WHERE env = %u AND id = r.id"
                  " OFFSET 0) %c ON true",
                  packets[i], req->read.env, packets[i][strlen(packets[i]) - 1]);
    buf_print(&query->sql,
              " WHERE r.env = %u AND (r.status < 7 OR r.execution <> 7) AND r.rev > %lld"
              " AND r.rev <= %lld ORDER BY r.rev) TO STDOUT (FORMAT binary)",
              req->read.env, (long long)as_signed(after), (long long)as_signed(req->up_to));
}

static void add_count(struct pg_query *query, const struct store_read *read)
{
    const struct store_count *req = container_of(read, struct store_count, read);
    const struct run_filter *f = &req->filter;
    pg_param_int4(&query->params, (int32_t)req->read.env);
    add(query, "SELECT s.seq, c.status, c.runs FROM " SEQ_OF_ENV
               " LEFT JOIN (SELECT r.status, count(*) AS runs FROM run r WHERE r.env = $1");
    add_conditions(query, f, false);
    add_any(query, " AND r.task IN", f->tasks, f->task_count);
    if (!f->every_tag && f->tag_count) {
        add(query, " AND r.id IN (SELECT t.id FROM run_tag t WHERE t.env = $1");
        add_any(query, " AND t.tag IN", f->tags, f->tag_count);
        add(query, ")");
    }
    add(query, " GROUP BY r.status) c ON true");
}

/* ---- by name ---- */

static void add_run_by_id(struct pg_query *query, const struct store_load *req)
{
    pg_array_begin(&query->envs, PG_INT4);
    if (req->read.env)
        pg_put_int4(&query->envs, (int32_t)req->read.env);
    for (size_t i = 0; i < req->other_count; i++)
        pg_put_int4(&query->envs, (int32_t)req->others[i]);
    add(query, "SELECT r.env, ");
    pg_rows_add_run(&query->sql, STORE_PACKETS);
    pg_param_array(&query->params, PG_INT4_ARRAY, pg_array_end(&query->envs));
    add_bytes(query,
              " FROM unnest($1) WITH ORDINALITY e(env, place)"
              " JOIN run r ON r.env = e.env AND r.id = ",
              bytes_slice(req->name));
    run_columns_add_joins(&query->sql, STORE_PACKETS);
    add(query, " ORDER BY e.place LIMIT 1");
}

static void add_document(struct pg_query *query, enum document_kind kind, uint32_t env,
                         struct slice name)
{
    add_small(query, " FROM document d WHERE d.kind = ", (int32_t)kind);
    add_small(query, " AND d.env = ", (int32_t)env);
    add_bytes(query, " AND d.name = ", name);
}

static void add_load(struct pg_query *query, const struct store_read *read)
{
    const struct store_load *req = container_of(read, struct store_load, read);
    if (!req->is_document) {
        add_run_by_id(query, req);
        return;
    }
    add(query, "SELECT d.env, d.version, d.name, d.body");
    add_document(query, req->kind, read->env, bytes_slice(req->name));
}

static int32_t as_length(size_t number)
{
    return number >= INT32_MAX / 2 ? INT32_MAX / 2 : (int32_t)number;
}

/* Offsets in SQL begin with 1. */
static void add_piece(struct pg_query *query, const struct store_read *read)
{
    const struct store_piece *req = container_of(read, struct store_piece, read);
    add_number(query,
               "SELECT d.seq, octet_length(d.body), CASE WHEN d.seq = ", (int64_t)req->seq);
    add_number(query, " OR 0 = ", (int64_t)req->seq);
    add(query, " THEN substring(d.body FROM ");
    if (req->last)
        add_small(query, "greatest(octet_length(d.body) - ", as_length(req->limit));
    else
        add_small(query, "greatest(0, ", as_length(req->offset));
    add_small(query, req->last ? ", 0) + 1 FOR " : ") + 1 FOR ", as_length(req->limit));
    add(query, ") END");
    add_document(query, req->kind, req->read.env, bytes_slice(req->name));
}

static void add_scan_page(struct pg_query *query, const struct store_scan *req)
{
    const char *direction = req->downwards ? "DESC" : "ASC";
    struct slice from = slice_of(req->from);
    if (from.len)
        add_bytes(query, req->downwards ? " AND d.name < " : " AND d.name > ", from);
    buf_print(&query->sql, " ORDER BY d.name %s", direction);
    add_number(query, " LIMIT ", (int64_t)req->limit + 1);
    add(query, ") g) g");
    add_number(query, " WHERE g.place <= ", req->limit);
    if (req->byte_limit)
        add_number(query, " AND coalesce(g.bytes, 0) <= ", as_signed(req->byte_limit));
    buf_print(&query->sql, " ORDER BY g.name %s", direction);
}

static void add_claims(struct pg_query *query, const struct store_scan *req)
{
    add_small(query,
              "SELECT k.env, 0::bigint, k.key, k.owner, k.expires_at FROM claim k"
              " WHERE k.kind = ",
              (int32_t)req->claim_kind);
    if (req->read.env != ENV_EVERY)
        add_small(query, " AND k.env = ", (int32_t)req->read.env);
    add(query, " ORDER BY k.env, k.key");
}

static void add_scan(struct pg_query *query, const struct store_read *read)
{
    const struct store_scan *req = container_of(read, struct store_scan, read);
    if (req->of_claims) {
        add_claims(query, req);
        return;
    }
    if (req->limit)
        buf_print(&query->sql,
                  "SELECT g.env, g.version, g.name, g.body, g.total FROM (SELECT g.*,"
                  " count(*) OVER () AS total, row_number() OVER (ORDER BY g.name %s) AS"
                  " place, sum(octet_length(g.body)) OVER (ORDER BY g.name %s ROWS BETWEEN"
                  " UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes FROM (",
                  req->downwards ? "DESC" : "ASC", req->downwards ? "DESC" : "ASC");
    add_small(query,
              "SELECT d.env, d.version, d.name, d.body FROM document d WHERE d.kind = ",
              (int32_t)req->kind);
    if (req->read.env != ENV_EVERY)
        add_small(query, " AND d.env = ", (int32_t)req->read.env);
    if (req->limit)
        add_scan_page(query, req);
    else
        add(query, " ORDER BY d.env, d.name");
}

void pg_query_read(struct pg_query *query, const struct store_read *read)
{
    static void (*const adders[])(struct pg_query *, const struct store_read *) = {
        [READ_LOAD] = add_load,   [READ_PIECE] = add_piece, [READ_LIST] = add_list,
        [READ_COUNT] = add_count, [READ_WALK] = add_walk,   [READ_SCAN] = add_scan,
    };
    adders[read->kind](query, read);
}
