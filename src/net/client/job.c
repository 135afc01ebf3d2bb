/* job.c - yields the request in stretches, and stores the response in memory or a file. */
#include "net/client/job.h"

#include <errno.h>
#include <openssl/crypto.h>

#include "base/mem.h"
#include "base/rope.h"
#include "base/text.h"
#include "net/client/head.h"

enum {
    FILE_BYTES = 64 * 1024,     /* read from a file at once */
    UNWRITTEN_MAX = 256 * 1024, /* above this, the server waits for the disk */
    CHANGED_BYTES = 16 * 1024,  /* read from a rope at once */
    SHORT_BODY = 16 * 1024,     /* sent together with the head */
    MEMORY_MAX = 1 << 20,
    FILE_MAX = 1 << 30,
    WAIT_MS = 30 * 1000,
};

static void maybe_over(struct job *job)
{
    if (job->ended && !job->upload.busy && !job->download.busy)
        loop_defer(job->loop, &job->over);
}

/* ---- sending ---- */

static struct slice next_of_rope(struct job *job)
{
    static char changed[CHANGED_BYTES];
    struct rope_place place = job->place;
    return rope_read(job->body, &place, changed, sizeof(changed));
}

static enum job_state next_of_file(struct job *job, struct slice *bytes)
{
    struct transfer *upload = &job->upload;
    if (!job->upload_left)
        return JOB_IS_SENT;
    if (upload->busy)
        return JOB_WAITS;
    if (job->why.code)
        return JOB_CANNOT;
    if (job->upload_sent < upload->buf.len) {
        *bytes = slice_from(buf_slice(&upload->buf), job->upload_sent);
        return JOB_HAS_BYTES;
    }
    job->upload_sent = 0;
    transfer_read(upload,
                  job->upload_left < FILE_BYTES ? (size_t)job->upload_left : FILE_BYTES);
    return JOB_WAITS;
}

enum job_state job_next(struct job *job, struct slice *bytes)
{
    size_t body_len = job->body ? job->body->len : 0;
    if (job->sent < job->head.len)
        *bytes = slice_from(buf_slice(&job->head), job->sent);
    else if (job->uploads)
        return next_of_file(job, bytes);
    else if (job->sent == job->head.len + body_len)
        return JOB_IS_SENT;
    else if (bytes_are_parts(job->body))
        *bytes = next_of_rope(job);
    else
        *bytes = slice_from(bytes_slice(job->body), job->sent - job->head.len);
    return JOB_HAS_BYTES;
}

void job_advance(struct job *job, size_t len)
{
    bool in_head = job->sent < job->head.len;
    job->sent_some |= len > 0;
    if (!in_head && job->uploads) {
        job->upload_sent += len;
        job->upload_left -= len;
        return;
    }
    job->sent += len;
    if (!in_head && bytes_are_parts(job->body))
        rope_skip(job->body, &job->place, len);
}

static void rewind_file(struct job *job)
{
    job->upload.at = 0;
    buf_clear(&job->upload.buf);
    job->upload_sent = 0;
    job->upload_left = job->upload_len;
}

void job_rewind(struct job *job)
{
    job->why = (struct failure){ 0 };
    job->sent = 0;
    job->place = (struct rope_place){ 0 };
    job->upload_stale = job->upload.busy;
    if (!job->upload.busy)
        rewind_file(job);
}

static void on_uploaded(struct transfer *transfer)
{
    struct job *job = container_of(transfer, struct job, upload);
    if (transfer->error)
        explain(&job->why, ERR_STORE, "cannot read the file: %s",
                strerror(transfer->error));
    else if (!transfer->buf.len)
        explain(&job->why, ERR_STORE, "the file is shorter than announced");
    if (job->upload_stale)
        rewind_file(job);
    job->upload_stale = false;
    if (job->ended)
        maybe_over(job);
    else
        job->on_moved(job);
}

/* ---- receiving ---- */

static void refuse_size(struct job *job)
{
    explain(&job->why, ERR_TOO_LARGE, "response too large");
}

/* Swaps the buffer that was written to the file with the one that filled up meanwhile. */
static void write_some(struct job *job)
{
    if (job->download.busy || !job->unwritten.len || job->ended || job->why.code)
        return;
    struct buf written = job->download.buf;
    job->download.buf = job->unwritten;
    job->unwritten = written;
    transfer_write(&job->download);
}

static void note_disk(struct job *job)
{
    int error = job->download.error;
    bool full = error == ENOSPC || error == EDQUOT;
    explain(&job->why, full ? ERR_STORE_FULL : ERR_STORE, "cannot write the file: %s",
            strerror(error));
}

static void on_downloaded(struct transfer *transfer)
{
    struct job *job = container_of(transfer, struct job, download);
    if (transfer->error && !job->why.code)
        note_disk(job);
    if (job->ended) {
        maybe_over(job);
    } else if (job->whole) {
        job_complete(job);
    } else {
        write_some(job);
        job->on_moved(job);
    }
}

static void on_piece(struct answer *answer, struct slice piece)
{
    struct job *job = container_of(answer, struct job, answer);
    if (job->why.code)
        return;
    job->taken += piece.len;
    if (job->taken > (job->downloads ? job->answer_max : job->memory_max))
        refuse_size(job);
    else
        buf_add(job->downloads ? &job->unwritten : &job->memory, piece);
}

static void begin_answer(struct job *job)
{
    answer_begin(&job->answer);
    job->answer.is_for_head = slice_starts(buf_slice(&job->head), "HEAD ");
    job->answer.on_piece = on_piece;
}

/* Rejects a body that is announced as too large before receiving it. */
static void check_head(struct job *job)
{
    uint64_t len = 0;
    job->downloads = job->fetch->download.used && job->answer.status / 100 == 2;
    text_to_u64(answer_header(&job->answer, "content-length"), &len);
    if (!job->answer.whole && len > (job->downloads ? job->answer_max : job->memory_max))
        refuse_size(job);
}

static enum answer_event judge(struct job *job, enum answer_event event)
{
    if (event == ANSWER_HEAD)
        check_head(job);
    if (job->why.code)
        return ANSWER_FAULT;
    if (event != ANSWER_FAULT)
        return event;
    if (job->answer.fault)
        explain(&job->why, ERR_BAD_ANSWER, "%s", job->answer.fault);
    else
        explain(&job->why, ERR_LOST,
                "the connection closed before the end of the response");
    return event;
}

enum answer_event job_receive(struct job *job, struct slice *bytes)
{
    enum answer_event event = judge(job, answer_feed(&job->answer, bytes));
    write_some(job);
    return event;
}

enum answer_event job_receive_end(struct job *job)
{
    return judge(job, answer_end(&job->answer));
}

bool job_is_full(const struct job *job)
{
    return job->unwritten.len > UNWRITTEN_MAX;
}

/* ---- the end ---- */

void job_complete(struct job *job)
{
    job->whole = true;
    if (job->why.code)
        job_end(job, job->why.code, job->why.text);
    else if (job->unwritten.len)
        write_some(job);
    else if (!job->download.busy)
        job_end(job, OK, "");
}

void job_end(struct job *job, enum err error, const char *why)
{
    if (job->ended)
        return;
    struct failure outcome = { .code = error };
    snprintf(outcome.text, sizeof(outcome.text), "%s", why);
    job->why = outcome;
    job->ended = true;
    deadline_clear(job->loop, &job->total);
    maybe_over(job);
}

static void on_over(struct deferred *deferred)
{
    struct job *job = container_of(deferred, struct job, over);
    job->on_over(job);
}

void job_report(struct job *job)
{
    struct fetch *fetch = job->fetch;
    fetch->error = job->why.code;
    fetch->why = job->why.code ? job->why.text : NULL;
    fetch->status = job->why.code ? 0 : job->answer.status;
    fetch->answer_len = job->taken;
    fetch->answer = job->why.code || job->downloads ? NULL : buf_take(&job->memory);
    struct bytes *answer = fetch->answer;
    fetch->done(fetch);
    bytes_unref(answer);
    job_destroy(job);
}

/* ---- making ---- */

static bool is_one_of(const char *method, const char *methods)
{
    struct slice rest = slice_of(methods), one;
    while (slice_split(&rest, ' ', &one))
        if (slice_is(one, method))
            return true;
    return false;
}

static bool has_body(const struct fetch *fetch, const char *method)
{
    return fetch->body || fetch->upload.used || is_one_of(method, "POST PUT PATCH");
}

static uint64_t body_len(const struct fetch *fetch)
{
    if (fetch->upload.used)
        return fetch->upload.len;
    return fetch->body ? fetch->body->len : 0;
}

static int64_t or_default(int64_t set, int64_t otherwise)
{
    return set ? set : otherwise;
}

static void set_up(struct job *job, struct loop *loop, struct fetch *fetch,
                   const char *method)
{
    job->fetch = fetch;
    job->loop = loop;
    list_init(&job->link);
    list_init(&job->waiting);
    if (fetch->body && !bytes_are_parts(fetch->body) && fetch->body->len <= SHORT_BODY)
        buf_add(&job->head, bytes_slice(fetch->body));
    else
        job->body = bytes_ref(fetch->body);
    job->uploads = fetch->upload.used;
    job->upload_len = job->upload_left = fetch->upload.len;
    job->is_idempotent =
        fetch->idempotent || is_one_of(method, "GET HEAD PUT DELETE OPTIONS");
    job->first_byte_ms = or_default(fetch->first_byte_ms, WAIT_MS);
    job->silence_ms = or_default(fetch->silence_ms, WAIT_MS);
    job->memory_max =
        fetch->answer_max && (!fetch->download.used || fetch->answer_max < MEMORY_MAX)
            ? fetch->answer_max
            : MEMORY_MAX;
    job->answer_max = fetch->answer_max ? fetch->answer_max : FILE_MAX;
    job->over.fn = on_over;
    transfer_init(&job->upload, loop, fetch->upload.fd, on_uploaded);
    transfer_init(&job->download, loop, fetch->download.fd, on_downloaded);
    begin_answer(job);
}

enum err job_create(struct loop *loop, const struct url *url, struct fetch *fetch,
                    struct job **job, struct failure *why)
{
    const char *method = fetch->method ? fetch->method : "GET";
    struct head_request request = {
        .method = method,
        .url = url,
        .target = fetch->target,
        .headers = fetch->headers,
        .header_count = fetch->header_count,
        .has_body = has_body(fetch, method),
        .body_len = body_len(fetch),
    };
    struct buf head = { 0 };
    enum err err = head_write(&head, &request, why);
    if (err) {
        buf_finish(&head);
        return err;
    }
    *job = mem_new(struct job);
    (*job)->head = head;
    set_up(*job, loop, fetch, method);
    return OK;
}

/* Wipes the head, because it contains credentials. */
void job_destroy(struct job *job)
{
    loop_cancel_deferred(&job->over);
    OPENSSL_cleanse(job->head.ptr, job->head.capacity);
    buf_finish(&job->head);
    bytes_unref(job->body);
    transfer_finish(&job->upload);
    transfer_finish(&job->download);
    buf_finish(&job->memory);
    buf_finish(&job->unwritten);
    answer_finish(&job->answer);
    free(job);
}
