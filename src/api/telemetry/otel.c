/* otel.c - the routes that receive spans and logs of workers.
 *
 *   /otel/<environment>/<signature>/v1/traces ─► one record after another ─► traces.h
 *   /otel/v1/…                                ─► discarded
 *
 * The signature is made with the environment's key, so a record reaches only runs of that
 * environment. A body is read in time slices; the response is sent after all of it. */
#include "api/request/body_fields.h"
#include "api/request/route.h"
#include "api/telemetry/traces.h"
#include "base/mem.h"

enum {
    TELEMETRY_BODY = 4 * 1024 * 1024, /* one turn may scan all of it: about 2 ms */
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

static enum err take(struct api_call *call, struct slice piece)
{
    enum err refused = call->state ? OK : check_type(call);
    return refused ? refused : body_fields_take(call, piece);
}

struct telemetry {
    struct api_call *call;
    struct body_fields *fields;
    struct environment *env;
    struct otlp otlp;
    size_t lost;           /* records beyond OTLP_STEPS_MAX */
    char lost_run[ID_MAX]; /* the run of the first lost record */
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

/* Adds the lost records to the counts of their run. If the body has more records than are
 * counted, at least one more was lost. */
static void count_lost(struct telemetry *op)
{
    size_t lost = op->lost + (op->otlp.cut ? 1 : 0);
    if (!lost)
        return;
    if (environment_find(op->env, slice_of(op->lost_run)))
        traces_lose(api_traces(op->call->api), op->env, slice_of(op->lost_run), LOSS_LIMIT,
                    lost);
    else
        traces_drop(lost);
}

static void add(struct telemetry *op, struct slice record)
{
    struct trace_event event;
    struct failure why; /* not used: workers continue without telemetry */
    char run_id[ID_MAX];
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

static void go_on(struct deferred *deferred)
{
    struct telemetry *op = container_of(deferred, struct telemetry, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    struct slice record;
    bool more = true;
    while (more && timeslice_left(&timeslice))
        if ((more = !op->call->x->gone && otlp_next(&op->otlp, &record)) && record.ptr)
            take_record(op, record);
    if (more) {
        loop_defer(loop, &op->deferred);
        return;
    }
    count_lost(op);
    body_fields_free(op->fields);
    discard(op->call);
    free(op);
}

static enum err receive(struct api_call *call, bool logs)
{
    struct body_fields *fields;
    struct slice body;
    enum err refused = call->state ? OK : check_type(call);
    if (refused || (refused = body_fields_end(call, &fields, &body)))
        return refused;

    struct telemetry *op = mem_new(struct telemetry);
    op->call = call;
    op->fields = fields;
    op->env = call->env;
    op->deferred.fn = go_on;
    list_init(&op->deferred.link);
    otlp_begin(&op->otlp, body, logs);
    call->busy = true;
    loop_defer(engine_loop(api_engine(call->api)), &op->deferred);
    return OK;
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
      .on_body = take,
      .id = "otel_signed_traces_v1", .summary = "Spans of runs, OTLP in JSON",
      .body = "{resourceSpans?: {...}[], ...}",
      .reply = "{...}",
      .also = "415" },
    { .method = HTTP_POST_, .path = SIGNED "/logs",
      .auth = AUTH_SIGNED, .signed_form = SIGNED_TELEMETRY, .body_limit = TELEMETRY_BODY, .handle = receive_logs,
      .on_body = take,
      .id = "otel_signed_logs_v1", .summary = "Logs of runs, OTLP in JSON",
      .body = "{resourceLogs?: {...}[], ...}",
      .reply = "{...}",
      .also = "415" },
    { .method = HTTP_POST_, .path = SIGNED "/metrics",
      .body_limit = DISCARDED_BODY, .handle = discard_metrics, .on_body = api_drop_body,
      .id = "otel_signed_metrics_v1", .summary = "Taken and thrown away",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/otel/v1/traces",
      .body_limit = DISCARDED_BODY, .handle = discard, .on_body = api_drop_body,
      .id = "otel_traces_v1", .summary = "Taken and thrown away",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/otel/v1/logs",
      .body_limit = DISCARDED_BODY, .handle = discard, .on_body = api_drop_body,
      .id = "otel_logs_v1", .summary = "Taken and thrown away",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/otel/v1/metrics",
      .body_limit = DISCARDED_BODY, .handle = discard_metrics, .on_body = api_drop_body,
      .id = "otel_metrics_v1", .summary = "Taken and thrown away",
      .body = "{...}",
      .reply = "{...}" },
    { 0 },
};
/* clang-format on */

const struct area otel_area = { .tag = "workers", .routes = routes };
