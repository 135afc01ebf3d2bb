/* trace_shares.c - removes traces of projects that keep too many bytes.
 *
 *   counting: the documents of all its traces, page by page, environment after environment
 *   trimming: again, where an environment exceeds its goal, oldest run first:
 *             ended runs whose trace is not in memory ─► pieces removed, the highest
 *             first; each commit writes the remaining counts into the document
 *
 * One project is swept at a time. Only a sweep knows how many bytes the traces of an
 * environment have. Until the first one, the bound is the total that the environment
 * stores, which the store knows. Most projects are never swept.
 *
 * A full environment stores nothing, so no commit begins a sweep of it: a timer does. */
#include "api/telemetry/trace_shares.h"

#include "accounts/accounts.h"
#include "api/telemetry/traces.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/slots.h"
#include "core/engine/engine.h"

enum {
    PAGE_DOCUMENTS = 500,
    PAGE_BYTES = 128 * 1024,
    PIECES_AT_ONCE = 100,
    UNKNOWN = -1,
    AGAIN_PART = 64, /* repeat a sweep after this part of the limit was written */
    AGAIN_MS = 5000, /* and this long after a sweep that left an environment full */
};

/* The known bytes of an environment or a project; exact at its last sweep. */
struct bound {
    int64_t counted; /* UNKNOWN: never */
    int64_t written; /* bytes since the last sweep began */
    bool full;       /* used for environments only */
    bool warned;     /* a log line has reported that it is full */
};

struct holder {
    const struct project *project; /* the key */
    struct bound bound;
    bool waiting;
    struct list link; // trace_shares::waiting
};

struct share_sweep {
    struct trace_shares *shares; /* NULL: the gateway stops */
    struct holder *holder;
    struct trace_part *parts;
    size_t count, at;   /* parts */
    int64_t before_all; /* like trace_part::before, for the holder */
    bool trims;         /* false: it still counts */
    struct store_scan scan;
    char from[ID_MAX];
    size_t next;                /* index of the next document of the page */
    struct trace_counts counts; /* of the trace being removed */
    uint32_t version;           /* of its document */
    int64_t before;             /* bytes that the trace had */
    struct document_write write;
    struct change changes[1 + PIECES_AT_ONCE];
};

struct trace_shares {
    struct engine *engine;
    struct accounts *accounts;
    struct traces *traces;
    struct trace_share_limits limits;
    struct table holders;
    struct slots environments; /* struct bound */
    struct list waiting;       // holder::link
    struct share_sweep *sweep; /* NULL: none */
    struct timer timer;        /* armed while an environment is full */
    uint32_t timer_kind;
    bool stopped;
};

static void next_sweep(struct trace_shares *shares);
static void scan_page(struct share_sweep *sweep);
static void trim_page(struct share_sweep *sweep);

/* ---- known bytes ---- */

static struct slice holder_key(const void *value)
{
    const struct holder *holder = value;
    return (struct slice){ (const char *)&holder->project, sizeof(holder->project) };
}

static struct holder *holder_of(struct trace_shares *shares, const struct project *project)
{
    struct slice key = { (const char *)&project, sizeof(project) };
    struct holder *holder = table_find(&shares->holders, key);
    if (holder)
        return holder;
    holder = mem_new(struct holder);
    holder->project = project;
    holder->bound.counted = UNKNOWN;
    list_init(&holder->link);
    table_insert(&shares->holders, holder);
    return holder;
}

static struct bound *bound_of(struct trace_shares *shares, uint32_t env)
{
    struct bound **bound = (struct bound **)slots_at(&shares->environments, env);
    if (!*bound) {
        *bound = mem_new(struct bound);
        (*bound)->counted = UNKNOWN;
    }
    return *bound;
}

/* Returns true if a sweep is due. A sweep cannot remove logs of unfinished runs, so one
 * that left more than the limit is not repeated for every commit. */
static bool may_exceed(const struct bound *bound, int64_t stored, int64_t limit)
{
    if (!limit || stored <= limit)
        return false;
    return bound->counted == UNKNOWN ||
           (bound->counted + bound->written > limit && bound->written > limit / AGAIN_PART);
}

static void ask_for_sweep(struct trace_shares *shares, struct holder *holder)
{
    if (shares->stopped || holder->waiting ||
        (shares->sweep && shares->sweep->holder == holder))
        return;
    holder->waiting = true;
    list_append(&shares->waiting, &holder->link);
    next_sweep(shares);
}

static void on_stored(void *owner, struct environment *env, int64_t bytes)
{
    struct trace_shares *shares = owner;
    struct account *account = accounts_by_number(shares->accounts, env->number);
    if (!account || shares->stopped)
        return;
    struct store *store = engine_store(shares->engine);
    struct holder *holder = holder_of(shares, account->project);
    struct bound *bound = bound_of(shares, env->number);
    int64_t all = (int64_t)account->project->stored.used;
    bound->written += bytes;
    holder->bound.written += bytes;
    if (!(may_exceed(bound, store->ops->position(store, env->number).stored,
                     shares->limits.environment) ||
          may_exceed(&holder->bound, all, shares->limits.project)))
        return;
    ask_for_sweep(shares, holder);
}

static bool is_full(const void *owner, const struct environment *env)
{
    const struct trace_shares *shares = owner;
    const struct bound *bound = slots_get(&shares->environments, env->number);
    return bound && bound->full;
}

/* Arms the timer unless it is armed: sweeps of one project must not delay those of
 * others. */
static void set_timer(struct trace_shares *shares)
{
    if (!shares->timer.place)
        loop_set_timer(engine_loop(shares->engine), &shares->timer, shares->timer_kind,
                       AGAIN_MS);
}

/* Requests sweeps of full environments. Arms the timer again, because a sweep that fails
 * does not. */
static void sweep_full_ones(struct timer *timer)
{
    struct trace_shares *shares = container_of(timer, struct trace_shares, timer);
    for (struct account *a = NULL; (a = accounts_next(shares->accounts, a));) {
        struct bound *bound = slots_get(&shares->environments, a->number);
        if (!bound || !bound->full || a->forgotten)
            continue;
        ask_for_sweep(shares, holder_of(shares, a->project));
        set_timer(shares);
    }
}

/* ---- a sweep ---- */

static void sweep_free(struct share_sweep *sweep)
{
    struct trace_shares *shares = sweep->shares;
    free(sweep->parts);
    free(sweep);
    if (!shares)
        return;
    shares->sweep = NULL;
    next_sweep(shares);
}

static bool is_stopped(const struct share_sweep *sweep)
{
    return !sweep->shares || sweep->shares->stopped;
}

static struct trace_part *part_of(struct share_sweep *sweep)
{
    return &sweep->parts[sweep->at];
}

/* Returns the bytes of a trace. Documents of older gateways contain the events
 * themselves. */
static int64_t bytes_of(const struct document *document, struct trace_counts *counts)
{
    trace_counts_read(counts, bytes_slice(document->body));
    if (counts->pieces || counts->removed_at)
        return counts->pieces ? counts->bytes : 0;
    struct slice events = scan_member(bytes_slice(document->body), "events");
    return events.ptr ? (int64_t)document->body->len : 0;
}

static void begin_part(struct share_sweep *sweep)
{
    sweep->from[0] = '\0';
    scan_page(sweep);
}

static int64_t sum_of(const struct trace_part *parts, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += parts[i].bytes;
    return sum;
}

static void note_full(struct trace_shares *shares, struct bound *bound, uint32_t env)
{
    struct environment *environment = engine_environment(shares->engine, env);
    set_timer(shares);
    if (bound->warned || !environment)
        return;
    bound->warned = true;
    log_warn("logs of unfinished runs exceed their share; dropping new ones", "environment",
             environment->id, "bytes", log_number(bound->counted), NULL);
}

/* Stores the results of a sweep. Bytes written during the sweep may be missing in its
 * count, so they stay in written. If the project exceeds its limit, only environments above
 * the common level are full, so that one with few logs is not silenced by the others. */
static void note_counts(struct share_sweep *sweep)
{
    struct trace_shares *shares = sweep->shares;
    const struct trace_share_limits *limits = &shares->limits;
    int64_t sum = sum_of(sweep->parts, sweep->count);
    bool is_over = limits->project && sum > limits->project;
    for (size_t i = 0; i < sweep->count; i++) {
        const struct trace_part *part = &sweep->parts[i];
        struct bound *bound = bound_of(shares, part->env);
        bound->counted = part->bytes;
        bound->written -= part->before;
        bound->full = (limits->environment && part->bytes > limits->environment) ||
                      (is_over && part->bytes > part->goal);
        if (bound->full)
            note_full(shares, bound, part->env);
    }
    sweep->holder->bound.counted = sum;
    sweep->holder->bound.written -= sweep->before_all;
}

static void next_part(struct share_sweep *sweep)
{
    sweep->at++;
    if (sweep->at == sweep->count && !sweep->trims) {
        trace_shares_set_goals(sweep->parts, sweep->count, &sweep->shares->limits);
        sweep->trims = true;
        sweep->at = 0;
    }
    while (sweep->trims && sweep->at < sweep->count &&
           part_of(sweep)->bytes <= part_of(sweep)->goal)
        sweep->at++;
    if (sweep->at < sweep->count) {
        begin_part(sweep);
        return;
    }
    note_counts(sweep);
    sweep_free(sweep);
}

static void end_page(struct share_sweep *sweep)
{
    bool more = sweep->scan.more && sweep->scan.count;
    store_read_finish(&sweep->scan.read);
    if (more && !(sweep->trims && part_of(sweep)->bytes <= part_of(sweep)->goal))
        scan_page(sweep);
    else
        next_part(sweep);
}

static void count_page(struct share_sweep *sweep)
{
    struct trace_counts counts;
    for (size_t i = 0; i < sweep->scan.count; i++)
        part_of(sweep)->bytes += bytes_of(&sweep->scan.documents[i], &counts);
    end_page(sweep);
}

static void on_page(struct store_read *read, enum store_status status)
{
    struct share_sweep *sweep = container_of(read, struct share_sweep, scan.read);
    const struct store_scan *scan = &sweep->scan;
    if (status || is_stopped(sweep)) {
        store_read_finish(&sweep->scan.read);
        sweep_free(sweep);
        return;
    }
    if (scan->count)
        snprintf(sweep->from, sizeof(sweep->from), "%s",
                 scan->documents[scan->count - 1].name->data);
    sweep->next = 0;
    if (sweep->trims)
        trim_page(sweep);
    else
        count_page(sweep);
}

static void scan_page(struct share_sweep *sweep)
{
    struct store *store = engine_store(sweep->shares->engine);
    sweep->scan = (struct store_scan){ .read = { READ_SCAN, part_of(sweep)->env, on_page },
                                       .kind = DOC_TRACE,
                                       .limit = PAGE_DOCUMENTS,
                                       .byte_limit = PAGE_BYTES };
    memcpy(sweep->scan.from, sweep->from, sizeof(sweep->from));
    store->ops->read(store, &sweep->scan.read);
}

/* ---- the pieces of one run ---- */

static struct slice run_of(const struct share_sweep *sweep)
{
    return bytes_slice(sweep->scan.documents[sweep->next].name);
}

static struct change change_of(const struct share_sweep *sweep, enum document_kind kind,
                               const char *name, struct bytes *body, uint32_t expected)
{
    uint32_t env = sweep->parts[sweep->at].env;
    return (struct change){ .kind = CHANGE_DOCUMENT,
                            .env = env,
                            .expected = expected,
                            .document = { .kind = kind,
                                          .env = env,
                                          .name = bytes_create(slice_of(name)),
                                          .body = body } };
}

static void on_removed(struct document_write *write, enum err status);

/* Removes the next pieces. A piece is written once, so its version is 1. */
static void remove_pieces(struct share_sweep *sweep)
{
    struct trace_counts *counts = &sweep->counts;
    char name[ID_MAX];
    size_t count = 1;
    for (; counts->pieces && count <= PIECES_AT_ONCE; counts->pieces--) {
        trace_piece_name(run_of(sweep), counts->pieces, name);
        sweep->changes[count++] = change_of(sweep, DOC_TRACE_PIECE, name, NULL, 1);
    }
    snprintf(name, sizeof(name), "%.*s", SLICE_ARG(run_of(sweep)));
    sweep->changes[0] =
        change_of(sweep, DOC_TRACE, name, trace_counts_write(counts), sweep->version++);
    sweep->write = (struct document_write){ 0 };
    documents_write_begin(sweep->shares->engine, sweep->changes, count, &sweep->write,
                          on_removed);
}

/* Continues with the next pieces or the next run. On an error, such as for a trace that was
 * written meanwhile, leaves the trace alone. */
static void on_removed(struct document_write *write, enum err status)
{
    struct share_sweep *sweep = container_of(write, struct share_sweep, write);
    if (is_stopped(sweep)) {
        store_read_finish(&sweep->scan.read);
        sweep_free(sweep);
        return;
    }
    if (!status && sweep->counts.pieces) {
        remove_pieces(sweep);
        return;
    }
    if (!status) {
        part_of(sweep)->bytes -= sweep->before;
        metric_add(M_TRACE_REMOVED, (uint64_t)sweep->counts.removed);
    }
    sweep->next++;
    trim_page(sweep);
}

static bool has_ended(const struct share_sweep *sweep)
{
    struct environment *env =
        engine_environment(sweep->shares->engine, sweep->parts[sweep->at].env);
    const struct tracked *run = env ? environment_find(env, run_of(sweep)) : NULL;
    return (!run || run_is_final(&run->run)) &&
           !(env && traces_have(sweep->shares->traces, env, run_of(sweep)));
}

static int64_t events_in(const struct document *document)
{
    struct scan_members all =
        scan_members(scan_member(bytes_slice(document->body), "events"));
    struct slice one;
    int64_t count = 0;
    while (scan_next_element(&all, &one))
        count++;
    return count;
}

static void remove_trace(struct share_sweep *sweep)
{
    const struct document *document = &sweep->scan.documents[sweep->next];
    struct trace_counts *counts = &sweep->counts;
    counts->removed += trace_counts_rows(counts) + events_in(document);
    counts->removed_at = loop_wall_ms(engine_loop(sweep->shares->engine));
    counts->logs = counts->begun = counts->ended = counts->bytes = 0;
    sweep->version = document->version;
    remove_pieces(sweep);
}

static void trim_page(struct share_sweep *sweep)
{
    for (; sweep->next < sweep->scan.count; sweep->next++) {
        if (part_of(sweep)->bytes <= part_of(sweep)->goal)
            break;
        sweep->before = bytes_of(&sweep->scan.documents[sweep->next], &sweep->counts);
        if ((sweep->before || sweep->counts.pieces) && has_ended(sweep)) {
            remove_trace(sweep);
            return;
        }
    }
    end_page(sweep);
}

/* ---- begin and end ---- */

static int by_group(const void *a, const void *b)
{
    const struct trace_part *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->env > y->env) - (x->env < y->env);
}

static void add_parts(struct share_sweep *sweep)
{
    struct accounts *accounts = sweep->shares->accounts;
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        if (a->project == sweep->holder->project && !a->forgotten) {
            sweep->parts =
                mem_resize(sweep->parts, (sweep->count + 1) * sizeof(struct trace_part));
            sweep->parts[sweep->count++] = (struct trace_part){
                .env = a->number,
                .group = account_of_keys(a)->number,
                .before = bound_of(sweep->shares, a->number)->written,
            };
        }
    if (sweep->count)
        qsort(sweep->parts, sweep->count, sizeof(sweep->parts[0]), by_group);
    sweep->before_all = sweep->holder->bound.written;
}

static void next_sweep(struct trace_shares *shares)
{
    if (shares->sweep || shares->stopped || list_empty(&shares->waiting))
        return;
    struct share_sweep *sweep = mem_new(struct share_sweep);
    sweep->shares = shares;
    sweep->holder = container_of(list_take(&shares->waiting), struct holder, link);
    sweep->holder->waiting = false;
    shares->sweep = sweep;
    add_parts(sweep);
    if (sweep->count)
        begin_part(sweep);
    else
        sweep_free(sweep);
}

struct trace_shares *trace_shares_create(struct engine *engine, struct accounts *accounts,
                                         struct traces *traces,
                                         const struct trace_share_limits *limits)
{
    struct trace_shares *shares = mem_new(struct trace_shares);
    shares->engine = engine;
    shares->accounts = accounts;
    shares->traces = traces;
    shares->limits = *limits;
    table_init(&shares->holders, holder_key);
    list_init(&shares->waiting);
    shares->timer_kind = timers_kind(loop_timers(engine_loop(engine)), sweep_full_ones);
    traces_watch(traces, &(struct traces_watcher){
                             .stored = on_stored, .is_full = is_full, .owner = shares });
    return shares;
}

void trace_shares_stop(struct trace_shares *shares)
{
    shares->stopped = true;
}

void trace_shares_destroy(struct trace_shares *shares)
{
    size_t at = 0;
    uint32_t number = 0;
    if (!shares)
        return;
    if (shares->sweep)
        shares->sweep->shares = NULL;
    traces_watch(shares->traces, NULL);
    timers_clear(loop_timers(engine_loop(shares->engine)), &shares->timer);
    for (struct holder *holder; (holder = table_next(&shares->holders, &at));)
        free(holder);
    table_finish(&shares->holders);
    for (void *bound; (bound = slots_next(&shares->environments, &number));)
        free(bound);
    slots_finish(&shares->environments);
    free(shares);
}

/* ---- the level ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int64_t trace_shares_level(int64_t *have, size_t count, int64_t target)
{
    qsort(have, count, sizeof(have[0]), by_value);
    for (size_t i = 0; i < count; i++) {
        int64_t each = target / (int64_t)(count - i);
        if (have[i] >= each)
            return each;
        target -= have[i];
    }
    return INT64_MAX;
}

/* ---- the goals ---- */

/* Returns the count of parts from the first on that are in its group. */
static size_t group_size(const struct trace_part *parts, size_t count)
{
    size_t size = 1;
    while (size < count && parts[size].group == parts[0].group)
        size++;
    return size;
}

/* Returns the level for groups at which the project is within 7/8 of its limit. */
static int64_t project_level(const struct trace_part *parts, size_t count, int64_t limit)
{
    if (!limit || sum_of(parts, count) <= limit)
        return INT64_MAX;
    int64_t *have = mem_new_array(int64_t, count);
    size_t groups = 0;
    for (size_t at = 0, size; at < count; at += size) {
        size = group_size(parts + at, count - at);
        have[groups++] = sum_of(parts + at, size);
    }
    int64_t level = trace_shares_level(have, groups, limit / 8 * 7);
    free(have);
    return level;
}

/* Lowers the goals of a group so that it keeps at most that level. */
static void lower_goals(struct trace_part *group, size_t size, int64_t level)
{
    if (sum_of(group, size) <= level)
        return;
    int64_t *have = mem_new_array(int64_t, size);
    for (size_t i = 0; i < size; i++)
        have[i] = group[i].bytes;
    int64_t each = trace_shares_level(have, size, level);
    for (size_t i = 0; i < size; i++)
        if (each < group[i].goal)
            group[i].goal = each;
    free(have);
}

void trace_shares_set_goals(struct trace_part *parts, size_t count,
                            const struct trace_share_limits *limits)
{
    int64_t limit = limits->environment,
            level = project_level(parts, count, limits->project);
    for (size_t i = 0; i < count; i++)
        parts[i].goal = limit && parts[i].bytes > limit ? limit / 8 * 7 : INT64_MAX;
    for (size_t at = 0, size; at < count; at += size) {
        size = group_size(parts + at, count - at);
        lower_goals(parts + at, size, level);
    }
}
