/* pg_files.c - sends requests for files of deployments, one at a time.
 *
 *   waiting: first ─► link ─► put_piece_v101, remove_file_v101, or a read ─► done
 *              ▲        │ lost
 *              └────────┘
 *
 * All requests can be repeated. So a request whose response is lost is sent again, until
 * the database has not responded for five seconds, or for 30 if the first request may be
 * about many pieces: then all waiting requests fail. */
#include "store/pg/pg_files.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/pg/sql/pg_refusal.h"
#include "store/pg/sql/pg_rows.h"

enum {
    TIMEOUT_MS = 5000,
    LONG_MS = 30000, /* for requests about many pieces */
    BACK_OFF_MAX_MS = 1000,
};

static struct pg_files *files_of(struct pg_link *link)
{
    return container_of(link, struct pg_files, link);
}

static struct store_file *first_of(const struct pg_files *files)
{
    return container_of(files->waiting.next, struct store_file, link);
}

static void maybe_closing(struct pg_files *files);

/* ---- finishing requests ---- */

static void pg_files_finish_request(struct pg_files *files, struct store_file *req,
                                    enum store_status status)
{
    struct store *store = files->store;
    list_remove(&req->link);
    if (status == STORE_MOVED && store->on_moved)
        store->on_moved(store->moved_owner);
    req->status = status;
    req->done(req, status);
}

static void finish_all(struct pg_files *files, enum store_status status)
{
    struct list failed;
    list_init(&failed);
    list_move_all(&failed, &files->waiting);
    while (!list_empty(&failed))
        pg_files_finish_request(files, container_of(failed.next, struct store_file, link),
                                status);
}

/* ---- responses ---- */

/* Reads the result of a function, which is a letter. */
static enum store_status take_word(const PGresult *answer)
{
    if (!PQntuples(answer))
        return STORE_FAILED;
    switch (*PQgetvalue(answer, 0, 0)) {
    case 'o': return STORE_OK;
    case 'l': return STORE_LOST;
    default: return STORE_MOVED;
    }
}

static enum store_status take_piece(struct store_file *req, const PGresult *answer)
{
    if (!PQntuples(answer))
        return STORE_MISSING;
    req->size = pg_rows_number(answer, 0, 0);
    req->body = bytes_create(pg_rows_bytes(answer, 0, 1));
    if (!req->body && req->piece < store_file_pieces(req->size))
        return STORE_MISSING;
    if (!req->body)
        req->body = bytes_create_empty(0);
    return STORE_OK;
}

static enum store_status take_names(struct store_file *req, const PGresult *answer)
{
    req->count = (size_t)PQntuples(answer);
    req->names = mem_new_array(struct store_file_name, req->count);
    for (size_t i = 0; i < req->count; i++) {
        struct slice name = pg_rows_bytes(answer, (int)i, 1);
        req->names[i].env = (uint32_t)pg_rows_number(answer, (int)i, 0);
        snprintf(req->names[i].text, FILE_NAME_MAX, "%.*s", SLICE_ARG(name));
    }
    return STORE_OK;
}

static enum store_status take(struct store_file *req, const PGresult *answer)
{
    switch (req->step) {
    case FILE_GET: return take_piece(req, answer);
    case FILE_LIST: return take_names(req, answer);
    default: return take_word(answer);
    }
}

static void go_on(struct pg_files *files);

/* Returns false if the request is sent again.
 *
 * Logs only the primary message: other fields may contain a part of the row. */
static bool take_error(struct pg_files *files, const PGresult *answer,
                       enum store_status *status)
{
    enum pg_remedy remedy = pg_remedy_of(PQresultErrorField(answer, PG_DIAG_SQLSTATE));
    char reason[PG_REASON_MAX];
    if (remedy == PG_REPEAT) {
        pg_link_reopen(&files->link);
        return false;
    }
    const char *sentence = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
    pg_reason(reason, sentence ? sentence : "");
    log_warn("the database rejected a request for a file of a deployment", "reason", reason,
             NULL);
    *status = remedy == PG_NO_SPACE ? STORE_NO_SPACE : STORE_FAILED;
    return true;
}

static void on_answer(struct pg_link *link, PGresult *answer)
{
    struct pg_files *files = files_of(link);
    struct store_file *req = first_of(files);
    enum store_status status = STORE_OK;
    bool is_done = true;
    if (PQresultStatus(answer) == PGRES_TUPLES_OK)
        status = take(req, answer);
    else
        is_done = take_error(files, answer, &status);
    PQclear(answer);
    if (is_done) {
        uv_timer_stop(&files->timeout);
        pg_files_finish_request(files, req, status);
    }
    go_on(files);
    maybe_closing(files);
}

/* ---- sending ---- */

/* Adds the parameters that every write begins with. */
static void add_lead(const struct pg_files *files, struct pg_params *params)
{
    const char *durability = files->link.options->durability;
    pg_param_text(params, durability ? durability : "on");
    pg_param_int4(params, PG_REALM);
    pg_param_int8(params, (int64_t)files->lead->term);
}

static void add_name(const struct store_file *req, struct pg_params *params)
{
    pg_param_int4(params, (int32_t)req->name.env);
    pg_param_bytes(params, slice_of(req->name.text));
}

static void build_put(const struct pg_files *files, const struct store_file *req,
                      struct buf *sql, struct pg_params *params)
{
    add_lead(files, params);
    add_name(req, params);
    pg_param_int4(params, (int32_t)req->piece);
    pg_param_int8(params, req->size);
    pg_param_bytes(params, req->content);
    buf_print(sql, "SELECT \"%s\".put_piece_v101($1, $2, $3, $4, $5, $6, $7, $8)",
              pg_schema_name(files->link.options));
}

static void build_remove(const struct pg_files *files, const struct store_file *req,
                         struct buf *sql, struct pg_params *params)
{
    add_lead(files, params);
    add_name(req, params);
    buf_print(sql, "SELECT \"%s\".remove_file_v101($1, $2, $3, $4, $5)",
              pg_schema_name(files->link.options));
}

static void build_get(const struct pg_files *files, const struct store_file *req,
                      struct buf *sql, struct pg_params *params)
{
    const char *schema = pg_schema_name(files->link.options);
    add_name(req, params);
    pg_param_int4(params, (int32_t)req->piece);
    buf_print(sql,
              "SELECT whole.size, part.body FROM \"%s\".deployed_file whole"
              " LEFT JOIN \"%s\".deployed_file part ON part.env = whole.env"
              " AND part.name = whole.name AND part.piece = $3"
              " WHERE whole.env = $1 AND whole.name = $2 AND whole.piece = 0",
              schema, schema);
}

/* Environments are compared as signed numbers, as in the database. */
static void build_list(const struct pg_files *files, const struct store_file *req,
                       struct buf *sql, struct pg_params *params)
{
    pg_param_int4(params, *req->name.text ? (int32_t)req->name.env : INT32_MIN);
    pg_param_bytes(params, slice_of(req->name.text));
    buf_print(sql,
              "SELECT DISTINCT env, name FROM \"%s\".deployed_file"
              " WHERE (env, name) > ($1, $2) ORDER BY env, name LIMIT %d",
              pg_schema_name(files->link.options), FILE_PAGE);
}

static bool is_long(const struct store_file *req)
{
    return req->step == FILE_REMOVE || req->step == FILE_LIST;
}

static void on_timeout(uv_timer_t *timer);

static void start_timeout(struct pg_files *files, bool is_long)
{
    unsigned ms = files->link.options->timeout_ms;
    ms = ms > TIMEOUT_MS ? ms : TIMEOUT_MS;
    if (is_long && ms < LONG_MS)
        ms = LONG_MS;
    if (!uv_is_active((uv_handle_t *)&files->timeout))
        uv_timer_start(&files->timeout, on_timeout, ms, 0);
}

static void send_first(struct pg_files *files, const struct store_file *req)
{
    static void (*const builders[])(const struct pg_files *, const struct store_file *,
                                    struct buf *, struct pg_params *) = {
        [FILE_PUT] = build_put,
        [FILE_GET] = build_get,
        [FILE_REMOVE] = build_remove,
        [FILE_LIST] = build_list,
    };
    struct buf sql = { 0 };
    struct pg_params params = { 0 };
    builders[req->step](files, req, &sql, &params);
    buf_add_char(&sql, '\0');
    struct pg_statement statement = { .sql = sql.ptr, .params = &params };
    pg_link_send(&files->link, &statement);
    pg_params_finish(&params);
    buf_finish(&sql);
}

static void go_on(struct pg_files *files)
{
    if (list_empty(&files->waiting)) {
        uv_timer_stop(&files->timeout);
        return;
    }
    start_timeout(files, is_long(first_of(files)));
    if (files->link.state == PG_IDLE)
        send_first(files, first_of(files));
}

/* A request in flight may still be carried out. No caller waits for it, and it can be
 * repeated. */
static void on_timeout(uv_timer_t *timer)
{
    struct pg_files *files = container_of(timer, struct pg_files, timeout);
    if (files->link.state == PG_BUSY)
        pg_link_reopen(&files->link);
    finish_all(files, STORE_FAILED);
    go_on(files);
    maybe_closing(files);
}

/* ---- the connection ---- */

static void on_ready(struct pg_link *link)
{
    go_on(files_of(link));
}

/* The next connection sends the request again. */
static void on_lost(struct pg_link *link, bool was_busy)
{
    (void)link;
    (void)was_busy;
}

static void maybe_stopped(struct pg_files *files)
{
    if (--files->open == 0)
        files->stopped_fn(files);
}

static void on_link_closed(struct pg_link *link)
{
    maybe_stopped(files_of(link));
}

static void on_timeout_closed(uv_handle_t *handle)
{
    maybe_stopped(container_of((uv_timer_t *)handle, struct pg_files, timeout));
}

static void maybe_closing(struct pg_files *files)
{
    if (!files->stopped_fn || files->open || !list_empty(&files->waiting))
        return;
    files->open = 2;
    uv_close((uv_handle_t *)&files->timeout, on_timeout_closed);
    pg_link_close(&files->link);
}

/* ---- beginning and ending ---- */

static void pg_files_begin(struct pg_files *files)
{
    if (files->begun)
        return;
    files->begun = true;
    uv_timer_init(files->link.loop, &files->timeout);
    pg_link_begin(&files->link);
}

void pg_files_start(struct pg_files *files, uv_loop_t *loop,
                    const struct pg_options *options)
{
    list_init(&files->waiting);
    files->link.loop = loop;
    files->link.options = options;
    files->link.back_off_max_ms = BACK_OFF_MAX_MS;
    files->link.on_ready = on_ready;
    files->link.on_answer = on_answer;
    files->link.on_lost = on_lost;
    files->link.on_closed = on_link_closed;
}

void pg_files_ask(struct pg_files *files, struct store_file *req)
{
    pg_files_begin(files);
    list_append(&files->waiting, &req->link);
    if (first_of(files) == req)
        go_on(files);
}

void pg_files_stop(struct pg_files *files, void (*stopped)(struct pg_files *files))
{
    files->stopped_fn = stopped;
    if (files->begun)
        maybe_closing(files);
    else
        stopped(files);
}
