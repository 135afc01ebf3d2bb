/* otel.c - the routes that receive spans and logs of workers.
 *
 *   /otel/<environment>/<signature>/v1/traces ─► one record after another ─► traces.h
 *   /otel/v1/…                                ─► discarded
 *
 * The signature is made with the environment's key, so a record reaches only runs of that
 * environment. A body is read in time slices; the response is sent after all of it. */
#include "api/request/quotas.h"
#include "api/request/route.h"
#include "api/telemetry/otlp_parts.h"
#include "api/telemetry/traces.h"
#include "base/mem.h"

enum {
    TELEMETRY_BODY = 128 << 20, /* two exports of records of 128 KiB */
    DISCARDED_BODY = 4 * 1024 * 1024,
};

static enum err discard(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{}"));
    return OK;
}

static enum err discard_metrics(struct api_call *call)
{
    api_skip(call->api, SKIP_METRICS, "metrics of telemetry");
    return discard(call);
}

static enum err check_type(struct api_call *call)
{
    if (!slice_starts(http_header(call->x, "content-type"), "application/json"))
        return explain(&call->why, ERR_MEDIA_TYPE,
                       "Telemetry must be uncompressed JSON (http/json)");
    return OK;
}

struct telemetry {
    struct api_call *call;
    struct environment *env;
    bool logs;
    struct otlp_parts parts; /* collects the body */
    struct buf part;         /* the part that is being read */
    struct otlp otlp;        /* reads it */
    bool reads, complete;    /* a part is being read; the body has arrived */
    size_t lost;             /* records beyond OTLP_STEPS_MAX */
    char lost_run[ID_MAX];   /* the run of the first lost record */
    char run[ID_MAX];        /* the run of the last record that was read */
    struct deferred deferred;
};

/* Counts a record beyond OTLP_STEPS_MAX. Reads the run of the first one only: reading all
 * would cost what the limit saves. */
static void pass_over(struct telemetry *op, struct slice record)
{
    struct trace_event event;
    if (!op->lost++ && !otlp_read(&op->otlp, record, op->lost_run, &event))
        bytes_unref(event.json);
}

static void lose(struct telemetry *op, const char *run, size_t lost)
{
    if (!lost)
        return;
    if (environment_find(op->env, slice_of(run)))
        traces_lose(api_traces(op->call->api), op->env, slice_of(run), LOSS_LIMIT, lost);
    else
        traces_drop(lost);
}

/* Adds the lost records to the counts of their run. If the part has more records than are
 * counted, at least one more was lost. A record that was too long to be read is counted for
 * the run of a record near it. */
static void count_lost(struct telemetry *op)
{
    lose(op, op->lost_run, op->lost + (op->otlp.cut ? 1 : 0));
    lose(op, op->run, op->parts.skipped);
    op->lost = op->parts.skipped = 0;
    op->lost_run[0] = '\0';
}

static void add(struct telemetry *op, struct slice record)
{
    struct trace_event event;
    struct failure why; /* not used: workers continue without telemetry */
    char *run_id = op->run;
    struct traces *traces = api_traces(op->call->api);
    if (otlp_read(&op->otlp, record, run_id, &event)) {
        traces_drop(1);
    } else if (!environment_find(op->env, slice_of(run_id))) {
        bytes_unref(event.json);
        traces_drop(1);
    } else if (engine_check_quota(op->env, event.json->len, &why)) {
        bytes_unref(event.json);
        traces_lose(traces, op->env, slice_of(run_id), LOSS_QUOTA, 1);
    } else if (traces_is_full(traces, op->env)) {
        bytes_unref(event.json);
        traces_lose(traces, op->env, slice_of(run_id), LOSS_SHARE, 1);
    } else {
        traces_add(traces, op->env, slice_of(run_id), &event);
    }
}

static void take_record(struct telemetry *op, struct slice record)
{
    if (otlp_is_beyond(&op->otlp))
        pass_over(op, record);
    else
        add(op, record);
}

/* ---- the body ---- */

static void telemetry_free(struct telemetry *op)
{
    loop_cancel_deferred(&op->deferred);
    otlp_parts_finish(&op->parts);
    buf_finish(&op->part);
    op->call->state = NULL;
    op->call->on_gone = NULL;
    free(op);
}

/* The client disconnected in the middle of its body. */
static void on_gone(struct api_call *call)
{
    telemetry_free(call->state);
    api_reply_gone(call);
}

/* Begins to read a part of the body. Takes the part. Returns ERR_INVALID with call->why if
 * it is not a JSON object. */
static enum err begin_part(struct telemetry *op, struct buf part)
{
    struct api_call *call = op->call;
    op->part = part;
    if (!part.len)
        return explain(&call->why, ERR_INVALID, "Request body is empty");
    if (!scan_is_json(buf_slice(&part)) || scan_type(buf_slice(&part)) != SCAN_OBJECT)
        return explain(&call->why, ERR_INVALID,
                       "Invalid JSON: telemetry must be a JSON object");
    op->reads = true;
    otlp_begin(&op->otlp, buf_slice(&op->part), op->logs);
    loop_defer(engine_loop(api_engine(call->api)), &op->deferred);
    return OK;
}

static void end_part(struct telemetry *op)
{
    struct api_call *call = op->call;
    bool is_last = op->complete && !op->parts.text.len;
    count_lost(op);
    buf_finish(&op->part);
    op->reads = false;
    if (!op->complete) {
        http_body_resume(call->x);
        return;
    }
    enum err refused = is_last ? OK : begin_part(op, otlp_parts_end(&op->parts));
    if (!is_last && !refused)
        return;
    telemetry_free(op);
    if (refused)
        api_reply_error(call, refused);
    else
        discard(call);
}

static void read_records(struct deferred *deferred)
{
    struct telemetry *op = container_of(deferred, struct telemetry, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    struct slice record;
    bool more = true;
    while (more && timeslice_left(&timeslice))
        if ((more = otlp_next(&op->otlp, &record)) && record.ptr)
            take_record(op, record);
    if (more)
        loop_defer(loop, &op->deferred);
    else
        end_part(op);
}

static enum err begin(struct api_call *call, bool logs)
{
    enum err refused = check_type(call);
    if (refused)
        return refused;
    struct telemetry *op = mem_new(struct telemetry);
    op->call = call;
    op->env = call->env;
    op->logs = logs;
    op->deferred.fn = read_records;
    list_init(&op->deferred.link);
    call->state = op;
    call->on_gone = on_gone;
    return OK;
}

/* Takes a piece of the body. While a part is read, the rest waits in the socket, except for
 * the bytes already read from it. */
static enum err take(struct api_call *call, struct slice piece, bool logs)
{
    enum err refused = call->state ? OK : begin(call, logs);
    struct telemetry *op = call->state;
    if (refused)
        return refused;
    while (piece.len && !refused)
        if (otlp_parts_take(&op->parts, &piece) && !op->reads) {
            http_body_pause(call->x);
            refused = begin_part(op, otlp_parts_cut(&op->parts));
        }
    if (!refused)
        refused = otlp_parts_check(&op->parts, &call->why);
    if (!refused)
        refused = quotas_hold_piece(call, otlp_parts_size(&op->parts) + op->part.capacity);
    if (refused)
        telemetry_free(op);
    return refused;
}

static enum err take_spans(struct api_call *call, struct slice piece)
{
    return take(call, piece, false);
}

static enum err take_logs(struct api_call *call, struct slice piece)
{
    return take(call, piece, true);
}

static enum err receive(struct api_call *call, bool logs)
{
    enum err refused = call->state ? OK : begin(call, logs);
    if (refused)
        return refused;
    struct telemetry *op = call->state;
    op->complete = true;
    if (!op->reads && (refused = begin_part(op, otlp_parts_end(&op->parts))))
        telemetry_free(op);
    else
        call->busy = true;
    return refused;
}

static enum err receive_spans(struct api_call *call)
{
    return receive(call, false);
}

static enum err receive_logs(struct api_call *call)
{
    return receive(call, true);
}

#define SIGNED "/otel/{environmentId}/{signature}/v1"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = SIGNED "/traces",
      .auth = AUTH_SIGNED, .signed_form = SIGNED_TELEMETRY, .body_limit = TELEMETRY_BODY, .handle = receive_spans,
      .on_body = take_spans,
      .id = "otel_signed_traces_v1", .summary = "Spans of runs, OTLP in JSON",
      .body = "{resourceSpans?: {...}[], ...}",
      .reply = "{...}",
      .also = "415" },
    { .method = HTTP_POST_, .path = SIGNED "/logs",
      .auth = AUTH_SIGNED, .signed_form = SIGNED_TELEMETRY, .body_limit = TELEMETRY_BODY, .handle = receive_logs,
      .on_body = take_logs,
      .id = "otel_signed_logs_v1", .summary = "Logs of runs, OTLP in JSON",
      .body = "{resourceLogs?: {...}[], ...}",
      .reply = "{...}",
      .also = "415" },
    { .method = HTTP_POST_, .path = SIGNED "/metrics",
      .body_limit = DISCARDED_BODY, .handle = discard_metrics, .on_body = api_drop_body,
      .id = "otel_signed_metrics_v1", .summary = "Accepted and discarded",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/otel/v1/traces",
      .body_limit = DISCARDED_BODY, .handle = discard, .on_body = api_drop_body,
      .id = "otel_traces_v1", .summary = "Accepted and discarded",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/otel/v1/logs",
      .body_limit = DISCARDED_BODY, .handle = discard, .on_body = api_drop_body,
      .id = "otel_logs_v1", .summary = "Accepted and discarded",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/otel/v1/metrics",
      .body_limit = DISCARDED_BODY, .handle = discard_metrics, .on_body = api_drop_body,
      .id = "otel_metrics_v1", .summary = "Accepted and discarded",
      .body = "{...}",
      .reply = "{...}" },
    { 0 },
};
/* clang-format on */

const struct area otel_area = { .tag = "workers", .routes = routes };
