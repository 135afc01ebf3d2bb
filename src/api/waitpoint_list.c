/* waitpoint_list.c - pages of waitpoint tokens, newest first.
 *
 * Every token of the environment is read and looked at: they are few beside runs. A cursor
 * is the id of the token at the edge of a page. */
#include "api/waitpoints.h"
#include "base/mem.h"

enum { PAGE_DEFAULT = 25, PAGE_MAX = 100 };

struct listing {
    struct api_call *call;
    struct store_scan scan;
    struct slice statuses, key, tags; /* of the query; absent: any */
    int64_t from, to;                 /* Unix ms; 0: open */
    struct slice after, before;       /* ids; absent: none */
    unsigned limit;
};

/* ---- the query ---- */

static enum err read_limit(struct api_call *call, unsigned *limit)
{
    struct slice text = api_query(call, "page[size]");
    uint64_t number = PAGE_DEFAULT;
    if (text.ptr && (text_to_u64(text, &number) || !number || number > PAGE_MAX))
        return explain(&call->why, ERR_INVALID, "page[size] must be 1 to %d", PAGE_MAX);
    *limit = (unsigned)number;
    return OK;
}

static enum err read_time(struct api_call *call, const char *name, int64_t *unix_ms)
{
    struct slice text = api_query(call, name);
    if (text.ptr && text_to_i64(text, unix_ms) && text_to_time(text, unix_ms))
        return explain(&call->why, ERR_INVALID,
                       "%s must be a date, or a Unix time in milliseconds", name);
    return OK;
}

static enum err read_window(struct listing *op)
{
    struct api_call *call = op->call;
    struct slice period = api_query(call, "filter[createdAt][period]");
    int64_t ms;
    if (read_time(call, "filter[createdAt][from]", &op->from) ||
        read_time(call, "filter[createdAt][to]", &op->to))
        return ERR_INVALID;
    if (!period.ptr)
        return OK;
    if (text_to_duration_ms(period, &ms))
        return explain(&call->why, ERR_INVALID,
                       "filter[createdAt][period] must be a duration like 7d");
    op->from = loop_wall_ms(engine_loop(api_engine(call->api))) - ms;
    op->to = 0;
    return OK;
}

/* ---- what matches ---- */

static bool among(struct slice list, const char *word)
{
    struct slice part;
    while (slice_split(&list, ',', &part))
        if (slice_is(slice_trim(part), word))
            return true;
    return false;
}

static bool has_tag(const struct waitpoint *waitpoint, struct slice wanted)
{
    for (uint32_t i = 0; waitpoint->tags && i < waitpoint->tags->count; i++)
        if (among(wanted, waitpoint->tags->names[i]->data))
            return true;
    return false;
}

static bool matches(const struct listing *op, const struct waitpoint *waitpoint)
{
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(op->call->api)));
    return !waitpoint->is_time &&
           (!op->statuses.ptr ||
            among(op->statuses, waitpoint_status(waitpoint, now_ms))) &&
           (!op->key.ptr || slice_equal(bytes_slice(waitpoint->key), op->key)) &&
           (!op->tags.ptr || has_tag(waitpoint, op->tags)) &&
           (!op->from || waitpoint->created_at >= op->from) &&
           (!op->to || waitpoint->created_at <= op->to);
}

/* ---- the page ---- */

static int compare(struct slice id, struct slice cursor)
{
    size_t len = id.len < cursor.len ? id.len : cursor.len;
    int order = memcmp(id.ptr, cursor.ptr, len);
    return order ? order : (id.len > cursor.len) - (id.len < cursor.len);
}

/* Fills page with those that match, from the newest (or, going back, from the nearest to
 * the cursor); one more than the limit tells that there are more. */
static size_t pick(const struct listing *op, struct waitpoint *page)
{
    const struct store_scan *scan = &op->scan;
    bool upwards = op->before.ptr != NULL;
    size_t count = 0;
    for (size_t i = 0; i < scan->count && count <= op->limit; i++) {
        size_t at = upwards ? i : scan->count - 1 - i; /* by name: oldest first */
        struct slice id = bytes_slice(scan->documents[at].name);
        if ((upwards && compare(id, op->before) <= 0) ||
            (!upwards && op->after.ptr && compare(id, op->after) >= 0))
            continue;
        if (waitpoint_read(&scan->documents[at], &page[count]))
            continue;
        if (matches(op, &page[count]))
            count++;
        else
            waitpoint_finish(&page[count]);
    }
    return count;
}

static void add_cursor(struct buf *out, const char *name, const char *id)
{
    buf_print(out, "%s\"%s\":\"%s\"", out->ptr[out->len - 1] == '{' ? "" : ",", name, id);
}

static void write_page(struct listing *op, const struct waitpoint *page, size_t count,
                       struct buf *out)
{
    bool upwards = op->before.ptr != NULL, more = count > op->limit;
    size_t shown = more ? op->limit : count;
    buf_add_text(out, "{\"data\":[");
    for (size_t i = 0; i < shown; i++) {
        if (i)
            buf_add_char(out, ',');
        waitpoint_add_item(op->call, &page[upwards ? shown - 1 - i : i], out);
    }
    buf_add_text(out, "],\"pagination\":{");
    if (shown && (upwards || more))
        add_cursor(out, "next", page[upwards ? 0 : shown - 1].id);
    if (shown && (upwards ? more : op->after.ptr != NULL))
        add_cursor(out, "previous", page[upwards ? shown - 1 : 0].id);
    buf_add_text(out, "}}");
}

static void on_scanned(struct store_scan *scan, enum store_status status)
{
    struct listing *op = container_of(scan, struct listing, scan);
    struct api_call *call = op->call;
    struct buf out = { 0 };
    if (status) {
        free(op);
        api_reply_error(call, err_of_store(status));
        return;
    }
    struct waitpoint *page = mem_new_array(struct waitpoint, op->limit + 1);
    size_t count = pick(op, page);
    write_page(op, page, count, &out);
    while (count)
        waitpoint_finish(&page[--count]);
    for (size_t i = 0; i < scan->count; i++)
        document_finish(&scan->documents[i]);
    free(scan->documents);
    free(page);
    free(op);
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

enum err waitpoint_list(struct api_call *call)
{
    struct store *store = engine_store(api_engine(call->api));
    struct listing *op = mem_new(struct listing);
    op->call = call;
    op->statuses = api_query(call, "filter[status]");
    op->key = api_query(call, "filter[idempotencyKey]");
    op->tags = api_query(call, "filter[tags]");
    op->after = api_query(call, "page[after]");
    op->before = api_query(call, "page[before]");
    if (read_limit(call, &op->limit) || read_window(op)) {
        free(op);
        return ERR_INVALID;
    }
    op->scan = (struct store_scan){ .kind = DOC_WAITPOINT,
                                    .env = call->env->number,
                                    .done = on_scanned };
    call->busy = true;
    store->ops->scan(store, &op->scan);
    return OK;
}
