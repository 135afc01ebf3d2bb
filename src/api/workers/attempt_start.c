/* attempt_start.c - starts an attempt, and replies with its payload and variables.
 *
 *   started ─► the response up to the payload ─► the payload, escaped piece by piece
 *                                               ─► the rest of the response ─► reply
 *
 * A payload may have 3 MiB, so each turn escapes as much as it has time for. */
#include "api/workers/dequeued_message.h"
#include "api/workers/worker_routes.h"
#include "base/mem.h"
#include "core/engine/attempts.h"

enum { PIECE = 16 * 1024 };

struct starting {
    struct api_call *call;
    struct start_attempt start;
    struct deferred deferred;
    struct bytes *payload; /* of the run when it was started */
    size_t taken;          /* bytes of it that were escaped */
    struct buf answer, rest;
};

static struct loop *loop_of(const struct starting *op)
{
    return engine_loop(api_engine(op->call->api));
}

static void attempt_start_finish(struct starting *op)
{
    bytes_unref(op->payload);
    buf_finish(&op->answer);
    buf_finish(&op->rest);
    free(op);
}

/* Appends a JSON string without its quotes. A character that is cut keeps its bytes. */
static void add_escaped(struct buf *out, struct slice text)
{
    size_t begin = out->len;
    buf_add_json(out, text);
    out->len--;
    memmove(out->ptr + begin, out->ptr + begin + 1, out->len - begin - 1);
    out->len--;
}

static void go_on(struct deferred *deferred)
{
    struct starting *op = container_of(deferred, struct starting, deferred);
    struct slice payload = bytes_slice(op->payload);
    struct timeslice timeslice = loop_timeslice(loop_of(op));

    while (op->taken < payload.len && timeslice_left(&timeslice)) {
        struct slice piece = slice_from(payload, op->taken);
        if (piece.len > PIECE)
            piece.len = PIECE;
        add_escaped(&op->answer, piece);
        op->taken += piece.len;
    }
    if (op->taken < payload.len) {
        loop_defer(loop_of(op), &op->deferred);
        return;
    }
    buf_add(&op->answer, buf_slice(&op->rest));
    api_reply_json(op->call, 200, buf_slice(&op->answer));
    attempt_start_finish(op);
}

static void write_answer(struct starting *op, const struct run *run)
{
    struct api_call *call = op->call;
    const struct worker *worker =
        workers_by_version(call->env->fleet->workers, bytes_slice(run->worker_version));
    struct buf url = { 0 };

    api_base_url(call, &url);
    struct task_home home = {
        .account = call->account,
        .base_url = buf_slice(&url),
        .needs_key = worker_has_token(call),
        .cents_per_ms = attempt_cents_per_ms(call->env, run),
        .log_rows = api_options(call->api)->trace_rows,
    };
    size_t place = message_add_start(&op->answer, run, &home, worker);
    buf_finish(&url);
    buf_add(&op->rest, slice_from(buf_slice(&op->answer), place));
    op->answer.len = place;
    op->payload = bytes_ref(run->payload);
}

static void on_started(struct command *command, enum err status)
{
    struct starting *op = container_of(command, struct starting, start.command);
    const struct run *run = command->run;

    if (!status && run_is_final(run)) /* this was one attempt too many */
        status = explain(&command->why, ERR_INVALID, "The run has had too many attempts");
    if (status) {
        api_reply_refused(op->call, status, &command->why, "Run not found");
        attempt_start_finish(op);
        return;
    }
    if (command->seq)
        api_add_seq(op->call, command->seq);
    write_answer(op, run);
    go_on(&op->deferred);
}

enum err worker_start(struct api_call *call)
{
    struct starting *op = mem_new(struct starting);
    worker_touch_session(call);
    op->call = call;
    op->start.snapshot = call->params[1];
    op->start.request_id = api_request_id(call);
    op->start.by_token = worker_has_token(call);
    op->deferred.fn = go_on;
    list_init(&op->deferred.link);
    call->busy = true;
    attempt_start(api_engine(call->api), call->env, call->params[0], &op->start,
                  on_started);
    return OK;
}
