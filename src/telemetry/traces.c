/* traces.c - one struct trace for each run that somebody writes to or reads.
 *
 *   (nothing) ─► loading ─► clean ──event──► dirty ──1 s or more──► writing ─► clean
 *                             └── nobody for 2 s ─► (nothing)
 *
 * Events that come while the document is being loaded wait behind it. A document belongs to
 * one gateway, so its version is known; when it was removed meanwhile (retention), the
 * trace is forgotten with it. */
#include "telemetry/traces.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "telemetry/spans.h"
#include "json/members.h"

enum {
    WRITE_MS = 1000,
    WRITE_MS_PER_64K = 500, /* more: what is rewritten is longer */
    RETRY_MS = 10 * 1000,
    IDLE_MS = 2000,
};

struct traces {
    struct engine *engine;
    struct table table; /* of struct trace */
    struct list ready;  // trace::ready; loaded, and somebody looks
    struct flusher flusher;
    struct list loads;  // trace_load::link
    struct list writes; // trace_write::link
    size_t bytes;       /* of all events */
    uint32_t kind;      /* of timers */
};

struct trace {
    char key[ENVIRONMENT_KEY];
    struct traces *traces;
    struct environment *env;
    struct spans spans;
    size_t bytes;
    uint32_t version; /* of the document; 0: there is none */
    bool loading, dirty, writing, failed;
    int64_t write_at; /* monotonic ms: not sooner */
    struct timer timer;
    struct list looks; // trace_look::link
    struct list ready; // traces::ready
};

/* These live until the store has answered, with or without a trace. */
struct trace_load {
    struct store_load load;
    struct trace *trace; /* NULL: the gateway stops */
    struct list link;    // traces::loads
};

struct trace_write {
    struct document_write write;
    struct trace *trace; /* NULL: the gateway stops */
    struct list link;    // traces::writes
};

static struct loop *loop_of(const struct traces *traces)
{
    return engine_loop(traces->engine);
}

static struct slice trace_key(const void *value)
{
    return slice_of(((const struct trace *)value)->key);
}

static struct slice id_of(const struct trace *trace)
{
    return environment_key_id(trace->key);
}

void traces_drop(size_t count)
{
    metric_add(M_TRACE_DROPPED, count);
}

/* ---- the events of one run ---- */

/* Frees a trace that is out of the table already; nobody looks at it, and nothing is on
 * its way. */
static void trace_free(struct trace *trace)
{
    struct traces *traces = trace->traces;
    timers_clear(loop_timers(loop_of(traces)), &trace->timer);
    spans_finish(&trace->spans);
    traces->bytes -= trace->bytes;
    environment_release(trace->env);
    free(trace);
}

static int64_t pause_ms(const struct trace *trace)
{
    if (trace->failed)
        return RETRY_MS;
    return WRITE_MS + (int64_t)(trace->bytes / (64 * 1024)) * WRITE_MS_PER_64K;
}

static int64_t idle_ms(const struct trace *trace)
{
    return trace->traces->bytes > TRACES_BYTES_MAX / 2 ? 1 : IDLE_MS;
}

static void set_timer(struct trace *trace)
{
    struct loop *loop = loop_of(trace->traces);
    int64_t left = trace->write_at - loop_now_ms(loop);
    if (trace->loading || trace->writing)
        timers_clear(loop_timers(loop), &trace->timer);
    else
        loop_set_timer(loop, &trace->timer, trace->traces->kind,
                       !trace->dirty ? idle_ms(trace)
                       : left > 0    ? left
                                     : 0);
}

static void resize(struct trace *trace, size_t gone, size_t come)
{
    trace->bytes += come - gone;
    trace->traces->bytes += come - gone;
}

/* A span that has ended takes the place of its beginning; a beginning that comes late, and
 * whatever comes twice, is no news. */
static bool keep(struct trace *trace, struct trace_event *event, bool is_new)
{
    struct trace_event *known = spans_find(&trace->spans, event->span);
    size_t gone = known ? known->json->len : 0;
    if (known && !known->partial)
        return false;
    if (trace->bytes - gone + event->json->len > TRACE_BYTES_MAX ||
        (is_new && trace->traces->bytes - gone + event->json->len > TRACES_BYTES_MAX) ||
        (!known && trace->spans.count == TRACE_EVENTS_MAX)) {
        traces_drop(1);
        return false;
    }
    resize(trace, gone, event->json->len);
    if (known)
        spans_replace(&trace->spans, known, event);
    else
        spans_add(&trace->spans, event);
    return true;
}

/* ---- to the store ---- */

static void on_written(struct document_write *done, enum err status)
{
    struct trace_write *write = container_of(done, struct trace_write, write);
    struct trace *trace = write->trace;
    list_remove(&write->link);
    free(write);
    if (!trace)
        return;
    trace->writing = false;
    trace->failed = status != OK;
    if (status == ERR_CONFLICT) {
        trace->dirty = trace->failed = false; /* the run is gone, and so is this, soon */
        trace->version = UINT32_MAX;
    } else if (status) {
        trace->dirty = true;
    } else {
        trace->version++;
    }
    trace->write_at = loop_now_ms(loop_of(trace->traces)) + pause_ms(trace);
    set_timer(trace);
}

static void write_now(struct trace *trace)
{
    struct trace_write *write = mem_new(struct trace_write);
    struct bytes *name = bytes_create(id_of(trace));
    struct buf body = { 0 };

    spans_sort(&trace->spans);
    buf_add_text(&body, "{\"events\":[");
    for (size_t i = 0; i < trace->spans.count; i++) {
        if (i)
            buf_add_char(&body, ',');
        buf_add(&body, bytes_slice(trace->spans.events[i].json));
    }
    buf_add_text(&body, "]}");
    struct bytes *text = buf_to_bytes(&body);
    buf_finish(&body);
    trace->dirty = false;
    trace->writing = true;
    write->trace = trace;
    list_append(&trace->traces->writes, &write->link);
    document_write_begin(trace->traces->engine, trace->env->number, DOC_TRACE, name, text,
                         trace->version, &write->write, on_written);
    bytes_unref(name);
    bytes_unref(text);
    set_timer(trace);
}

static void on_time(struct timer *timer)
{
    struct trace *trace = container_of(timer, struct trace, timer);
    if (trace->dirty)
        write_now(trace);
    else if (!list_empty(&trace->looks))
        set_timer(trace);
    else
        trace_free(table_remove(&trace->traces->table, slice_of(trace->key)));
}

/* ---- from the store ---- */

static void load_events(struct trace *trace, const struct document *document)
{
    struct scan_members all =
        scan_members(scan_member(bytes_slice(document->body), "events"));
    struct slice one;
    while (scan_next_element(&all, &one)) {
        struct trace_event event = { .partial = members_is_true(one, "isPartial") };
        struct bytes *span = members_text(one, "spanId");
        snprintf(event.span, sizeof(event.span), "%s", span ? span->data : "");
        bytes_unref(span);
        members_number(one, "at", &event.started_ms);
        event.json = bytes_create(one);
        if (!keep(trace, &event, false))
            bytes_unref(event.json);
    }
    trace->version = document->version;
}

static void on_loaded(struct store_load *done, enum store_status status)
{
    struct trace_load *load = container_of(done, struct trace_load, load);
    struct trace *trace = load->trace;
    list_remove(&load->link);
    bytes_unref(done->name);
    if (trace) {
        struct spans came = trace->spans;
        trace->spans = (struct spans){ 0 };
        resize(trace, trace->bytes, 0); /* until they are kept again, behind the others */
        trace->loading = false;
        trace->failed = status != STORE_OK && status != STORE_MISSING;
        if (status == STORE_OK)
            load_events(trace, &done->document);
        for (size_t i = 0; i < came.count; i++)
            if (keep(trace, &came.events[i], true))
                came.events[i].json = NULL;
        spans_finish(&came);
        if (!list_empty(&trace->looks)) {
            list_append(&trace->traces->ready, &trace->ready);
            loop_wake(loop_of(trace->traces), &trace->traces->flusher);
        }
        set_timer(trace);
    }
    if (status == STORE_OK)
        document_finish(&done->document);
    free(load);
}

static struct trace *use(struct traces *traces, struct environment *env, struct slice id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, id, key);
    struct trace *trace = table_find(&traces->table, slice_of(key));
    if (trace)
        return trace;
    trace = mem_new(struct trace);
    memcpy(trace->key, key, sizeof(key));
    trace->traces = traces;
    trace->env = env;
    environment_hold(env);
    trace->loading = true;
    trace->write_at = loop_now_ms(loop_of(traces)) + WRITE_MS;
    list_init(&trace->looks);
    list_init(&trace->ready);
    table_insert(&traces->table, trace);

    struct trace_load *load = mem_new(struct trace_load);
    struct store *store = engine_store(traces->engine);
    load->trace = trace;
    load->load = (struct store_load){ .env = env->number,
                                      .is_document = true,
                                      .kind = DOC_TRACE,
                                      .name = bytes_create(id_of(trace)),
                                      .done = on_loaded };
    list_append(&traces->loads, &load->link);
    store->ops->load(store, &load->load);
    return trace;
}

bool traces_add(struct traces *traces, struct environment *env, struct slice run_id,
                struct trace_event *event)
{
    struct trace *trace = use(traces, env, run_id);
    if (!keep(trace, event, true)) {
        bytes_clear(&event->json);
        return false;
    }
    metric_add(M_TRACE_EVENTS, 1);
    trace->dirty = true;
    set_timer(trace);
    return true;
}

/* ---- who reads ---- */

static void answer(struct trace *trace)
{
    spans_sort(&trace->spans);
    while (!list_empty(&trace->looks)) {
        struct trace_look *look =
            container_of(list_take(&trace->looks), struct trace_look, link);
        look->events = trace->spans.events;
        look->count = trace->spans.count;
        look->done(look, trace->failed && !trace->version ? ERR_STORE : OK);
    }
    set_timer(trace);
}

static bool flush(struct flusher *flusher)
{
    struct traces *traces = container_of(flusher, struct traces, flusher);
    struct stint stint = loop_stint(loop_of(traces));
    while (!list_empty(&traces->ready) && stint_goes_on(&stint))
        answer(container_of(list_take(&traces->ready), struct trace, ready));
    return !list_empty(&traces->ready);
}

void trace_look_begin(struct traces *traces, struct environment *env, struct slice run_id,
                      struct trace_look *look,
                      void (*done)(struct trace_look *look, enum err status))
{
    struct trace *trace = use(traces, env, run_id);
    *look = (struct trace_look){ .done = done, .trace = trace };
    list_append(&trace->looks, &look->link);
    if (trace->loading || !list_empty(&trace->ready))
        return;
    list_append(&traces->ready, &trace->ready);
    loop_wake(loop_of(traces), &traces->flusher);
}

/* ---- all of them ---- */

struct traces *traces_create(struct engine *engine)
{
    struct traces *traces = mem_new(struct traces);
    traces->engine = engine;
    table_init(&traces->table, trace_key);
    list_init(&traces->ready);
    list_init(&traces->loads);
    list_init(&traces->writes);
    traces->flusher = (struct flusher){ .fn = flush };
    loop_add_flusher(loop_of(traces), &traces->flusher);
    traces->kind = timers_kind(loop_timers(loop_of(traces)), on_time);
    return traces;
}

static void write_if_dirty(struct trace *trace)
{
    if (trace->dirty && !trace->writing && !trace->loading)
        write_now(trace);
}

void traces_write_all(struct traces *traces)
{
    size_t at = 0;
    for (struct trace *trace; (trace = table_next(&traces->table, &at));)
        write_if_dirty(trace);
}

bool traces_write_some(struct traces *traces, size_t *at, struct stint *stint)
{
    while (stint_goes_on(stint)) {
        struct trace *trace = table_next(&traces->table, at);
        if (!trace)
            return false;
        write_if_dirty(trace);
    }
    return true;
}

void traces_destroy(struct traces *traces)
{
    size_t at = 0;
    if (!traces)
        return;
    while (!list_empty(&traces->loads))
        container_of(list_take(&traces->loads), struct trace_load, link)->trace = NULL;
    while (!list_empty(&traces->writes))
        container_of(list_take(&traces->writes), struct trace_write, link)->trace = NULL;
    for (struct trace *trace; (trace = table_next(&traces->table, &at));)
        trace_free(trace);
    loop_remove_flusher(&traces->flusher);
    table_finish(&traces->table);
    free(traces);
}
