/* trace_look.c - reads the pieces of a trace, page by page, and sorts the events.
 *
 * A piece written meanwhile may appear twice, as pending events and from the store. This
 * does no harm, because events are merged by span. */
#include "api/telemetry/trace_look.h"

#include "base/mem.h"
#include "core/engine/engine.h"

enum {
    PAGE_PIECES = 100,
    /* a page ends with the piece that exceeds this; one turn reads it */
    PAGE_BYTES = 32 * 1024,
};

static void sort(struct deferred *deferred)
{
    struct trace_look *look = container_of(deferred, struct trace_look, deferred);
    spans_sort(&look->spans);
    look->done(look, OK);
}

static void trace_look_finish(struct trace_look *look, enum err status)
{
    struct spans *pending = &look->now.events;
    struct loop *loop = engine_loop(look->env->engine);
    for (size_t i = 0; i < pending->count; i++)
        spans_merge(&look->spans, &pending->events[i]);
    pending->count = 0;
    spans_finish(pending);
    environment_release(look->env);
    if (status)
        look->done(look, status);
    else
        loop_defer(loop, &look->deferred);
}

static void read_page(struct trace_look *look);

static bool is_ours(const struct trace_look *look, const struct document *document)
{
    size_t len = strlen(look->run_id);
    return document->name->len > len && document->name->data[len] == '/' &&
           !memcmp(document->name->data, look->run_id, len);
}

/* Merges a page. There may be fewer pieces than counted if some were removed meanwhile. */
static void on_page(struct store_read *read, enum store_status status)
{
    struct trace_look *look = container_of(read, struct trace_look, scan.read);
    const struct store_scan *scan = &look->scan;
    size_t count = scan->count;
    bool more = !status && count && scan->more && look->left > (int64_t)count;
    look->left -= (int64_t)count;
    if (more)
        snprintf(look->from, sizeof(look->from), "%s",
                 scan->documents[count - 1].name->data);
    for (size_t i = 0; i < count; i++)
        if (is_ours(look, &scan->documents[i]))
            trace_events_read(bytes_slice(scan->documents[i].body), &look->spans);
    store_read_finish(read);
    if (more)
        read_page(look);
    else
        trace_look_finish(look, err_of_store(status));
}

static void read_page(struct trace_look *look)
{
    look->scan =
        (struct store_scan){ .read = { READ_SCAN, look->env->number, on_page },
                             .kind = DOC_TRACE_PIECE,
                             .limit = look->left < PAGE_PIECES ? (unsigned)look->left
                                                               : PAGE_PIECES,
                             .byte_limit = PAGE_BYTES };
    memcpy(look->scan.from, look->from, sizeof(look->from));
    look->store->ops->read(look->store, &look->scan.read);
}

static void on_now(struct trace_now *now, enum err status)
{
    struct trace_look *look = container_of(now, struct trace_look, now);
    look->counts = now->counts;
    look->left = now->counts.pieces;
    if (!status && look->left)
        read_page(look);
    else
        trace_look_finish(look, status);
}

void trace_look_begin(struct traces *traces, struct environment *env, struct slice run_id,
                      struct trace_look *look,
                      void (*done)(struct trace_look *look, enum err status))
{
    *look =
        (struct trace_look){ .done = done, .env = env, .store = engine_store(env->engine) };
    look->deferred.fn = sort;
    list_init(&look->deferred.link);
    snprintf(look->run_id, sizeof(look->run_id), "%.*s", SLICE_ARG(run_id));
    trace_piece_name(run_id, 0, look->from);
    environment_hold(env);
    trace_now_begin(traces, env, run_id, &look->now, on_now);
}

void trace_look_end(struct trace_look *look)
{
    spans_finish(&look->spans);
}
