/* traces.c - collects spans and logs of runs and writes them to the store.
 *
 *   (nothing) ─► loading ─► clean ──event──► dirty ──1 s or more──► writing ─► clean
 *                             └── unused for 2 s ─► (nothing)
 *
 * There is one struct trace per run that is written to or read. Events that arrive while
 * the counts are loading wait for them. If the document was changed or removed meanwhile
 * (by a sweep of trace_shares.h, or retention), the counts are loaded again. If the
 * document is gone, so is the run, and the trace is dropped. */
#include "api/telemetry/traces.h"

#include "accounts/accounts.h"
#include "api/telemetry/trace_events.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/quota.h"
#include "core/engine/engine.h"

enum {
    WRITE_MS = 1000,
    RETRY_MS = 10 * 1000,
    IDLE_MS = 2000,
    WRITE_BYTES = 1 << 20, /* bytes per commit: other commits wait while it is written */
    /* Any two consecutive pieces exceed the size of one; a record has up to 256 KiB. */
    PIECES_MAX = 2 * (WRITE_BYTES + (256 << 10)) / TRACE_PIECE_BYTES + 4,
    PROJECTS_SHARE = 4, /* a project may have 1/4 of TRACES_BYTES_MAX pending */
};

/* The pending bytes of all environments of one project. */
struct memory {
    const struct project *project;
    struct quota quota;    /* outer: traces::quota */
    struct quota branches; /* of its preview branches together; outer: quota */
    size_t traces;         /* traces that refer to it; freed at 0 */
};

struct traces {
    struct engine *engine;
    struct accounts *accounts;
    struct trace_limits limits;
    struct table table;    /* of struct trace */
    struct table memories; /* of struct memory */
    struct quota quota;    /* bytes of all events */
    struct list ready;     // trace::ready; loaded, with requests
    struct flusher flusher;
    struct list loads;  // trace_load::link
    struct list writes; // trace_write::link
    uint32_t kind;      /* of timers */
    struct traces_watcher watcher;
};

struct trace {
    char key[ENVIRONMENT_KEY];
    struct traces *traces;
    struct environment *env;
    struct memory *memory;
    struct quota *quota;        /* in memory; counts its events */
    struct trace_counts counts; /* stored and pending; pieces: stored ones only */
    struct trace_counts stored; /* the counts in the document */
    struct spans pending;       /* not in the store */
    struct spans writing;       /* of the commit in flight */
    uint32_t version;           /* of the document; 0: not stored */
    bool loading, dirty, is_writing, failed;
    bool is_long;     /* more is pending than one commit can take */
    int64_t write_at; /* monotonic ms: earliest time of the next commit */
    struct timer timer;
    struct list asked; // trace_now::link
    struct list ready; // traces::ready
};

/* A load and a write live until the store has responded, even if the trace is freed. */
struct trace_load {
    struct store_load load;
    struct trace *trace; /* NULL: the gateway stops */
    struct list link;    // traces::loads
};

struct trace_write {
    struct document_write write;
    struct trace *trace;        /* NULL: the gateway stops */
    struct list link;           // traces::writes
    struct trace_counts counts; /* the counts after the commit */
    int64_t pieces;
    struct change changes[1 + PIECES_MAX]; /* the counts, and each piece */
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

/* ---- memory of projects ---- */

static struct slice memory_key(const void *value)
{
    const struct memory *memory = value;
    return (struct slice){ (const char *)&memory->project, sizeof(memory->project) };
}

static struct memory *memory_of(struct traces *traces, const struct project *project)
{
    struct slice key = { (const char *)&project, sizeof(project) };
    struct memory *memory = table_find(&traces->memories, key);
    if (memory)
        return memory;
    memory = mem_new(struct memory);
    memory->project = project;
    memory->quota = (struct quota){ .limit = TRACES_BYTES_MAX / PROJECTS_SHARE,
                                    .outer = &traces->quota };
    memory->branches = (struct quota){ .limit = memory->quota.limit / BRANCHES_PART,
                                       .outer = &memory->quota };
    table_insert(&traces->memories, memory);
    return memory;
}

static void memory_use(struct trace *trace)
{
    struct traces *traces = trace->traces;
    const struct account *account =
        accounts_by_number(traces->accounts, trace->env->number);
    bool is_branch = account && account->type == ENVIRONMENT_PREVIEW;
    trace->memory = memory_of(traces, account ? account->project : NULL);
    trace->memory->traces++;
    trace->quota = is_branch ? &trace->memory->branches : &trace->memory->quota;
}

static void memory_leave(struct traces *traces, struct memory *memory)
{
    if (--memory->traces)
        return;
    table_remove(&traces->memories, memory_key(memory));
    free(memory);
}

/* ---- the events of one run ---- */

static void drop_events(struct trace *trace, struct spans *events)
{
    for (size_t i = 0; i < events->count; i++)
        quota_release(trace->quota, events->events[i].json->len);
    spans_finish(events);
}

/* Frees a trace that is no longer in the table. No request and no store operation may be
 * pending. */
static void trace_free(struct trace *trace)
{
    struct traces *traces = trace->traces;
    timers_clear(loop_timers(loop_of(traces)), &trace->timer);
    drop_events(trace, &trace->pending);
    drop_events(trace, &trace->writing);
    memory_leave(traces, trace->memory);
    environment_release(trace->env);
    free(trace);
}

static void set_timer(struct trace *trace)
{
    struct loop *loop = loop_of(trace->traces);
    int64_t left = trace->write_at - loop_now_ms(loop);
    if (trace->loading || trace->is_writing)
        timers_clear(loop_timers(loop), &trace->timer);
    else
        loop_set_timer(loop, &trace->timer, trace->traces->kind,
                       !trace->dirty ? IDLE_MS
                       : left > 0    ? left
                                     : 0);
}

static void count_loss(struct trace *trace, enum trace_loss why, size_t count)
{
    trace->counts.lost[why] += (int64_t)count;
    trace->dirty = true;
    traces_drop(count);
}

/* Returns false for a late beginning of a span and for a repetition. */
static bool is_new(const struct trace *trace, const struct trace_event *event)
{
    const struct trace_event *known = spans_find(&trace->pending, event->span);
    return !known || (known->partial && !event->partial);
}

/* Adds an event to the pending ones. Takes ownership of its text. */
static void keep(struct trace *trace, struct trace_event *event)
{
    size_t len = event->json->len;
    if (!is_new(trace, event)) {
        bytes_unref(event->json);
    } else if (!trace_limits_allow(&trace->traces->limits, &trace->counts, event)) {
        bytes_unref(event->json);
        count_loss(trace, LOSS_LIMIT, 1);
    } else {
        const struct trace_event *known = spans_find(&trace->pending, event->span);
        size_t gone = known ? known->json->len : 0;
        trace_event_count(&trace->counts, event);
        trace->counts.bytes -= (int64_t)gone;
        quota_release(trace->quota, gone);
        quota_take(trace->quota, len);
        spans_merge(&trace->pending, event);
        trace->dirty = true;
    }
}

/* ---- to the store ---- */

/* Makes the events of a failed commit pending again, before those that have arrived
 * since. */
static void take_back(struct trace *trace)
{
    struct spans since = trace->pending;
    trace->pending = trace->writing;
    trace->writing = (struct spans){ 0 };
    for (size_t i = 0; i < since.count; i++) {
        const struct trace_event *known = spans_find(&trace->pending, since.events[i].span);
        if (known)
            quota_release(trace->quota,
                          known->partial ? known->json->len : since.events[i].json->len);
        spans_merge(&trace->pending, &since.events[i]);
        since.events[i].json = NULL;
    }
    spans_finish(&since);
}

static void load_counts(struct trace *trace);
static void write_now(struct trace *trace);

static void commit_pieces(struct trace *trace, const struct trace_write *write)
{
    struct traces *traces = trace->traces;
    int64_t before = trace->stored.bytes;
    drop_events(trace, &trace->writing);
    trace->counts.pieces = write->counts.pieces;
    trace->stored = write->counts;
    trace->version++;
    if (traces->watcher.stored)
        traces->watcher.stored(traces->watcher.owner, trace->env,
                               trace->stored.bytes - before);
}

static void on_written(struct document_write *done, enum err status)
{
    struct trace_write *write = container_of(done, struct trace_write, write);
    struct trace *trace = write->trace;
    list_remove(&write->link);
    if (trace && !status)
        commit_pieces(trace, write);
    free(write);
    if (!trace)
        return;
    bool is_long = trace->is_long;
    trace->is_writing = false;
    trace->failed = status != OK;
    if (status) {
        take_back(trace);
        trace->dirty = true;
    }
    trace->write_at = loop_now_ms(loop_of(trace->traces)) + (status ? RETRY_MS : WRITE_MS);
    if (status == ERR_CONFLICT)
        load_counts(trace);
    else if (!status && is_long)
        write_now(trace); /* the rest of the pending events */
    else
        set_timer(trace);
}

static struct change change_of(const struct trace *trace, enum document_kind kind,
                               const char *name, struct bytes *body, uint32_t expected)
{
    return (struct change){ .kind = CHANGE_DOCUMENT,
                            .env = trace->env->number,
                            .expected = expected,
                            .document = { .kind = kind,
                                          .env = trace->env->number,
                                          .name = bytes_create(slice_of(name)),
                                          .body = body } };
}

/* Returns how many of the pending events go into the next commit: at least one if there are
 * any. */
static size_t choose_count(const struct spans *events)
{
    size_t count = 0, bytes = 0;
    while (count < events->count && bytes < WRITE_BYTES)
        bytes += events->events[count++].json->len;
    return count;
}

static struct trace_write *write_create(struct trace *trace)
{
    struct trace_write *write = mem_new(struct trace_write);
    const struct spans *events = &trace->writing;
    char name[ID_MAX];
    size_t from = 0;
    while (from < events->count) {
        trace_piece_name(id_of(trace), trace->counts.pieces + 1 + write->pieces, name);
        write->changes[++write->pieces] =
            change_of(trace, DOC_TRACE_PIECE, name, trace_events_write(events, &from), 0);
    }
    snprintf(name, sizeof(name), "%.*s", SLICE_ARG(id_of(trace)));
    write->counts = trace->counts;
    write->counts.pieces += write->pieces;
    write->changes[0] = change_of(trace, DOC_TRACE, name,
                                  trace_counts_write(&write->counts), trace->version);
    return write;
}

static void write_now(struct trace *trace)
{
    spans_split(&trace->pending, choose_count(&trace->pending), &trace->writing);
    struct trace_write *write = write_create(trace);
    trace->dirty = trace->is_long = trace->pending.count > 0;
    trace->is_writing = true;
    write->trace = trace;
    list_append(&trace->traces->writes, &write->link);
    documents_write_begin(trace->traces->engine, write->changes, (size_t)write->pieces + 1,
                          &write->write, on_written);
    set_timer(trace);
}

static void on_time(struct timer *timer)
{
    struct trace *trace = container_of(timer, struct trace, timer);
    if (trace->dirty)
        write_now(trace);
    else if (!list_empty(&trace->asked))
        set_timer(trace);
    else
        trace_free(table_remove(&trace->traces->table, slice_of(trace->key)));
}

/* ---- from the store ---- */

/* Drops pending events: the document was removed together with its run. */
static void forget_pending(struct trace *trace)
{
    traces_drop(trace->pending.count);
    drop_events(trace, &trace->pending);
    trace->dirty = false;
}

/* Sets the counts to those of the document, and adds losses that it does not contain. */
static void set_counts(struct trace *trace, const struct document *document)
{
    struct trace_counts known = { 0 };
    trace->version = document->version;
    trace_counts_read(&known, bytes_slice(document->body));
    for (size_t i = 0; i < LOSS_KINDS; i++)
        trace->counts.lost[i] =
            known.lost[i] + trace->counts.lost[i] - trace->stored.lost[i];
    memcpy(known.lost, trace->counts.lost, sizeof(known.lost));
    trace->counts = known;
    trace_counts_read(&trace->stored, bytes_slice(document->body));
}

static void keep_all(struct trace *trace, struct spans *events)
{
    for (size_t i = 0; i < events->count; i++)
        keep(trace, &events->events[i]);
    events->count = 0;
    spans_finish(events);
}

/* Takes the counts of the document. If an older gateway wrote it, its events become
 * pending, but need not be written. */
static void take_document(struct trace *trace, const struct document *document)
{
    struct spans before = { 0 }, came = trace->pending;
    bool dirty = trace->dirty;
    trace->pending = (struct spans){ 0 };
    for (size_t i = 0; i < came.count; i++)
        quota_release(trace->quota, came.events[i].json->len);
    set_counts(trace, document);
    trace_events_read(bytes_slice(document->body), &before);
    keep_all(trace, &before);
    keep_all(trace, &came);
    trace->dirty = dirty;
}

/* Makes the next flush answer the trace's requests. May be called repeatedly. */
static void make_ready(struct trace *trace)
{
    struct traces *traces = trace->traces;
    if (list_empty(&trace->ready))
        list_append(&traces->ready, &trace->ready);
    loop_wake(loop_of(traces), &traces->flusher);
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct trace_load *load = container_of(read, struct trace_load, load.read);
    struct trace *trace = load->trace;
    list_remove(&load->link);
    bytes_unref(load->load.name);
    if (trace) {
        trace->loading = false;
        trace->failed = status != STORE_OK && status != STORE_MISSING;
        if (status == STORE_OK)
            take_document(trace, &load->load.document);
        else if (status == STORE_MISSING && trace->version)
            forget_pending(trace);
        if (!list_empty(&trace->asked))
            make_ready(trace);
        set_timer(trace);
    }
    if (status == STORE_OK)
        document_finish(&load->load.document);
    free(load);
}

static void load_counts(struct trace *trace)
{
    struct trace_load *load = mem_new(struct trace_load);
    struct store *store = engine_store(trace->traces->engine);
    trace->loading = true;
    set_timer(trace);
    load->trace = trace;
    load->load = (struct store_load){ .read = { READ_LOAD, trace->env->number, on_loaded },
                                      .is_document = true,
                                      .kind = DOC_TRACE,
                                      .name = bytes_create(id_of(trace)) };
    list_append(&trace->traces->loads, &load->link);
    store->ops->read(store, &load->load.read);
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
    memory_use(trace);
    environment_hold(env);
    trace->write_at = loop_now_ms(loop_of(traces)) + WRITE_MS;
    list_init(&trace->asked);
    list_init(&trace->ready);
    table_insert(&traces->table, trace);
    load_counts(trace);
    return trace;
}

void traces_add(struct traces *traces, struct environment *env, struct slice run_id,
                struct trace_event *event)
{
    struct trace *trace = use(traces, env, run_id);
    if (quota_has(trace->quota, event->json->len)) {
        keep(trace, event);
        metric_add(M_TRACE_EVENTS, 1);
    } else {
        bytes_clear(&event->json);
        count_loss(trace, LOSS_MEMORY, 1);
    }
    set_timer(trace);
}

void traces_lose(struct traces *traces, struct environment *env, struct slice run_id,
                 enum trace_loss why, size_t count)
{
    struct trace *trace = use(traces, env, run_id);
    count_loss(trace, why, count);
    set_timer(trace);
}

void traces_warn(struct traces *traces, struct environment *env, struct slice run_id,
                 unsigned attempt, const char *text)
{
    struct trace_event event =
        trace_event_warning(loop_wall_ms(loop_of(traces)), attempt, text);
    traces_add(traces, env, run_id, &event);
}

bool traces_have(const struct traces *traces, struct environment *env, struct slice run_id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, run_id, key);
    return table_find(&traces->table, slice_of(key));
}

/* ---- for readers ---- */

/* Answers the oldest request. A run may have 10,000 pending events, so each answer is a
 * unit of work. */
static void answer_one(struct trace *trace)
{
    struct trace_now *now = container_of(list_take(&trace->asked), struct trace_now, link);
    now->counts = trace->counts;
    spans_merge_all(&now->events, &trace->writing);
    spans_merge_all(&now->events, &trace->pending);
    now->done(now, trace->failed && !trace->version ? ERR_STORE : OK);
    if (list_empty(&trace->asked))
        set_timer(trace);
    else
        make_ready(trace);
}

static bool flush(struct flusher *flusher)
{
    struct traces *traces = container_of(flusher, struct traces, flusher);
    struct timeslice timeslice = loop_timeslice(loop_of(traces));
    while (!list_empty(&traces->ready) && timeslice_left(&timeslice))
        answer_one(container_of(list_take(&traces->ready), struct trace, ready));
    return !list_empty(&traces->ready);
}

void trace_now_begin(struct traces *traces, struct environment *env, struct slice run_id,
                     struct trace_now *now,
                     void (*done)(struct trace_now *now, enum err status))
{
    struct trace *trace = use(traces, env, run_id);
    *now = (struct trace_now){ .done = done };
    list_append(&trace->asked, &now->link);
    if (!trace->loading)
        make_ready(trace);
}

/* ---- all traces ---- */

struct traces *traces_create(struct engine *engine, struct accounts *accounts,
                             const struct trace_limits *limits)
{
    struct traces *traces = mem_new(struct traces);
    traces->engine = engine;
    traces->accounts = accounts;
    traces->limits = *limits;
    traces->quota = (struct quota){ .limit = TRACES_BYTES_MAX };
    table_init(&traces->table, trace_key);
    table_init(&traces->memories, memory_key);
    list_init(&traces->ready);
    list_init(&traces->loads);
    list_init(&traces->writes);
    traces->flusher = (struct flusher){ .fn = flush };
    loop_add_flusher(loop_of(traces), &traces->flusher);
    traces->kind = timers_kind(loop_timers(loop_of(traces)), on_time);
    return traces;
}

void traces_watch(struct traces *traces, const struct traces_watcher *watcher)
{
    traces->watcher = watcher ? *watcher : (struct traces_watcher){ 0 };
}

bool traces_is_full(const struct traces *traces, const struct environment *env)
{
    return traces->watcher.is_full && traces->watcher.is_full(traces->watcher.owner, env);
}

static void write_if_dirty(struct trace *trace)
{
    if (trace->dirty && !trace->is_writing && !trace->loading)
        write_now(trace);
}

void traces_write_all(struct traces *traces)
{
    size_t at = 0;
    for (struct trace *trace; (trace = table_next(&traces->table, &at));)
        write_if_dirty(trace);
}

bool traces_write_some(struct traces *traces, size_t *at, struct timeslice *timeslice)
{
    while (timeslice_left(timeslice)) {
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
    table_finish(&traces->memories);
    free(traces);
}
