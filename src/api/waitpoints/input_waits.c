/* input_waits.c - tokens that are completed by the next record of an input stream.
 *
 *   create ─► document: run, stream, from ─► wait ─► the run is blocked by it
 *                  │                           │           │
 *        a record exists: completed       one came    one comes (stream_write.c)
 *
 * The caller decides which record is next: lastSeqNum is the last one that it has seen. */
#include "api/streams/streams.h"
#include "api/waitpoints/waitpoint_make.h"
#include "api/waitpoints/waitpoints.h"
#include "base/mem.h"

static const int64_t seq_max = (int64_t)1 << 53;

struct input_wait {
    struct waitpoint_make make;
    struct run_read read;
};

static void destroy(struct input_wait *op)
{
    waitpoint_make_finish(&op->make);
    free(op);
}

static void input_wait_refuse(struct input_wait *op, enum err status)
{
    api_reply_error(op->make.call, status);
    destroy(op);
}

static void on_made(struct waitpoint_make *make, enum err status)
{
    struct input_wait *op = container_of(make, struct input_wait, make);
    struct buf out = { 0 };
    if (status) {
        input_wait_refuse(op, status);
        return;
    }
    buf_print(&out, "{\"waitpointId\":\"%s\",\"isCached\":%s}", make->made->id,
              make->cached ? "true" : "false");
    api_reply_json(make->call, 200, buf_slice(&out));
    buf_finish(&out);
    destroy(op);
}

static void take_record(struct waitpoint *waitpoint, struct api_call *call)
{
    struct buf data = { 0 };
    if (streams_find_input(api_streams(call->api), call->env, bytes_slice(waitpoint->run),
                           bytes_slice(waitpoint->stream), waitpoint->from,
                           waitpoint->created_at, &data)) {
        waitpoint->completed_at = waitpoint->created_at;
        waitpoint_set_output(waitpoint, buf_slice(&data));
    }
    buf_finish(&data);
}

/* Creates the token. Its idempotency key is unique for this run and stream only. */
static void begin_making(struct input_wait *op)
{
    struct waitpoint *waitpoint = &op->make.waitpoint;
    struct buf space = { 0 };
    take_record(waitpoint, op->make.call);
    buf_print(&space, "input %s ", waitpoint->run->data);
    buf_add(&space, bytes_slice(waitpoint->stream));
    waitpoint_make_begin(&op->make, buf_slice(&space));
    buf_finish(&space);
}

static void on_run(struct run_read *read, enum err status)
{
    struct input_wait *op = container_of(read, struct input_wait, read);
    struct api_call *call = op->make.call;
    if (status == ERR_NOT_FOUND)
        streams_unknown(&call->why);
    if (!status && run_is_final(read->run))
        status = explain(&call->why, ERR_INVALID,
                         "Cannot wait for an input stream of a completed run");
    if (!status)
        status = engine_check_quota(call->env, call->x->body.len, &call->why);
    if (status) {
        input_wait_refuse(op, status);
        return;
    }
    op->make.waitpoint.run = bytes_create(slice_of(read->run->id));
    begin_making(op);
}

static enum err read_stream(struct input_wait *op, const json_t *body)
{
    const json_t *id = json_object_get(body, "streamId");
    struct api_call *call = op->make.call;
    struct slice key = { json_string_value(id), json_string_length(id) };
    if (!key.ptr)
        return explain(&call->why, ERR_INVALID, "streamId: must be a string");
    if (json_is_number(json_object_get(body, "timeout")))
        return explain(&call->why, ERR_INVALID, "timeout: must be a string");
    op->make.waitpoint.stream = bytes_create(key);
    return streams_check_key(key, &call->why);
}

static enum err read_place(struct input_wait *op, const json_t *body)
{
    const json_t *last = json_object_get(body, "lastSeqNum");
    if (!last || json_is_null(last))
        return OK;
    json_int_t number = json_integer_value(last);
    if (!json_is_integer(last) || number < -1 || number >= seq_max)
        return explain(&op->make.call->why, ERR_INVALID,
                       "lastSeqNum: must be the number of a record");
    op->make.waitpoint.from = number + 1;
    return OK;
}

enum err input_wait_create(struct api_call *call)
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    struct input_wait *op = mem_new(struct input_wait);
    waitpoint_make_init(&op->make, call, on_made);
    enum err err = read_stream(op, body);
    if (!err)
        err = read_place(op, body);
    if (!err)
        err = waitpoint_make_read_token(&op->make, body);
    json_decref(body);
    if (err) {
        destroy(op);
        return err;
    }
    call->busy = true;
    run_read_begin(call->env, call->params[0], &op->read, on_run);
    return OK;
}
