/* waitpoint_list.c - lists waitpoint tokens page by page, newest first.
 *
 *   documents, a hundred at a time ─► matching ones ─► a full page, or the end: reply
 *            ▲                              │
 *            └──────────────────────────────┘ too few
 *
 * The documents are read by id, which begins with the creation time. The cursor is the
 * id of the first or last token of a page. If a filter matches too few tokens, the request
 * times out. */
#include "api/request/paging.h"
#include "api/waitpoints/waitpoint_load.h"
#include "api/waitpoints/waitpoints.h"
#include "base/json/members.h"
#include "base/mem.h"

enum { PAGE_DEFAULT = 25, LOOK = 100, LOOK_BYTES = 1 << 20 };

static const int64_t look_ms = 2000;

struct waitpoint_listing {
    struct api_call *call;
    struct store_scan scan;
    struct deferred deferred;
    size_t at; /* index of the next one in scan.documents */
    /* up to limit + 1; one above the limit means that there are more */
    struct waitpoint *found;
    size_t count;
    bool passed; /* the scan has left the window of time */
    int64_t deadline_ms;
    struct slice statuses, key, tags; /* from the query; absent: any */
    int64_t from, to;                 /* Unix ms; 0: open */
    struct slice after, before;       /* ids; absent: none */
    uint64_t limit;
};

/* ---- the query ---- */

static enum err check_statuses(struct api_call *call, struct slice list)
{
    struct slice word;
    while (slice_split(&list, ',', &word)) {
        word = slice_trim(word);
        if (word.len && !slice_is(word, "WAITING") && !slice_is(word, "COMPLETED") &&
            !slice_is(word, "TIMED_OUT"))
            return explain(
                &call->why, ERR_INVALID,
                "\"%.*s\" is not a status of a token; use WAITING, COMPLETED or TIMED_OUT",
                SLICE_ARG(text_clip(word)));
    }
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

static enum err read_window(struct waitpoint_listing *op)
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

/* ---- matching ---- */

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

static bool matches(const struct waitpoint_listing *op, const struct waitpoint *waitpoint)
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

static void listing_destroy(struct waitpoint_listing *op)
{
    while (op->count)
        waitpoint_finish(&op->found[--op->count]);
    store_read_finish(&op->scan.read);
    free(op->found);
    free(op);
}

static void reply(struct waitpoint_listing *op)
{
    const struct waitpoint *page = op->found;
    bool upwards = op->before.ptr != NULL, more = op->count > op->limit;
    size_t shown = more ? op->limit : op->count;
    struct buf out = { 0 };
    buf_add_text(&out, "{\"data\":[");
    for (size_t i = 0; i < shown; i++) {
        if (i)
            buf_add_char(&out, ',');
        waitpoint_add_item(op->call, &page[upwards ? shown - 1 - i : i], &out);
    }
    buf_add_text(&out, "],\"pagination\":{");
    if (shown && (upwards || more))
        members_add_text(&out, "next", slice_of(page[upwards ? 0 : shown - 1].id));
    if (shown && (upwards ? more : op->after.ptr != NULL))
        members_add_text(&out, "previous", slice_of(page[upwards ? shown - 1 : 0].id));
    buf_add_text(&out, "}}");
    api_reply_json(op->call, 200, buf_slice(&out));
    buf_finish(&out);
}

/* Returns true if the scan has left the window of time. Ids are in the order of
 * creation, so no further document is in the window. */
static bool is_beyond(const struct waitpoint_listing *op, const struct waitpoint *waitpoint)
{
    return op->scan.downwards ? op->from && waitpoint->created_at < op->from
                              : op->to && waitpoint->created_at > op->to;
}

static void look_at(struct waitpoint_listing *op, const struct document *document)
{
    struct waitpoint *waitpoint = &op->found[op->count];
    if (waitpoint_read_head(document, waitpoint))
        return;
    op->passed = is_beyond(op, waitpoint);
    if (matches(op, waitpoint))
        op->count++;
    else
        waitpoint_finish(waitpoint);
}

static void next_documents(struct waitpoint_listing *op);

static void go_on(struct deferred *deferred)
{
    struct waitpoint_listing *op =
        container_of(deferred, struct waitpoint_listing, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    while (op->at < op->scan.count && op->count <= op->limit && !op->passed) {
        if (!timeslice_left(&timeslice)) {
            loop_defer(loop, &op->deferred);
            return;
        }
        struct document *document = &op->scan.documents[op->at++];
        look_at(op, document);
        snprintf(op->scan.from, sizeof(op->scan.from), "%s", document->name->data);
        document_finish(document);
    }
    if (op->count <= op->limit && !op->passed && op->scan.more) {
        next_documents(op);
        return;
    }
    reply(op);
    listing_destroy(op);
}

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct waitpoint_listing *op = container_of(read, struct waitpoint_listing, scan.read);
    struct api_call *call = op->call;
    op->at = 0;
    if (status == STORE_OK) {
        go_on(&op->deferred);
        return;
    }
    listing_destroy(op);
    api_reply_error(call, err_of_store(status));
}

static void next_documents(struct waitpoint_listing *op)
{
    struct api_call *call = op->call;
    struct store *store = engine_store(api_engine(call->api));
    store_read_finish(&op->scan.read);
    if (loop_now_ms(engine_loop(api_engine(call->api))) < op->deadline_ms) {
        store->ops->read(store, &op->scan.read);
        return;
    }
    listing_destroy(op);
    api_add_header(call, "x-should-retry", SLICE("false"));
    api_reply_refusal(call, 503,
                      "The filter matches so few tokens that finding them takes too long; "
                      "ask for fewer days with filter[createdAt]");
}

enum err waitpoint_list(struct api_call *call)
{
    struct loop *loop = engine_loop(api_engine(call->api));
    struct waitpoint_listing *op = mem_new(struct waitpoint_listing);
    op->call = call;
    op->limit = PAGE_DEFAULT;
    op->statuses = api_query(call, "filter[status]");
    op->key = api_query(call, "filter[idempotencyKey]");
    op->tags = api_query(call, "filter[tags]");
    op->after = api_query(call, "page[after]");
    op->before = api_query(call, "page[before]");
    if (check_statuses(call, op->statuses) ||
        paging_read_size(call, PAGE_SIZE_MAX, &op->limit) || read_window(op)) {
        free(op);
        return ERR_INVALID;
    }
    op->found = mem_new_array(struct waitpoint, op->limit + 1);
    op->deferred.fn = go_on;
    list_init(&op->deferred.link);
    op->deadline_ms = loop_now_ms(loop) + look_ms;
    op->scan = (struct store_scan){ .read = { READ_SCAN, call->env->number, on_scanned },
                                    .kind = DOC_WAITPOINT,
                                    .downwards = !op->before.ptr,
                                    .limit = LOOK,
                                    .byte_limit = LOOK_BYTES };
    snprintf(op->scan.from, sizeof(op->scan.from), "%.*s",
             SLICE_ARG(op->before.ptr ? op->before : op->after));
    call->busy = true;
    next_documents(op);
    return OK;
}
