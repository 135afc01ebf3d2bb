/* trace_show.c - the routes that return the trace of a run: as a list, a tree, or a page.
 *
 *   the run (its own span is made here) ─┬─ spans without a known parent
 *                                        └─ logs and spans below those
 *
 * A response may have megabytes: it is written in parts, in time slices. An event's parent
 * comes before it in the order of starts, so the tree cannot have cycles. An event that has
 * begun but not ended is partial until the run ends. */
#include "api/request/hidden.h"
#include "api/request/paging.h"
#include "api/request/quotas.h"
#include "api/request/route.h"
#include "api/telemetry/trace_look.h"
#include "api/telemetry/trace_node.h"
#include "base/json/members.h"
#include "base/mem.h"

enum {
    DEPTH_MAX = 64,
    PAGE_MAX = 10000,
    NS_PER_MS = 1000000,
    NODES_AT_ONCE = 16, /* nodes between two checks of the clock */
    PART_BYTES = 256 * 1024,
};

enum what { WHAT_EVENTS, WHAT_TRACE, WHAT_SPAN, WHAT_PAGE };

struct showing {
    struct api_call *call;
    enum what what;
    struct run_read read;
    struct run run;
    bool no_contents; /* the token may not see payload, output or error */
    bool is_lost;     /* the run's last worker stopped responding */
    struct trace_look look;
    struct trace_node *nodes; /* one per event of the look */
    int count, made;          /* number of nodes; of those that were read */
    struct deferred deferred;
    /* the response; after it the events are freed, in time slices */
    bool begun, is_written;
    int at,
        /* the next node, or span of a page; TRACE_NODE_NONE or end after the last one */
        end;
    bool is_first;      /* among its siblings */
    int64_t from, size; /* of a page */
    struct buf out;
    struct bytes **parts; /* before out */
    size_t part_count;
};

/* ---- members ---- */

/* Adds an id derived from the run's id, so it never changes. */
static void add_hex(struct buf *out, const struct run *run, size_t chars)
{
    size_t len = strlen(run->id), count = chars / 2;
    for (size_t i = len > count ? len - count : 0; i < len; i++)
        buf_print(out, "%02x", (unsigned char)run->id[i]);
}

static bool is_failed(const struct run *run)
{
    return run_is_final(run) && run->status != RUN_COMPLETED && run->status != RUN_CANCELED;
}

static void add_state(struct buf *out, const struct run *run, bool error, bool partial)
{
    members_add_bool(out, "isError", error);
    members_add_bool(out, "isPartial", partial && !run_is_final(run));
    members_add_bool(out, "isCancelled",
                     partial && run_is_final(run) && run->status == RUN_CANCELED);
}

/* Adds message, startTime, duration in ns (or durationMs), state and level of an event. */
static void add_facts(struct buf *out, const struct run *run, const struct trace_node *node,
                      bool in_ms)
{
    int64_t at = 0, ns = 0;
    text_to_i64(node->at, &at);
    text_to_i64(node->ns, &ns);
    members_add_json(out, "message", node->message);
    members_add_name(out, "startTime");
    buf_add_json_time(out, at);
    if (in_ms) {
        members_add_name(out, "durationMs");
        buf_add_json_double(out, (double)ns / (double)NS_PER_MS);
    } else {
        members_add_number(out, "duration", ns);
    }
    add_state(out, run, node->error, node->partial);
    members_add_json(out, "level", node->level);
    members_add_json(out, "attemptNumber", node->attempt);
}

/* Adds everything that the task and its libraries recorded: payloads, outputs, exceptions,
 * anything. */
static void add_contents(struct buf *out, const struct showing *op,
                         const struct trace_node *node)
{
    if (op->no_contents)
        return;
    members_add_json(out, "properties", node->properties);
    members_add_json(out, "events", node->events);
}

static void add_root_facts(struct buf *out, const struct run *run, bool in_ms)
{
    int64_t from = run->started_at ? run->started_at : run->created_at;
    int64_t ms = run->finished_at > from ? run->finished_at - from : 0;
    members_add_text(out, "message", bytes_slice(run->task));
    members_add_time(out, "startTime", from);
    if (in_ms)
        members_add_number(out, "durationMs", ms);
    else
        members_add_number(out, "duration", ms * NS_PER_MS);
    add_state(out, run, is_failed(run), true);
    members_add_text(out, "level", SLICE("TRACE"));
    members_add_name(out, "costInCents");
    buf_add_json_double(out, run->cost_cents);
    members_add_name(out, "baseCostInCents");
    buf_add_json_double(out, run->base_cost_cents);
}

static void add_run_facts(struct buf *out, const struct run *run)
{
    members_add_text(out, "taskSlug", bytes_slice(run->task));
    members_add_text(out, "queueName", bytes_slice(run->queue));
    members_add_text(out, "machinePreset", slice_of(machine_name(run->machine)));
    members_add_text(out, "workerVersion", bytes_slice(run->worker_version));
}

static void add_root_id(struct buf *out, const struct run *run, const char *name)
{
    members_add_name(out, name);
    buf_add_char(out, '"');
    add_hex(out, run, OTLP_SPAN_LEN);
    buf_add_char(out, '"');
}

static void add_parent(struct buf *out, const struct run *run,
                       const struct trace_node *nodes, const struct trace_node *node)
{
    if (node->above == TRACE_NODE_NONE)
        add_root_id(out, run, "parentId");
    else
        members_add_text(out, "parentId", nodes[node->above].id);
}

/* Adds the counts of missing records, and the mark of a trace that may be incomplete. */
static void add_missing(struct showing *op)
{
    trace_counts_show(&op->look.counts, &op->out);
    if (op->is_lost)
        members_add_bool(&op->out, "mayBeIncomplete", true);
}

/* Returns the index of the parent, if it comes before this event; otherwise
 * TRACE_NODE_NONE. */
static int find_above(const struct showing *op, int i)
{
    char parent[OTLP_SPAN_LEN + 1];
    snprintf(parent, sizeof(parent), "%.*s", SLICE_ARG(op->nodes[i].parent));
    const struct trace_event *event = spans_find(&op->look.spans, parent);
    if (!event || event - op->look.spans.events >= i)
        return TRACE_NODE_NONE;
    int above = (int)(event - op->look.spans.events);
    return op->nodes[above].depth < DEPTH_MAX ? above : TRACE_NODE_NONE;
}

static void make_node(struct showing *op)
{
    int i = op->made++;
    struct trace_node *node = &op->nodes[i];
    trace_node_read(node, bytes_slice(op->look.spans.events[i].json));
    node->above = find_above(op, i);
    node->depth = node->above == TRACE_NODE_NONE ? 1 : op->nodes[node->above].depth + 1;
}

/* ---- in a row ---- */

static void begin_events(struct showing *op)
{
    buf_add_text(&op->out, "{\"events\":[");
    op->end = op->count;
}

static void add_event(struct showing *op)
{
    struct buf *out = &op->out;
    const struct trace_node *node = &op->nodes[op->at];
    buf_add_text(out, op->at ? ",{" : "{");
    members_add_text(out, "runId", slice_of(op->run.id));
    members_add_text(out, "spanId", node->id);
    add_parent(out, &op->run, op->nodes, node);
    add_facts(out, &op->run, node, false);
    members_add_text(out, "taskSlug", bytes_slice(op->run.task));
    members_add_json(out, "workerVersion", node->version);
    add_contents(out, op, node);
    buf_add_char(out, '}');
    op->at++;
}

static void end_events(struct showing *op)
{
    buf_add_char(&op->out, ']');
    add_missing(op);
    buf_add_char(&op->out, '}');
}

/* ---- as a tree ---- */

/* Links the events as a tree. Returns the first one directly below the run. */
static int link_nodes(struct trace_node *nodes, int count)
{
    int first = TRACE_NODE_NONE, last = TRACE_NODE_NONE;
    for (int i = 0; i < count; i++) {
        int parent = nodes[i].above;
        int *head = parent == TRACE_NODE_NONE ? &first : &nodes[parent].first;
        int *tail = parent == TRACE_NODE_NONE ? &last : &nodes[parent].last;
        if (*tail == TRACE_NODE_NONE)
            *head = i;
        else
            nodes[*tail].next = i;
        *tail = i;
    }
    return first;
}

static void begin_tree(struct showing *op)
{
    struct buf *out = &op->out;
    op->at = link_nodes(op->nodes, op->count);
    op->end = TRACE_NODE_NONE;
    op->is_first = true;
    buf_add_text(out, "{\"trace\":{\"traceId\":\"");
    add_hex(out, &op->run, 2 * OTLP_SPAN_LEN);
    buf_add_text(out, "\",\"rootSpan\":{");
    add_root_id(out, &op->run, "id");
    members_add_text(out, "runId", slice_of(op->run.id));
    buf_add_text(out, ",\"data\":{");
    add_root_facts(out, &op->run, false);
    add_run_facts(out, &op->run);
    buf_add_text(out, ",\"events\":[]},\"children\":[");
}

/* Closes the node, and those above it whose last child it is. Returns the next node. */
static int close_node(struct showing *op, int i)
{
    for (; i != TRACE_NODE_NONE; i = op->nodes[i].above) {
        buf_add_text(&op->out, "]}");
        if (op->nodes[i].next != TRACE_NODE_NONE)
            return op->nodes[i].next;
    }
    return TRACE_NODE_NONE;
}

static void add_tree_node(struct showing *op)
{
    struct buf *out = &op->out;
    const struct trace_node *node = &op->nodes[op->at];
    buf_add_text(out, op->is_first ? "{" : ",{");
    members_add_text(out, "id", node->id);
    add_parent(out, &op->run, op->nodes, node);
    members_add_text(out, "runId", slice_of(op->run.id));
    buf_add_text(out, ",\"data\":{");
    add_facts(out, &op->run, node, false);
    add_run_facts(out, &op->run);
    add_contents(out, op, node);
    buf_add_text(out, "},\"children\":[");
    op->is_first = node->first != TRACE_NODE_NONE;
    op->at = op->is_first ? node->first : close_node(op, op->at);
}

static void end_tree(struct showing *op)
{
    buf_add_text(&op->out, "]}");
    add_missing(op);
    buf_add_text(&op->out, "}}");
}

/* ---- page by page ---- */

static void begin_page(struct showing *op)
{
    int64_t all = (int64_t)op->count + 1;
    op->at = (int)op->from;
    op->end = (int)(op->size < all - op->from ? op->from + op->size : all);
    buf_add_text(&op->out, "{\"data\":[");
}

/* Adds one span of the page: number 0 is the run, its events follow. */
static void add_page_span(struct showing *op)
{
    struct buf *out = &op->out;
    int number = op->at++;
    buf_add_text(out, number > op->from ? ",{" : "{");
    if (!number) {
        add_root_id(out, &op->run, "id");
        members_add_text(out, "runId", slice_of(op->run.id));
        add_root_facts(out, &op->run, false);
    } else {
        const struct trace_node *node = &op->nodes[number - 1];
        members_add_text(out, "id", node->id);
        add_parent(out, &op->run, op->nodes, node);
        members_add_text(out, "runId", slice_of(op->run.id));
        add_facts(out, &op->run, node, false);
    }
    buf_add_char(out, '}');
}

/* Adds the failed attempts of the page. The client marks spans below them that never ended
 * as failed. */
static void add_failures(struct buf *out, const struct showing *op)
{
    bool first = true;
    for (int64_t i = op->from ? op->from : 1; i < op->end; i++) {
        const struct trace_node *node = &op->nodes[i - 1];
        if (!node->error || !node->attempt.ptr ||
            !slice_starts(node->message, "\"Attempt "))
            continue;
        buf_add_text(out, first ? "{" : ",{");
        members_add_text(out, "spanId", node->id);
        members_add_json(out, "attemptNumber", node->attempt);
        members_add_text(out, "runId", slice_of(op->run.id));
        buf_add_char(out, '}');
        first = false;
    }
}

static void end_page(struct showing *op)
{
    struct buf *out = &op->out;
    buf_add_text(out, "],\"attemptFailures\":[");
    add_failures(out, op);
    buf_add_text(out, "],\"pagination\":{");
    if (op->end <= op->count)
        buf_print(out, "\"next\":\"%d\"", op->end);
    buf_add_char(out, '}');
    add_missing(op);
    buf_add_char(out, '}');
}

/* Reads which page of the trace is requested; none means the whole trace. */
static enum err read_page(struct showing *op)
{
    struct api_call *call = op->call;
    struct slice after_text = api_query(call, "page[after]");
    uint64_t size = PAGE_MAX, after = 0;

    if (!api_query(call, "page[size]").ptr && !after_text.ptr)
        return OK;
    if (paging_read_size(call, PAGE_MAX, &size))
        return ERR_INVALID;
    if (after_text.ptr && (text_to_u64(after_text, &after) || after > (uint64_t)op->count))
        return explain(&call->why, ERR_INVALID,
                       "page[after]: must be the pagination.next of an earlier page");
    op->what = WHAT_PAGE;
    op->from = (int64_t)after;
    op->size = (int64_t)size;
    return OK;
}

/* ---- one span ---- */

/* Returns true if the call names the span that stands for the run itself. */
static bool is_root(const struct showing *op)
{
    struct buf root = { 0 };
    add_hex(&root, &op->run, OTLP_SPAN_LEN);
    bool is_it = slice_equal(buf_slice(&root), op->call->params[1]);
    buf_finish(&root);
    return is_it;
}

static void show_root(const struct showing *op, struct buf *out)
{
    buf_add_char(out, '{');
    add_root_id(out, &op->run, "spanId");
    members_add_json(out, "parentId", SLICE("null"));
    members_add_text(out, "runId", slice_of(op->run.id));
    add_root_facts(out, &op->run, true);
    buf_add_char(out, '}');
}

static enum err show_span(struct showing *op)
{
    struct buf *out = &op->out;
    int i = 0;
    if (is_root(op)) {
        show_root(op, out);
        return OK;
    }
    while (i < op->count && !slice_equal(op->nodes[i].id, op->call->params[1]))
        i++;
    if (i == op->count)
        return explain(&op->call->why, ERR_NOT_FOUND, "Span not found");
    buf_add_char(out, '{');
    members_add_text(out, "spanId", op->nodes[i].id);
    add_parent(out, &op->run, op->nodes, &op->nodes[i]);
    members_add_text(out, "runId", slice_of(op->run.id));
    add_facts(out, &op->run, &op->nodes[i], true);
    add_contents(out, op, &op->nodes[i]);
    buf_add_char(out, '}');
    return OK;
}

/* ---- the response ---- */

struct answer_form {
    void (*begin)(struct showing *op);
    void (*add)(struct showing *op);
    void (*end)(struct showing *op);
};

static const struct answer_form forms[] = {
    [WHAT_EVENTS] = { begin_events, add_event, end_events },
    [WHAT_TRACE] = { begin_tree, add_tree_node, end_tree },
    [WHAT_PAGE] = { begin_page, add_page_span, end_page },
};

static void free_op(struct showing *op)
{
    for (size_t i = 0; i < op->part_count; i++)
        bytes_unref(op->parts[i]);
    free(op->parts);
    free(op->nodes);
    buf_finish(&op->out);
    trace_look_end(&op->look);
    run_finish(&op->run);
    free(op);
}

static void finish_part(struct showing *op)
{
    op->parts = mem_resize(op->parts, (op->part_count + 1) * sizeof(op->parts[0]));
    op->parts[op->part_count++] = buf_to_bytes(&op->out);
    quotas_hold(op->call, op->out.len);
    buf_clear(&op->out);
}

static void reply(struct showing *op, enum err status)
{
    if (!status) {
        finish_part(op);
        status = quotas_release_response(op->call);
    }
    if (status)
        api_reply_error(op->call, status);
    else
        api_reply_json_parts(op->call, 200, op->parts, op->part_count);
    free_op(op);
}

static enum err trace_show_begin(struct showing *op)
{
    enum err refused = op->what == WHAT_TRACE ? read_page(op) : OK;
    op->begun = true;
    if (refused || op->what == WHAT_SPAN)
        return refused ? refused : show_span(op);
    forms[op->what].begin(op);
    return OK;
}

/* Reads, writes or frees one more node. Returns false when done. */
static bool go_on(struct showing *op, enum err *status)
{
    if (op->made < op->count) {
        make_node(op);
        return true;
    }
    if (!op->begun) {
        *status = trace_show_begin(op);
        op->is_written = op->what == WHAT_SPAN;
        return !*status;
    }
    if (op->is_written)
        return spans_drop_one(&op->look.spans);
    if (op->at == op->end) {
        forms[op->what].end(op);
        op->is_written = true;
        return true;
    }
    forms[op->what].add(op);
    if (op->out.len >= PART_BYTES)
        finish_part(op);
    return true;
}

static void write_some(struct deferred *deferred)
{
    struct showing *op = container_of(deferred, struct showing, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    enum err status = OK;
    bool more = true;
    while (more && !op->call->x->gone && timeslice_left_every(&timeslice, NODES_AT_ONCE))
        more = go_on(op, &status);
    if (!more) {
        reply(op, status);
    } else if (op->call->x->gone) {
        api_reply_gone(op->call);
        free_op(op);
    } else {
        loop_defer(loop, &op->deferred);
    }
}

static void on_look(struct trace_look *look, enum err status)
{
    struct showing *op = container_of(look, struct showing, look);
    if (status) {
        reply(op, status);
        return;
    }
    op->count = (int)look->spans.count;
    op->nodes = mem_new_array(struct trace_node, look->spans.count);
    quotas_hold(op->call,
                (size_t)look->counts.bytes + look->spans.count * sizeof(struct trace_node));
    op->deferred.fn = write_some;
    list_init(&op->deferred.link);
    loop_defer(engine_loop(api_engine(op->call->api)), &op->deferred);
}

static bool has_lost_worker(const struct run *run)
{
    struct slice code =
        run->error ? scan_member(bytes_slice(run->error), "code") : (struct slice){ 0 };
    return run_is_final(run) && scan_type(code) == SCAN_STRING &&
           slice_starts(scan_unquoted(code), "TASK_RUN_STALLED_");
}

static void on_read(struct run_read *read, enum err status)
{
    struct showing *op = container_of(read, struct showing, read);
    struct api_call *call = op->call;
    if (!status)
        status = api_check_run_scope(call, "read", read->run);
    if (!status)
        status = quotas_check_answer(call);
    if (status) {
        reply(op, status);
        return;
    }
    run_copy(&op->run, read->run);
    op->is_lost = has_lost_worker(&op->run);
    uint32_t hidden = hidden_fields(call->identity);
    hidden_clear(hidden, &op->run);
    op->no_contents = hidden_contents(hidden);
    trace_look_begin(api_traces(call->api), call->env, slice_of(op->run.id), &op->look,
                     on_look);
}

static enum err show(struct api_call *call, enum what what)
{
    struct showing *op = mem_new(struct showing);
    op->call = call;
    op->what = what;
    call->busy = true;
    run_read_begin(call->env, call->params[0], &op->read, on_read);
    return OK;
}

static enum err events(struct api_call *call)
{
    return show(call, WHAT_EVENTS);
}

static enum err trace(struct api_call *call)
{
    return show(call, WHAT_TRACE);
}

static enum err span(struct api_call *call)
{
    return show(call, WHAT_SPAN);
}

#define RUN "/api/v1/runs/{runId}"

enum { KEY_OR_TOKEN = AUTH_KEY | AUTH_PUBLIC };

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = RUN "/events",
      .auth = KEY_OR_TOKEN, .handle = events,
      .id = "list_run_events_v1", .summary = "Spans and logs in the order of their start",
      .reply = "{events: {spanId: string, parentId: string, runId: string, message: string, startTime: string, duration: number, level: string, isError: boolean, ...}[]}" },
    { .method = HTTP_GET_, .path = RUN "/trace",
      .auth = KEY_OR_TOKEN, .handle = trace,
      .id = "retrieve_run_trace_v1",
      .summary = "Spans and logs as a tree, or page by page",
      .query = "page[size]?: string, page[after]?: string",
      .reply = "{trace?: {...}, data?: {...}[], ...}" },
    { .method = HTTP_GET_, .path = RUN "/spans/{spanId}",
      .auth = KEY_OR_TOKEN, .handle = span,
      .id = "retrieve_span_v1", .summary = "One span or log",
      .reply = "{spanId: string, parentId: string | null, runId: string, message: string, startTime: string, durationMs: number, ...}" },
    { 0 },
};
/* clang-format on */

const struct area traces_area = { .tag = "runs", .is_for_users = true, .routes = routes };
