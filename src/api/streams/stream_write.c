/* stream_write.c - what is written to a stream.
 *
 *   run ─► target (self, parent, root) ─► listed by the run ─► create: 202
 *                                                              part: one chunk
 *                                                              pipe: a chunk a line
 *
 * A pipe's body is read as it comes, each line is a chunk the moment it is complete. Its
 * lines are counted by the writer, from X-Resume-From-Chunk on; what has come before is
 * left out, so that a writer may send again what it does not know to have arrived. A writer
 * without a name does not count (SDK 3.x, curl): each of its bodies is new. Parts and
 * records of an input are left out in the same way when their name has come before. */
#include "api/streams/stream_calls.h"
#include "api/streams/stream_sets.h"

#include <assert.h>

#include "api/request/connection_limit.h"
#include "api/request/rooms.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/run_commands.h"
#include "core/engine/waitpoint_end.h"
#include "core/engine/waits.h"

enum {
    CHUNK_MAX = 1 << 20,
    UNREAD_MAX = 64 << 10, /* of a body that cannot be taken yet */
    RETURNS_MAX = 1000,    /* carriage returns in a chunk: each begins a line for readers */
    NAME_MAX_ = 128,       /* of what name_header names */
};

enum act { ACT_CREATE, ACT_PART, ACT_PIPE, ACT_PROBE, ACT_SEND };

struct stream_writer {
    struct api_call *call; /* NULL: answered */
    struct streams *streams;
    struct environment *env;
    enum act act;
    char run[RUN_ID_MAX]; /* whose stream it is: the target */
    struct bytes *key;
    struct bytes *client; /* or part, or request; NULL: none, whose lines are all new */
    struct run_read read, target;
    struct add_stream add;
    struct waitpoint_end end;
    bool in_flight; /* one of the four */

    /* Of a pipe. */
    struct stream *stream; /* since the run lists it */
    struct seat seat;      /* a pipe may stay for as long as its run */
    uint64_t index;        /* of the next line, as the writer counts */
    struct buf unread;
    size_t used, looked_at; /* of unread: taken; searched for the end of a line */
    bool whole;             /* the body has come to its end */
    struct deferred deferred;
};

/* ---- its end ---- */

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

/* The call is the reply's from now on. */
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

/* The gateway drains: the SDK asks for the last chunk that came, and goes on behind it. */
static void on_drain(struct api_call *call)
{
    stream_writer_refuse(call->state, ERR_DRAINING);
}

/* ---- a pipe ---- */

static struct stream_set *set_of(const struct stream_writer *writer)
{
    return streams_of(writer->streams, writer->env);
}

/* Carriage returns: JSON has no raw ones in its strings. */
static bool has_many_returns(struct slice line)
{
    struct slice part;
    size_t parts = 0;
    while (parts <= RETURNS_MAX + 1 && slice_split(&line, '\r', &part))
        parts++;
    return parts > RETURNS_MAX + 1;
}

/* False when the line cannot be a chunk, and the writer is refused. */
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
                "A chunk has more than %d carriage returns: send a line of JSON",
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

/* Takes lines up to the last whole one, or until the time is over; false: refused. */
static bool take_lines(struct stream_writer *writer)
{
    struct buf *unread = &writer->unread;
    struct stint stint = loop_stint(writer->streams->loop);
    while (writer->looked_at < unread->len && stint_goes_on(&stint)) {
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
    explain(&writer->call->why, ERR_TOO_LARGE, "A chunk has more than %d bytes", CHUNK_MAX);
    return false;
}

/* The memory of a long line goes with the line. */
static void shrink(struct buf *unread)
{
    struct buf rest = { 0 };
    if (unread->len > unread->capacity / 4)
        return;
    buf_add(&rest, buf_slice(unread));
    buf_finish(unread);
    *unread = rest;
}

/* Keeps room for a line that has not ended. False when there is none, and the writer is
 * refused. */
static bool hold_unread(struct stream_writer *writer)
{
    enum err full = rooms_hold_piece(writer->call, writer->unread.capacity);
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

/* ---- the others ---- */

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

/* True when the writer was answered meanwhile, and is gone now. */
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

/* The record that the run waits for is the first behind what it has seen: of several that
 * are sent at once each may be the one to bring it. */
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

/* Appends to an input. A run that waits for it has it before the answer is given. A
 * request that is repeated, for its answer was lost, adds nothing; a wait that began
 * behind its record goes on. */
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

/* Begins to write to a run, unless it has ended. */
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

/* The run was read. One without parent or root is its own. */
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

/* The header that names a writer, a part or a request, so that it is known when it comes
 * again. */
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
        return explain(&call->why, ERR_INVALID, "The target is self, parent or root");
    if (name.len > NAME_MAX_)
        return explain(&call->why, ERR_INVALID, "The header %s has at most %d bytes",
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
