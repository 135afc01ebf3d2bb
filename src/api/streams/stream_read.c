/* stream_read.c - the routes that read a stream as text/event-stream.
 *
 *   GET ─► run, scope ─► from Last-Event-ID on ─► all chunks, then new ones as they come
 *
 * A response ends normally when no chunk has arrived for Timeout-Seconds, or when the run
 * has ended and everything was read, but not while it is in doubt which gateway leads: SDKs
 * treat a normal end as a complete stream. It is cut, so that the client reconnects, when
 * the gateway drains or the token expires. While a reader has unsent bytes, no more is
 * written to it, and the ring may discard chunks meanwhile.
 *
 * A reader never gets a stream with a gap. If chunks before its first one are missing,
 * it gets 410; at a later gap it is cut, and gets 410 when it reconnects. SDKs throw that
 * status, but ignore comments, unknown events and missing numbers. */
#include "api/streams/stream_read.h"

#include <inttypes.h>

#include "api/request/connection_limit.h"
#include "api/streams/stream_calls.h"
#include "api/streams/stream_sets.h"
#include "base/mem.h"
#include "base/metrics.h"

enum {
    GATHERED_MAX = 32 << 10, /* small chunks are gathered up to this size */
    PING_MS = 10 * 1000,
    LOOK_MS = 2000, /* how often to check whether the run has ended */
    TIMEOUT_S = 60,
    TIMEOUT_MAX_S = 600,
};

struct stream_reader {
    struct api_call *call;
    struct streams *streams;
    struct stream_set *set;
    struct stream *stream; /* NULL: not started yet */
    enum stream_kind kind;
    uint64_t place; /* index of the next chunk */
    int64_t timeout_ms;
    int64_t came_ms, wrote_ms; /* monotonic: time of the last chunk, of the last bytes */
    int64_t expires_at;        /* monotonic; 0: the token does not expire */
    struct seat seat;
    struct timer timer;
    struct run_read run;
    struct list link; // streams::ready or stream::waiting; neither while bytes are unsent
};

/* ---- the end of a response ---- */

static void reader_destroy(struct stream_reader *reader, bool cut)
{
    struct api_call *call = reader->call;
    struct exchange *x = call->x;
    bool started = reader->stream;

    timers_clear(loop_timers(reader->streams->loop), &reader->timer);
    list_remove(&reader->link);
    if (started)
        stream_release(reader->set, reader->stream);
    connection_limit_leave(&reader->seat);
    free(reader);
    if (!started)
        return; /* on_run sends the response */
    metric_add(M_STREAM_READERS, -1);
    api_call_end(call);
    if (cut)
        http_stream_cut(x);
    else
        http_stream_end(x);
}

static void on_gone(struct api_call *call)
{
    reader_destroy(call->state, true);
}

/* The client continues at its place when the gateway is back. */
static void on_drain(struct api_call *call)
{
    reader_destroy(call->state, true);
}

/* ---- writing ---- */

/* Writes to the reader. This is done only while no bytes are unsent, so a write needs no
 * limit but its own size. If the peer has left, on_gone is called. */
static void write_text(struct stream_reader *reader, struct slice text)
{
    reader->wrote_ms = loop_now_ms(reader->streams->loop);
    http_stream_write(reader->call->x, text);
}

/* Writes as many small chunks as fit into one write, or up to a large one. A large one is
 * shared, not copied. */
static void write_some(struct stream_reader *reader)
{
    struct buf out = { 0 };
    struct bytes *frame = NULL;

    while (out.len < GATHERED_MAX &&
           (frame = stream_read(reader->stream, &reader->place))) {
        if (frame->len >= GATHERED_MAX)
            break;
        buf_add(&out, bytes_slice(frame));
        frame = NULL;
    }
    if (out.len)
        write_text(reader, buf_slice(&out));
    if (frame)
        http_stream_write_shared(reader->call->x, frame);
    reader->came_ms = reader->wrote_ms = loop_now_ms(reader->streams->loop);
    buf_finish(&out);
}

/* Returns true if the run has ended. A run that is not in memory has ended. */
static bool run_has_ended(const struct stream_reader *reader)
{
    const struct tracked *run =
        environment_find(reader->call->env, reader->call->params[0]);
    return !run || run_is_final(&run->run);
}

static bool has_more(const struct stream_reader *reader)
{
    return reader->place < reader->stream->next;
}

static uint64_t count_missed(const struct stream *stream, uint64_t place)
{
    uint64_t missed = stream_missed(stream, place);
    metric_add(M_STREAM_MISSED, missed);
    return missed;
}

static bool is_over(const struct stream_reader *reader)
{
    return !has_more(reader) && !reader->stream->writers && run_has_ended(reader) &&
           environment_is_certain(reader->call->env);
}

/* Returns true if no chunk came for Timeout-Seconds. In doubt, one may have come to another
 * gateway. */
static bool has_waited(const struct stream_reader *reader, int64_t now)
{
    return now - reader->came_ms >= reader->timeout_ms &&
           environment_is_certain(reader->call->env);
}

static void make_ready(struct stream_reader *reader)
{
    list_remove(&reader->link);
    list_append(&reader->streams->ready, &reader->link);
    loop_wake(reader->streams->loop, &reader->streams->flusher);
}

/* Writes until the reader has everything, the socket is full or the time slice ends. */
static void visit(struct stream_reader *reader)
{
    struct timeslice timeslice = loop_timeslice(reader->streams->loop);
    list_remove(&reader->link);
    while (has_more(reader) && !http_stream_unsent(reader->call->x)) {
        if (!timeslice_left(&timeslice)) {
            make_ready(reader);
            return;
        }
        if (count_missed(reader->stream, reader->place)) {
            reader_destroy(reader, true);
            return;
        }
        write_some(reader);
    }
    if (has_more(reader))
        return; /* on_drained continues */
    if (is_over(reader))
        reader_destroy(reader, false);
    else
        list_append(&reader->stream->waiting, &reader->link);
}

bool stream_readers_flush(struct flusher *flusher)
{
    struct streams *streams = container_of(flusher, struct streams, flusher);
    struct timeslice timeslice = loop_timeslice(streams->loop);
    struct list due;
    list_init(&due);
    list_move_all(&due, &streams->ready);
    while (!list_empty(&due) && timeslice_left(&timeslice))
        visit(container_of(due.next, struct stream_reader, link));
    list_move_all(&due, &streams->ready);
    list_move_all(&streams->ready, &due);
    return !list_empty(&streams->ready);
}

static void on_drained(struct api_call *call)
{
    make_ready(call->state);
}

/* ---- timers ---- */

/* After Timeout-Seconds, a reader stays only while it has unsent bytes, or in doubt: LOOK_MS
 * applies. */
static void set_timer(struct stream_reader *reader)
{
    int64_t now = loop_now_ms(reader->streams->loop), in = LOOK_MS;
    int64_t timeout = reader->came_ms + reader->timeout_ms - now;
    int64_t token = reader->expires_at - now;
    if (timeout > 0 && timeout < in)
        in = timeout;
    if (reader->expires_at && token < in)
        in = token;
    loop_set_timer(reader->streams->loop, &reader->timer, reader->streams->kind,
                   in > 0 ? in : 0);
}

void stream_reader_on_time(struct timer *timer)
{
    struct stream_reader *reader = container_of(timer, struct stream_reader, timer);
    int64_t now = loop_now_ms(reader->streams->loop);
    bool idle = !http_stream_unsent(reader->call->x);

    if (reader->expires_at && now >= reader->expires_at) {
        identity_log_end(reader->call->identity, "reader of a stream",
                         loop_wall_ms(reader->streams->loop));
        reader_destroy(reader, true);
    } else if (idle && (has_waited(reader, now) || is_over(reader))) {
        reader_destroy(reader, false);
    } else {
        if (idle && now - reader->wrote_ms >= PING_MS)
            write_text(reader, SLICE(": ping\n\n"));
        set_timer(reader);
    }
}

/* ---- opening ---- */

static enum err read_timeout(struct stream_reader *reader)
{
    struct slice text = http_header(reader->call->x, "timeout-seconds");
    uint64_t seconds = TIMEOUT_S;
    if (text.ptr && (text_to_u64(text, &seconds) || !seconds || seconds > TIMEOUT_MAX_S))
        return explain(&reader->call->why, ERR_INVALID,
                       "Timeout-Seconds must be between 1 and %d", TIMEOUT_MAX_S);
    reader->timeout_ms = (int64_t)seconds * 1000;
    return OK;
}

/* Returns where the reader continues: after Last-Event-ID, which is our "ms-index" or
 * only an index. Without a valid one, at the beginning, or at the end if the reader
 * wants the latest. */
static uint64_t find_place(const struct stream_reader *reader, const struct stream *stream)
{
    struct slice id = http_header(reader->call->x, "last-event-id"), time;
    struct slice start = http_header(reader->call->x, "x-trigger-stream-start");
    uint64_t index;
    int64_t at_ms = -1;
    if (!id.len)
        return slice_is(start, "latest") ? stream->next : 0;
    slice_split(&id, '-', &time);
    if (!id.ptr)
        id = time;
    else if (text_to_i64(time, &at_ms) || at_ms < 0)
        return 0;
    return text_to_u64(id, &index) ? 0 : stream_after(stream, at_ms, index);
}

static void explain_gap(struct api_call *call, const struct stream *stream)
{
    struct buf first = { 0 };
    buf_add_number(&first, (int64_t)stream->first);
    api_add_header(call, "x-stream-first-chunk", buf_slice(&first));
    buf_finish(&first);
    explain(&call->why, ERR_NOT_FOUND,
            "chunks of the stream before number %" PRIu64
            " were discarded (stream-bytes, stream-memory); read from there on "
            "(Last-Event-ID: %" PRIu64
            ", startIndex of the SDK), or only new chunks (X-Trigger-Stream-Start: latest)",
            stream->first, stream->first - 1);
}

/* Returns true if chunks that the reader requests were discarded; call->why says which. A
 * stream that is not in memory can have lost chunks only if its run existed before
 * whole_since; a run that executes may still write it. */
static bool is_lost(const struct stream_reader *reader, const struct run *run)
{
    struct api_call *call = reader->call;
    const struct stream_set *set = streams_of(reader->streams, call->env);
    const struct stream *stream =
        stream_find(set, reader->kind, call->params[0], call->params[1]);
    if (stream && stream->next) {
        if (!count_missed(stream, find_place(reader, stream)))
            return false;
        explain_gap(call, stream);
        return true;
    }
    if (reader->kind == STREAM_INPUT || !run_is_final(run) ||
        run->created_at > set->whole_since || !run_has_stream(run, call->params[1]))
        return false;
    explain(
        &call->why, ERR_NOT_FOUND,
        "the chunks of the stream were discarded: streams stay in memory for a day, and a "
        "restart of the gateway loses them");
    return true;
}

static void start(struct stream_reader *reader)
{
    struct api_call *call = reader->call;
    const struct identity *who = call->identity;
    struct loop *loop = reader->streams->loop;

    reader->set = streams_of(reader->streams, call->env);
    reader->stream =
        stream_use(reader->set, reader->kind, call->params[0], call->params[1]);
    reader->place = find_place(reader, reader->stream);
    reader->came_ms = reader->wrote_ms = loop_now_ms(loop);
    if (who->expires_at)
        reader->expires_at = loop_now_ms(loop) + who->expires_at - loop_wall_ms(loop);
    metric_add(M_STREAM_READERS, 1);
    call->on_gone = on_gone;
    call->on_drained = on_drained;
    api_hold(call, on_drain);
    call->bears_doubt = true;
    if (reader->kind == STREAM_INPUT)
        api_add_header(call, "x-stream-version", SLICE("v2"));
    api_stream_begin(call, "text/event-stream");
    set_timer(reader);
    make_ready(reader);
}

static void on_run(struct run_read *read, enum err status)
{
    struct stream_reader *reader = container_of(read, struct stream_reader, run);
    struct api_call *call = reader->call;
    if (status == ERR_NOT_FOUND)
        streams_unknown(&call->why);
    else if (!status)
        status = api_check_run_scope(call, "read", read->run);
    bool stays = !call->x->gone && call->x->method != HTTP_HEAD_;
    bool lost = !status && stays && is_lost(reader, read->run);
    if (!status && stays && !lost)
        status = connection_limit_take(&reader->seat, call->api, call->env, &call->why);
    if (!status && stays && !lost) {
        start(reader);
        return;
    }
    call->state = NULL;
    reader_destroy(reader, true);
    if (call->x->gone)
        api_reply_gone(call);
    else if (status)
        api_reply_error(call, status);
    else if (lost)
        api_reply_refusal(call, 410, call->why.text);
    else
        api_reply_text(call, 200, "text/event-stream", SLICE(""));
}

static enum err open_stream(struct api_call *call, enum stream_kind kind)
{
    struct stream_reader *reader = mem_new(struct stream_reader);
    reader->call = call;
    reader->streams = api_streams(call->api);
    reader->kind = kind;
    list_init(&reader->link);
    enum err refused = streams_check_key(call->params[1], &call->why);
    if (!refused)
        refused = read_timeout(reader);
    if (refused) {
        free(reader);
        return refused;
    }
    call->state = reader;
    call->busy = true;
    run_read_begin(call->env, call->params[0], &reader->run, on_run);
    return OK;
}

enum err stream_open_output(struct api_call *call)
{
    return open_stream(call, STREAM_OUTPUT);
}

enum err stream_open_input(struct api_call *call)
{
    return open_stream(call, STREAM_INPUT);
}
