/* stream_write.c - the routes that write to a stream.
 *
 *   run ─► target (self, parent, root) ─► listed by the run ─► create: 202
 *                                                              part: one chunk
 *                                                              pipe: a chunk per line
 *
 * The body of a pipe is read as it arrives; each complete line becomes a chunk at once.
 * The writer counts its lines, from X-Resume-From-Chunk on. Lines that arrived before are
 * skipped, so a writer may resend whatever may have been lost. A writer without a name has
 * no count (SDK 3.x, curl): each of its bodies is new. Parts and records of an input are
 * skipped in the same way if their name arrived before. */
#include "api/streams/stream_calls.h"
#include "api/streams/stream_sets.h"

#include <assert.h>

#include "api/request/connection_limit.h"
#include "api/request/quotas.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/run_commands.h"
#include "core/engine/waitpoint_end.h"
#include "core/engine/waits.h"

enum {
    CHUNK_MAX = 1 << 20,
    UNREAD_MAX = 64 << 10, /* bytes of a body that cannot be processed yet */
    /* carriage returns in a chunk: each starts a new line for readers */
    RETURNS_MAX = 1000,
    NAME_MAX_ = 128, /* bytes of the value of name_header */
};

enum act { ACT_CREATE, ACT_PART, ACT_PIPE, ACT_PROBE, ACT_SEND };

struct stream_writer {
    struct api_call *call; /* NULL: it already has its response */
    struct streams *streams;
    struct environment *env;
    enum act act;
    char run[RUN_ID_MAX]; /* the target, which has the stream */
    struct bytes *key;
    /* name of the writer, part or request; NULL: none, all lines are new */
    struct bytes *client;
    struct run_read read, target;
    struct add_stream add;
    struct waitpoint_end end;
    bool in_flight; /* one of the four above */

    /* Used by a pipe only. */
    struct stream *stream; /* set once the run lists it */
    struct seat seat;      /* a pipe may last as long as its run */
    uint64_t index;        /* index of the next line in the writer's count */
    struct buf unread;
    /* offsets in unread: bytes taken; bytes searched for a line end */
    size_t used, looked_at;
    bool whole; /* the whole body has arrived */
    struct deferred deferred;
};

/* ---- ending ---- */

static void writer_destroy(struct stream_writer *writer)
{
    assert(!writer->call && !writer->in_flight);
    if (writer->stream) {
        writer->stream->writers--;
        metric_add(M_STREAM_WRITERS, -1);
        stream_release(streams_of(writer->streams, writer->env), writer->stream);
    }
    connection_limit_leave(&writer->seat);
    loop_cancel_deferred(&writer->deferred);
    bytes_unref(writer->key);
    bytes_unref(writer->client);
    buf_finish(&writer->unread);
    free(writer);
}

/* Detaches the call, which is about to get its response. */
static struct api_call *take_call(struct stream_writer *writer)
{
    struct api_call *call = writer->call;
    writer->call = NULL;
    call->on_gone = NULL;
    call->state = NULL;
    return call;
}

static void stream_writer_refuse(struct stream_writer *writer, enum err err)
{
    api_reply_error(take_call(writer), err);
    if (!writer->in_flight)
        writer_destroy(writer);
}

static void answer(struct stream_writer *writer, int status, struct slice json)
{
    struct api_call *call = take_call(writer);
    if (json.len)
        api_reply_json(call, status, json);
    else
        api_reply_empty(call, status);
    writer_destroy(writer);
}

static void on_gone(struct api_call *call)
{
    struct stream_writer *writer = call->state;
    api_reply_gone(take_call(writer));
    if (!writer->in_flight)
        writer_destroy(writer);
}

/* The gateway drains: the SDK will ask for its last chunk and continue after it. */
static void on_drain(struct api_call *call)
{
    stream_writer_refuse(call->state, ERR_DRAINING);
}

/* ---- a pipe ---- */

static struct stream_set *set_of(const struct stream_writer *writer)
{
    return streams_of(writer->streams, writer->env);
}

/* Returns true if a line has too many carriage returns. Strings in JSON contain no raw
 * ones. */
static bool has_many_returns(struct slice line)
{
    struct slice part;
    size_t parts = 0;
    while (parts <= RETURNS_MAX + 1 && slice_split(&line, '\r', &part))
        parts++;
    return parts > RETURNS_MAX + 1;
}

/* Appends a line as a chunk. Returns false, with call->why, if it is invalid. */
static bool take_line(struct stream_writer *writer, struct slice line)
{
    struct slice name = bytes_slice(writer->client);
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (!slice_trim(line).len)
        return true;
    if (!text_is_utf8(line)) {
        explain(&writer->call->why, ERR_INVALID, "A chunk is not UTF-8");
        return false;
    }
    if (has_many_returns(line)) {
        explain(&writer->call->why, ERR_INVALID,
                "A chunk has too many carriage returns (max %d); send a line of JSON",
                RETURNS_MAX);
        return false;
    }
    uint64_t index = writer->index++;
    if (name.ptr && (int64_t)index <= stream_client_last(&writer->stream->clients, name))
        return true;
    if (name.ptr)
        stream_client_wrote(&writer->stream->clients, name, index);
    streams_append(writer->streams, set_of(writer), writer->stream, STREAM_OUTPUT, line);
    return true;
}

/* Appends all complete lines, or as many as the time slice allows. Returns false, with
 * call->why, if one is invalid. */
static bool take_lines(struct stream_writer *writer)
{
    struct buf *unread = &writer->unread;
    struct timeslice timeslice = loop_timeslice(writer->streams->loop);
    while (writer->looked_at < unread->len && timeslice_left(&timeslice)) {
        const char *from = unread->ptr + writer->used;
        const char *end =
            memchr(unread->ptr + writer->looked_at, '\n', unread->len - writer->looked_at);
        writer->looked_at = end ? (size_t)(end - unread->ptr) + 1 : unread->len;
        if (!end)
            break;
        if (!take_line(writer, (struct slice){ from, (size_t)(end - from) }))
            return false;
        writer->used = writer->looked_at;
    }
    buf_drop(unread, writer->used);
    writer->looked_at -= writer->used;
    writer->used = 0;
    if (writer->looked_at < unread->len || unread->len <= CHUNK_MAX)
        return true;
    explain(&writer->call->why, ERR_TOO_LARGE, "A chunk is too large (max %d bytes)",
            CHUNK_MAX);
    return false;
}

/* Frees the memory of a long line that was taken. */
static void shrink(struct buf *unread)
{
    struct buf rest = { 0 };
    if (unread->len > unread->capacity / 4)
        return;
    buf_add(&rest, buf_slice(unread));
    buf_finish(unread);
    *unread = rest;
}

/* Reserves memory for an incomplete line. If the budget is exhausted, rejects the writer
 * and returns false. */
static bool hold_unread(struct stream_writer *writer)
{
    enum err full = quotas_hold_piece(writer->call, writer->unread.capacity);
    if (full)
        stream_writer_refuse(writer, full);
    return !full;
}

static void go_on(struct stream_writer *writer)
{
    struct exchange *x = writer->call->x;
    if (!take_lines(writer)) {
        stream_writer_refuse(writer, writer->call->why.code);
        return;
    }
    if (writer->looked_at < writer->unread.len) {
        loop_defer(writer->streams->loop, &writer->deferred);
        if (writer->unread.len > UNREAD_MAX)
            http_body_pause(x);
        return;
    }
    shrink(&writer->unread);
    if (!hold_unread(writer))
        return;
    http_body_resume(x);
    if (!writer->whole)
        return;
    if (!take_line(writer, buf_slice(&writer->unread)))
        stream_writer_refuse(writer, writer->call->why.code);
    else
        answer(writer, 200, (struct slice){ 0 });
}

static void on_turn(struct deferred *deferred)
{
    go_on(container_of(deferred, struct stream_writer, deferred));
}

static void start_pipe(struct stream_writer *writer)
{
    writer->stream = stream_use(set_of(writer), STREAM_OUTPUT, slice_of(writer->run),
                                bytes_slice(writer->key));
    writer->stream->writers++;
    metric_add(M_STREAM_WRITERS, 1);
    go_on(writer);
}

/* ---- parts and probes ---- */

static void append_part(struct stream_writer *writer)
{
    struct stream_set *set = set_of(writer);
    struct stream *stream =
        stream_use(set, STREAM_OUTPUT, slice_of(writer->run), bytes_slice(writer->key));
    struct slice part = bytes_slice(writer->client);
    struct buf text = { 0 };
    if (!part.ptr || stream_client_last(&stream->parts, part) < 0) {
        if (part.ptr)
            stream_client_wrote(&stream->parts, part, 0);
        buf_add_json(&text, writer->call->x->body);
        streams_append(writer->streams, set, stream, STREAM_OUTPUT, buf_slice(&text));
        buf_finish(&text);
    }
    stream_release(set, stream);
    answer(writer, 200, SLICE("{\"ok\":true}"));
}

static void reply_last(struct stream_writer *writer)
{
    struct stream *stream = stream_find(set_of(writer), STREAM_OUTPUT,
                                        slice_of(writer->run), bytes_slice(writer->key));
    struct buf text = { 0 };
    buf_add_number(
        &text,
        stream ? stream_client_last(&stream->clients, bytes_slice(writer->client)) : -1);
    api_add_header(writer->call, "x-last-chunk-index", buf_slice(&text));
    buf_finish(&text);
    answer(writer, 200, (struct slice){ 0 });
}

/* ---- the run ---- */

/* Returns true if the writer got its response meanwhile; then it is freed. */
static bool is_abandoned(struct stream_writer *writer)
{
    writer->in_flight = false;
    if (writer->call)
        return false;
    writer_destroy(writer);
    return true;
}

static void on_ended(struct waitpoint_end *end, enum err status)
{
    struct stream_writer *writer = container_of(end, struct stream_writer, end);
    if (is_abandoned(writer))
        return;
    if (status && status != ERR_NOT_FOUND)
        stream_writer_refuse(writer, status);
    else
        answer(writer, 200, SLICE("{\"ok\":true}"));
}

/* Ends the wait with the first record after those that the run has seen: of several
 * records sent at once, any may get here first. */
static void end_wait(struct stream_writer *writer, const struct wait *wait, uint64_t index,
                     struct slice data)
{
    struct buf first = { 0 };
    if ((uint64_t)wait->from < index &&
        streams_find_input(writer->streams, writer->env, slice_of(writer->run),
                           bytes_slice(writer->key), wait->from, INT64_MAX, &first))
        data = buf_slice(&first);
    writer->in_flight = true;
    waitpoint_end_begin(writer->env->engine, writer->env, wait->id, data, &writer->end,
                        on_ended);
    buf_finish(&first);
}

/* Appends a record to an input. A run that waits for it gets it before the response is
 * sent. A request repeated after a lost response appends nothing, but still ends a wait
 * that its record satisfies. */
static void append_input(struct stream_writer *writer, const struct run *run)
{
    struct stream_set *set = set_of(writer);
    struct slice key = bytes_slice(writer->key);
    struct stream *stream = stream_use(set, STREAM_INPUT, slice_of(writer->run), key);
    struct slice data = scan_member(slice_trim(writer->call->x->body), "data");
    struct slice request = bytes_slice(writer->client);
    int64_t sent = request.ptr ? stream_client_last(&stream->parts, request) : -1;
    struct wait wait;
    bool waits = wait_list_has_input(run, key, &wait);
    if (!data.ptr)
        data = SLICE("null");
    if (waits && waitpoint_end_check(writer->env, data, &writer->call->why)) {
        stream_release(set, stream);
        stream_writer_refuse(writer, ERR_QUOTA);
        return;
    }
    if (waits)
        stream_start_at(stream, (uint64_t)wait.from);
    uint64_t index = sent < 0 ? stream->next : (uint64_t)sent;
    if (sent < 0) {
        if (request.ptr)
            stream_client_wrote(&stream->parts, request, index);
        streams_append(writer->streams, set, stream, STREAM_INPUT, data);
    }
    stream_release(set, stream);
    if (waits && (sent < 0 || wait.from <= sent))
        end_wait(writer, &wait, index, data);
    else
        answer(writer, 200, SLICE("{\"ok\":true}"));
}

static void carry_out(struct stream_writer *writer, const struct run *run)
{
    switch (writer->act) {
    case ACT_CREATE: answer(writer, 202, SLICE("{\"version\":\"v1\"}")); break;
    case ACT_PART: append_part(writer); break;
    case ACT_PIPE: start_pipe(writer); break;
    case ACT_PROBE: reply_last(writer); break;
    case ACT_SEND: append_input(writer, run); break;
    }
}

static void refuse_status(struct stream_writer *writer, enum err status)
{
    if (status == ERR_NOT_FOUND)
        streams_unknown(&writer->call->why);
    stream_writer_refuse(writer, status);
}

static void on_listed(struct command *command, enum err status)
{
    struct stream_writer *writer = container_of(command, struct stream_writer, add.command);
    if (is_abandoned(writer))
        return;
    if (status && command->why.code == status)
        writer->call->why = command->why;
    if (status)
        refuse_status(writer, status);
    else
        carry_out(writer, command->run);
}

/* Begins to write to a run. Rejects all but a probe if it has ended. */
static void use_run(struct stream_writer *writer, const struct run *run)
{
    bool output = writer->act != ACT_SEND && writer->act != ACT_PROBE;
    if (writer->act != ACT_PROBE && run_is_final(run)) {
        explain(&writer->call->why, ERR_INVALID,
                output ? "Cannot initialize a realtime stream on a completed run"
                       : "Cannot send to input stream on a completed run");
        stream_writer_refuse(writer, ERR_INVALID);
        return;
    }
    if (!output || run_has_stream(run, bytes_slice(writer->key))) {
        carry_out(writer, run);
        return;
    }
    if (engine_check_quota(writer->env, writer->key->len, &writer->call->why)) {
        stream_writer_refuse(writer, ERR_QUOTA);
        return;
    }
    writer->in_flight = true;
    writer->add.key = bytes_slice(writer->key);
    run_add_stream(writer->env->engine, writer->env, slice_of(writer->run), &writer->add,
                   on_listed);
}

static void on_target(struct run_read *read, enum err status)
{
    struct stream_writer *writer = container_of(read, struct stream_writer, target);
    if (is_abandoned(writer))
        return;
    if (status)
        refuse_status(writer, status);
    else
        use_run(writer, read->run);
}

/* The run was read. If it has no parent or root, it is the target itself. */
static void on_run(struct run_read *read, enum err status)
{
    struct stream_writer *writer = container_of(read, struct stream_writer, read);
    struct bytes *other = NULL;
    if (is_abandoned(writer))
        return;
    if (status) {
        refuse_status(writer, status);
        return;
    }
    if (writer->act != ACT_SEND && slice_is(writer->call->params[1], "parent"))
        other = run_rare(read->run)->parent;
    else if (writer->act != ACT_SEND && slice_is(writer->call->params[1], "root"))
        other = run_rare(read->run)->root;
    if (!other || slice_is(bytes_slice(other), writer->run)) {
        use_run(writer, read->run);
        return;
    }
    snprintf(writer->run, sizeof(writer->run), "%s", other->data);
    writer->in_flight = true;
    run_read_begin(writer->env, bytes_slice(other), &writer->target, on_target);
}

/* ---- the request ---- */

/* Returns the header that names a writer, part or request, to recognize a repetition. */
static const char *name_header(enum act act)
{
    switch (act) {
    case ACT_PART: return "x-part-id";
    case ACT_SEND: return "x-trigger-request-idempotency-key";
    default: return "x-client-id";
    }
}

static enum err check(struct api_call *call, enum act act, struct slice name)
{
    struct slice target = call->params[1];
    bool is_target = act == ACT_SEND || slice_is(target, "self") ||
                     slice_is(target, "parent") || slice_is(target, "root");
    if (!is_target)
        return explain(&call->why, ERR_INVALID, "The target must be self, parent or root");
    if (name.len > NAME_MAX_)
        return explain(&call->why, ERR_INVALID, "The header %s may have at most %d bytes",
                       name_header(act), NAME_MAX_);
    if (call->params[0].len >= sizeof(((struct stream_writer *)0)->run))
        return streams_unknown(&call->why);
    return streams_check_key(call->params[act == ACT_SEND ? 1 : 2], &call->why);
}

static enum err stream_writer_begin(struct api_call *call, enum act act,
                                    struct stream_writer **out)
{
    struct slice key = call->params[act == ACT_SEND ? 1 : 2];
    struct slice name = http_header(call->x, name_header(act));
    bool counts = http_header(call->x, "x-resume-from-chunk").len;
    if (!name.len && (act == ACT_PROBE || (act == ACT_PIPE && counts)))
        name = SLICE("default");
    enum err refused = check(call, act, name);
    if (refused)
        return refused;
    struct stream_writer *writer = mem_new(struct stream_writer);
    writer->call = call;
    writer->streams = api_streams(call->api);
    writer->env = call->env;
    writer->act = act;
    memcpy(writer->run, call->params[0].ptr, call->params[0].len);
    writer->key = bytes_create(key);
    writer->client = name.len ? bytes_create(name) : NULL;
    writer->deferred.fn = on_turn;
    list_init(&writer->deferred.link);
    writer->in_flight = true;
    call->busy = true;
    call->state = writer;
    call->on_gone = on_gone;
    run_read_begin(call->env, call->params[0], &writer->read, on_run);
    if (out)
        *out = writer;
    return OK;
}

enum err stream_create(struct api_call *call)
{
    return stream_writer_begin(call, ACT_CREATE, NULL);
}

enum err stream_append_part(struct api_call *call)
{
    if (!call->x->body.len)
        return explain(&call->why, ERR_INVALID, "No body provided");
    if (!text_is_utf8(call->x->body))
        return explain(&call->why, ERR_INVALID, "The part is not UTF-8");
    return stream_writer_begin(call, ACT_PART, NULL);
}

enum err stream_probe(struct api_call *call)
{
    return call->x->method == HTTP_HEAD_ ? stream_writer_begin(call, ACT_PROBE, NULL)
                                         : ERR_METHOD;
}

enum err stream_send(struct api_call *call)
{
    struct slice body;
    enum err refused = api_check_scope(call, "write", "inputStreams", call->params[0]);
    if (!refused)
        refused = api_read_object(call, &body);
    return refused ? refused : stream_writer_begin(call, ACT_SEND, NULL);
}

static enum err begin_pipe(struct api_call *call, struct stream_writer **writer)
{
    struct slice resume = http_header(call->x, "x-resume-from-chunk");
    uint64_t index = 0;
    if (resume.len && (text_to_u64(resume, &index) || index > INT64_MAX / 2))
        return explain(&call->why, ERR_INVALID,
                       "X-Resume-From-Chunk must be the number of a chunk");
    struct seat seat = { 0 };
    enum err refused = connection_limit_take(&seat, call->api, call->env, &call->why);
    if (!refused && (refused = stream_writer_begin(call, ACT_PIPE, writer)))
        connection_limit_leave(&seat);
    if (refused)
        return refused;
    (*writer)->seat = seat;
    (*writer)->index = index;
    api_hold(call, on_drain);
    return OK;
}

enum err stream_take_piece(struct api_call *call, struct slice piece)
{
    struct stream_writer *writer = call->state;
    enum err refused = writer ? OK : begin_pipe(call, &writer);
    if (refused)
        return refused;
    buf_add(&writer->unread, piece);
    if (!hold_unread(writer))
        return OK;
    if (writer->stream)
        go_on(writer);
    else if (writer->unread.len > UNREAD_MAX)
        http_body_pause(call->x);
    return OK;
}

enum err stream_pipe(struct api_call *call)
{
    struct stream_writer *writer = call->state;
    enum err refused = writer ? OK : begin_pipe(call, &writer);
    if (refused)
        return refused;
    writer->whole = true;
    if (writer->stream)
        go_on(writer);
    return OK;
}
