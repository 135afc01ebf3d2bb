/* trace_show.c - what a run's trace answers: its events in a row, as a tree, page by page,
 * or one of them.
 *
 *   the run (its own span is made here) ─┬─ spans without a known parent
 *                                        └─ logs and spans below those
 *
 * A parent started before its children, so a tree made of earlier events has no circles.
 * What has begun and not ended is partial until the run is over. */
#include "base/mem.h"
#include "call/hidden.h"
#include "call/paging.h"
#include "call/route.h"
#include "telemetry/traces.h"
#include "json/members.h"

enum { DEPTH_MAX = 64, PAGE_MAX = 10000, NS_PER_MS = 1000000, NONE = -1 };

enum what { WHAT_EVENTS, WHAT_TRACE, WHAT_SPAN };

struct showing {
    struct api_call *call;
    enum what what;
    struct run_read read;
    struct run run;
    bool no_contents; /* the token does not see payload, output or error */
    struct trace_look look;
};

/* The members of an event as they stand there, found in one pass. */
struct trace_node {
    struct slice id, parent; /* without quotes */
    struct slice message, at, ns, level, attempt, version, properties, events;
    bool error, partial;
    uint64_t number, parent_number;      /* the ids again; 0: none */
    int depth, above, first, last, next; /* parent, children and sibling, by index */
};

/* ---- parts ---- */

static uint64_t number_of(struct slice hex)
{
    uint64_t number = 0;
    for (size_t i = 0; i < hex.len; i++)
        number = number << 4 | (uint64_t)((hex.ptr[i] & 0xF) + (hex.ptr[i] >> 6) * 9);
    return number;
}

static void read_node(struct trace_node *node, struct slice json)
{
    struct scan_members all = scan_members(json);
    struct slice name, value;
    *node = (struct trace_node){ .above = NONE, .first = NONE, .last = NONE, .next = NONE };
    const struct {
        const char *name;
        struct slice *value;
    } fields[] = {
        { "spanId", &node->id },
        { "parentId", &node->parent },
        { "message", &node->message },
        { "at", &node->at },
        { "ns", &node->ns },
        { "level", &node->level },
        { "attemptNumber", &node->attempt },
        { "workerVersion", &node->version },
        { "properties", &node->properties },
        { "events", &node->events },
    };
    while (scan_next_member(&all, &name, &value)) {
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            if (slice_is(name, fields[i].name))
                *fields[i].value = value;
        node->error |= slice_is(name, "isError");
        node->partial |= slice_is(name, "isPartial");
    }
    node->id = scan_unquoted(node->id);
    node->parent = scan_unquoted(node->parent);
    node->number = number_of(node->id);
    node->parent_number = number_of(node->parent);
}

/* Adds an id that is made of the run's id: the same for ever. */
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

/* Adds what the task and its libraries wrote down: payloads, outputs, exceptions,
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
    if (node->above == NONE)
        add_root_id(out, run, "parentId");
    else
        members_add_text(out, "parentId", nodes[node->above].id);
}

/* The event above this one: of those that have the id of its parent, the nearest before
 * it. */
static int find_above(const struct trace_node *nodes, int i)
{
    for (int p = i - 1; p >= 0 && nodes[i].parent_number; p--)
        if (nodes[p].number == nodes[i].parent_number)
            return nodes[p].depth < DEPTH_MAX ? p : NONE;
    return NONE;
}

static struct trace_node *nodes_create(const struct trace_look *look)
{
    struct trace_node *nodes = mem_new_array(struct trace_node, look->count + 1);
    for (int i = 0; i < (int)look->count; i++) {
        read_node(&nodes[i], bytes_slice(look->events[i].json));
        nodes[i].above = find_above(nodes, i);
        nodes[i].depth = nodes[i].above == NONE ? 1 : nodes[nodes[i].above].depth + 1;
    }
    return nodes;
}

/* ---- in a row ---- */

static void show_events(struct showing *op, struct buf *out)
{
    struct trace_node *nodes = nodes_create(&op->look);
    buf_add_text(out, "{\"events\":[");
    for (size_t i = 0; i < op->look.count; i++) {
        buf_add_text(out, i ? ",{" : "{");
        members_add_text(out, "runId", slice_of(op->run.id));
        members_add_text(out, "spanId", nodes[i].id);
        add_parent(out, &op->run, nodes, &nodes[i]);
        add_facts(out, &op->run, &nodes[i], false);
        members_add_text(out, "taskSlug", bytes_slice(op->run.task));
        members_add_json(out, "workerVersion", nodes[i].version);
        add_contents(out, op, &nodes[i]);
        buf_add_char(out, '}');
    }
    buf_add_text(out, "]}");
    free(nodes);
}

/* ---- as a tree ---- */

/* Links the events as a tree; gives the first of those below the run. */
static int link_nodes(struct trace_node *nodes, int count)
{
    int first = NONE, last = NONE;
    for (int i = 0; i < count; i++) {
        int parent = nodes[i].above;
        int *head = parent == NONE ? &first : &nodes[parent].first;
        int *tail = parent == NONE ? &last : &nodes[parent].last;
        if (*tail == NONE)
            *head = i;
        else
            nodes[*tail].next = i;
        *tail = i;
    }
    return first;
}

static void add_children(struct buf *out, const struct showing *op,
                         const struct trace_node *nodes, int first, struct slice parent)
{
    buf_add_text(out, ",\"children\":[");
    for (int i = first; i != NONE; i = nodes[i].next) {
        buf_add_text(out, i == first ? "{" : ",{");
        members_add_text(out, "id", nodes[i].id);
        members_add_text(out, "parentId", parent);
        members_add_text(out, "runId", slice_of(op->run.id));
        buf_add_text(out, ",\"data\":{");
        add_facts(out, &op->run, &nodes[i], false);
        add_run_facts(out, &op->run);
        add_contents(out, op, &nodes[i]);
        buf_add_char(out, '}');
        add_children(out, op, nodes, nodes[i].first, nodes[i].id);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

static void show_tree(struct showing *op, struct buf *out)
{
    struct trace_node *nodes = nodes_create(&op->look);
    struct buf root = { 0 };
    int first = link_nodes(nodes, (int)op->look.count);

    add_hex(&root, &op->run, OTLP_SPAN_LEN);
    buf_add_text(out, "{\"trace\":{\"traceId\":\"");
    add_hex(out, &op->run, 2 * OTLP_SPAN_LEN);
    buf_add_text(out, "\",\"rootSpan\":{");
    members_add_text(out, "id", buf_slice(&root));
    members_add_text(out, "runId", slice_of(op->run.id));
    buf_add_text(out, ",\"data\":{");
    add_root_facts(out, &op->run, false);
    add_run_facts(out, &op->run);
    buf_add_text(out, ",\"events\":[]}");
    add_children(out, op, nodes, first, buf_slice(&root));
    buf_add_text(out, "}}}");
    buf_finish(&root);
    free(nodes);
}

/* ---- page by page ---- */

/* Adds one span of the page: the run is number 0, its events follow. */
static void add_page_span(struct buf *out, const struct showing *op,
                          const struct trace_node *nodes, int64_t number)
{
    buf_add_char(out, '{');
    if (!number) {
        add_root_id(out, &op->run, "id");
        members_add_text(out, "runId", slice_of(op->run.id));
        add_root_facts(out, &op->run, false);
    } else {
        const struct trace_node *node = &nodes[number - 1];
        members_add_text(out, "id", node->id);
        add_parent(out, &op->run, nodes, node);
        members_add_text(out, "runId", slice_of(op->run.id));
        add_facts(out, &op->run, node, false);
    }
    buf_add_char(out, '}');
}

/* What has begun below a span that failed an attempt, and never ended, failed with it: the
 * client says so by this list. */
static void add_failures(struct buf *out, const struct showing *op,
                         const struct trace_node *nodes, int64_t after, int64_t end)
{
    bool first = true;
    for (int64_t i = after ? after : 1; i < end; i++) {
        const struct trace_node *node = &nodes[i - 1];
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

static void show_page(struct showing *op, int64_t size, int64_t after, struct buf *out)
{
    struct trace_node *nodes = nodes_create(&op->look);
    int64_t all = (int64_t)op->look.count + 1;
    int64_t end = size < all - after ? after + size : all;

    buf_add_text(out, "{\"data\":[");
    for (int64_t i = after; i < end; i++) {
        if (i > after)
            buf_add_char(out, ',');
        add_page_span(out, op, nodes, i);
    }
    buf_add_text(out, "],\"attemptFailures\":[");
    add_failures(out, op, nodes, after, end);
    buf_add_text(out, "],\"pagination\":{");
    if (end < all)
        buf_print(out, "\"next\":\"%lld\"", (long long)end);
    buf_add_text(out, "}}");
    free(nodes);
}

static enum err show_trace(struct showing *op, struct buf *out)
{
    struct api_call *call = op->call;
    struct slice behind = api_query(call, "page[after]");
    uint64_t size = PAGE_MAX, after = 0;

    if (!api_query(call, "page[size]").ptr && !behind.ptr) {
        show_tree(op, out);
        return OK;
    }
    if (paging_read_size(call, PAGE_MAX, &size))
        return ERR_INVALID;
    if (behind.ptr && (text_to_u64(behind, &after) || after > op->look.count))
        return explain(&call->why, ERR_INVALID,
                       "page[after]: must be what pagination.next said");
    show_page(op, (int64_t)size, (int64_t)after, out);
    return OK;
}

/* ---- one of them ---- */

/* True when the call names the span that stands for the run itself. */
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

static enum err show_span(struct showing *op, struct buf *out)
{
    if (is_root(op)) {
        show_root(op, out);
        return OK;
    }
    struct trace_node *nodes = nodes_create(&op->look);
    size_t i = 0;
    while (i < op->look.count && !slice_equal(nodes[i].id, op->call->params[1]))
        i++;
    if (i == op->look.count) {
        free(nodes);
        return explain(&op->call->why, ERR_NOT_FOUND, "Span not found");
    }
    buf_add_char(out, '{');
    members_add_text(out, "spanId", nodes[i].id);
    add_parent(out, &op->run, nodes, &nodes[i]);
    members_add_text(out, "runId", slice_of(op->run.id));
    add_facts(out, &op->run, &nodes[i], true);
    add_contents(out, op, &nodes[i]);
    buf_add_char(out, '}');
    free(nodes);
    return OK;
}

/* ---- the calls ---- */

static void finish(struct showing *op, enum err status, struct buf *out)
{
    if (status)
        api_reply_error(op->call, status);
    else
        api_reply_json(op->call, 200, buf_slice(out));
    buf_finish(out);
    run_finish(&op->run);
    free(op);
}

static void on_look(struct trace_look *look, enum err status)
{
    struct showing *op = container_of(look, struct showing, look);
    struct buf out = { 0 };
    if (!status && op->what == WHAT_EVENTS)
        show_events(op, &out);
    else if (!status)
        status = op->what == WHAT_TRACE ? show_trace(op, &out) : show_span(op, &out);
    finish(op, status, &out);
}

static void on_read(struct run_read *read, enum err status)
{
    struct showing *op = container_of(read, struct showing, read);
    struct api_call *call = op->call;
    struct buf none = { 0 };
    if (!status)
        status = api_check_run_scope(call, "read", read->run);
    if (status) {
        finish(op, status, &none);
        return;
    }
    run_copy(&op->run, read->run);
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
