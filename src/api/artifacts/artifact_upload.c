/* artifact_upload.c - writes an uploaded form with a bundle to a file.
 *
 *   piece ─► multipart ─► pending ─► a job writes it ─► next
 *                            └─ too much: the body pauses until the job is done
 *
 *   everything is written ─► the file gets its final name ─► 204
 *   anything else         ─► the file is removed ─► error; the URL can be used again */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "api/artifacts/artifact_calls.h"
#include "api/artifacts/artifacts.h"
#include "api/artifacts/file_job.h"
#include "api/artifacts/multipart.h"
#include "api/request/quotas.h"
#include "base/mem.h"

enum {
    PENDING_MAX = 256 * 1024,
    KEY_FIELD_MAX = 256,
    OTHERS_MAX = 64 * 1024, /* bytes of unused fields */
    /* bytes per second, because an open upload reserves space on the disk */
    LEAST_RATE = 16 * 1024,
    RATE_EVERY_MS = 30 * 1000,
};

struct artifact_writer {
    struct api_call *call; /* NULL: the client has disconnected */
    struct loop *loop;
    struct artifact *artifact; /* owned by this writer while it is ARTIFACT_WRITING */
    struct multipart form;
    enum { FIELD_OTHER, FIELD_KEY, FIELD_FILE } field;
    struct buf key; /* of the form */
    size_t others;
    bool has_file;
    int64_t received; /* bytes of the file */
    size_t came;      /* bytes of the body received since the last check of the rate */
    struct timer rate;
    struct buf pending; /* to be written next */
    bool whole;         /* the whole body has arrived */
    enum err failed;    /* the error to reply with; OK: none so far */
    bool in_flight;     /* the job is */

    /* Used by the job while it is in flight. */
    struct file_job job;
    struct buf writing;
    char *path, *part_path;
    int fd; /* -1: not open */
};

static void writer_free(struct artifact_writer *writer)
{
    timers_clear(loop_timers(writer->loop), &writer->rate);
    multipart_finish(&writer->form);
    buf_finish(&writer->key);
    buf_finish(&writer->pending);
    buf_finish(&writer->writing);
    free(writer->path);
    free(writer->part_path);
    free(writer);
}

/* Detaches the call, which is about to get its response. */
static struct api_call *take_call(struct artifact_writer *writer)
{
    struct api_call *call = writer->call;
    writer->call = NULL;
    call->state = NULL;
    call->on_gone = NULL;
    return call;
}

static void begin_job(struct artifact_writer *writer, void (*work)(struct file_job *job),
                      void (*done)(struct file_job *job))
{
    writer->in_flight = true;
    writer->job.work = work;
    writer->job.done = done;
    file_job_begin(writer->loop, &writer->job);
}

/* ---- failure ---- */

static void answer_failed(struct artifact_writer *writer)
{
    writer->artifact->state = ARTIFACT_OFFERED;
    writer->artifact->written = 0;
    if (writer->call)
        api_reply_error(take_call(writer), writer->failed);
    writer_free(writer);
}

static void undo_work(struct file_job *job)
{
    struct artifact_writer *writer = container_of(job, struct artifact_writer, job);
    close(writer->fd);
    unlink(writer->part_path);
}

static void on_undone(struct file_job *job)
{
    answer_failed(container_of(job, struct artifact_writer, job));
}

/* Removes what was written, then replies: the next upload writes to the same file. */
static void undo(struct artifact_writer *writer)
{
    if (writer->in_flight) {
        file_job_cancel(&writer->job); /* it calls this again when it is done */
        return;
    }
    if (writer->fd >= 0)
        begin_job(writer, undo_work, on_undone);
    else
        answer_failed(writer);
}

static void fail_with(struct artifact_writer *writer, enum err err)
{
    if (writer->failed)
        return;
    writer->failed = err;
    undo(writer);
}

/* Fails the upload after its job. An earlier failure, which has waited for it, is kept. */
static void fail_again(struct artifact_writer *writer, enum err err)
{
    if (!writer->failed)
        writer->failed = err;
    undo(writer);
}

static void on_gone(struct api_call *call)
{
    struct artifact_writer *writer = call->state;
    api_reply_gone(take_call(writer));
    fail_with(writer, ERR_CANCELED);
}

/* ---- the rate ---- */

static void on_rate(struct timer *timer);

static void await_more(struct artifact_writer *writer)
{
    writer->came = 0;
    loop_set_timer(writer->loop, &writer->rate,
                   timers_kind(loop_timers(writer->loop), on_rate), RATE_EVERY_MS);
}

/* Times out a slow upload. A body that is paused or complete waits for the disk, so it is
 * not slow. */
static void on_rate(struct timer *timer)
{
    struct artifact_writer *writer = container_of(timer, struct artifact_writer, rate);
    if (writer->failed || writer->whole || !writer->call)
        return;
    if (writer->came >= (size_t)LEAST_RATE * RATE_EVERY_MS / 1000 ||
        writer->call->x->body_paused) {
        await_more(writer);
        return;
    }
    explain(&writer->call->why, ERR_TIMEOUT,
            "The upload was slower than %d KiB/s; try again, or from a faster network",
            LEAST_RATE / 1024);
    fail_with(writer, ERR_TIMEOUT);
}

/* ---- the form ---- */

static struct artifact_writer *writer_of(struct multipart *form)
{
    return container_of(form, struct artifact_writer, form);
}

static enum err forbid(struct multipart *form, const char *text)
{
    return explain(form->why, ERR_FORBIDDEN, "%s", text);
}

static enum err on_part(struct multipart *form, struct slice name, bool is_file)
{
    struct artifact_writer *writer = writer_of(form);
    (void)is_file;
    writer->field = slice_is(name, "file")  ? FIELD_FILE
                    : slice_is(name, "key") ? FIELD_KEY
                                            : FIELD_OTHER;
    if (writer->field == FIELD_FILE && writer->has_file)
        return forbid(form, "The form has two files");
    if (writer->field == FIELD_FILE &&
        !slice_is(buf_slice(&writer->key), writer->artifact->key))
        return forbid(form, "The form's key is missing before its file, or is not the one "
                            "that was given with this address");
    return OK;
}

static enum err on_content(struct multipart *form, struct slice piece)
{
    struct artifact_writer *writer = writer_of(form);
    if (writer->field == FIELD_FILE) {
        writer->received += (int64_t)piece.len;
        if (writer->received > writer->artifact->length)
            return explain(form->why, ERR_FORBIDDEN,
                           "The file has more than the %" PRId64 " bytes announced",
                           writer->artifact->length);
        buf_add(&writer->pending, piece);
    } else if (writer->field == FIELD_KEY) {
        buf_add(&writer->key, piece);
        if (writer->key.len > KEY_FIELD_MAX)
            return forbid(form, "The form's key is too long");
    } else if ((writer->others += piece.len) > OTHERS_MAX) {
        return forbid(form, "The form has too much in other fields");
    }
    return OK;
}

static enum err on_part_end(struct multipart *form)
{
    struct artifact_writer *writer = writer_of(form);
    writer->has_file |= writer->field == FIELD_FILE;
    return OK;
}

/* ---- the file ---- */

static int open_part(struct artifact_writer *writer)
{
    writer->fd = open(writer->part_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return writer->fd < 0 ? errno : 0;
}

static void write_work(struct file_job *job)
{
    struct artifact_writer *writer = container_of(job, struct artifact_writer, job);
    if (writer->fd < 0 && (job->error = open_part(writer)))
        return;
    for (size_t at = 0; at < writer->writing.len;) {
        ssize_t count =
            write(writer->fd, writer->writing.ptr + at, writer->writing.len - at);
        if (count < 0) {
            job->error = errno;
            return;
        }
        at += (size_t)count;
    }
}

static void name_work(struct file_job *job)
{
    struct artifact_writer *writer = container_of(job, struct artifact_writer, job);
    if (rename(writer->part_path, writer->path)) {
        job->error = errno;
        return;
    }
    close(writer->fd);
    writer->fd = -1;
}

static enum err err_of_errno(int error)
{
    return error == ENOSPC || error == EDQUOT ? ERR_STORE_FULL : ERR_STORE;
}

static void on_named(struct file_job *job)
{
    struct artifact_writer *writer = container_of(job, struct artifact_writer, job);
    writer->in_flight = false;
    if (job->error) {
        fail_again(writer, err_of_errno(job->error));
        return;
    }
    writer->artifact->state = ARTIFACT_WHOLE;
    if (writer->call)
        api_reply_empty(take_call(writer), 204);
    writer_free(writer);
}

static void go_on(struct artifact_writer *writer);

static void on_written(struct file_job *job)
{
    struct artifact_writer *writer = container_of(job, struct artifact_writer, job);
    writer->in_flight = false;
    writer->artifact->written += (int64_t)writer->writing.len;
    if (writer->failed || job->error)
        fail_again(writer, err_of_errno(job->error));
    else
        go_on(writer);
}

static void write_pending(struct artifact_writer *writer)
{
    struct buf written = writer->writing;
    writer->writing = writer->pending;
    writer->pending = written;
    buf_clear(&writer->pending);
    begin_job(writer, write_work, on_written);
}

/* Ends the upload after the whole body was written. */
static void artifact_upload_finish(struct artifact_writer *writer)
{
    if (writer->has_file && writer->received == writer->artifact->length) {
        begin_job(writer, name_work, on_named);
        return;
    }
    explain(&writer->call->why, ERR_FORBIDDEN,
            writer->has_file ? "The file has fewer bytes than announced"
                             : "The form has no file");
    fail_with(writer, ERR_FORBIDDEN);
}

static void go_on(struct artifact_writer *writer)
{
    if (writer->in_flight)
        return;
    if (writer->pending.len)
        write_pending(writer);
    else if (writer->whole)
        artifact_upload_finish(writer);
    else
        http_body_resume(writer->call->x);
}

/* ---- the call ---- */

static enum err artifact_upload_begin(struct api_call *call, struct artifact_writer **out)
{
    struct artifacts *artifacts = api_artifacts(call->api);
    struct artifact *artifact =
        artifacts_find(artifacts, call->account->number, call->params[1]);
    if (!artifact || artifact->state != ARTIFACT_OFFERED)
        return explain(&call->why, ERR_FORBIDDEN,
                       "Upload not found: it was used or has expired; request a new one");
    struct artifact_writer *writer = mem_new(struct artifact_writer);
    writer->form = (struct multipart){ .on_part = on_part,
                                       .on_content = on_content,
                                       .on_part_end = on_part_end,
                                       .why = &call->why };
    enum err err = multipart_init(&writer->form, http_header(call->x, "content-type"));
    if (err) {
        free(writer);
        return err;
    }
    writer->call = call;
    writer->loop = engine_loop(api_engine(call->api));
    writer->artifact = artifact;
    writer->path = artifact_path(artifacts, artifact, false);
    writer->part_path = artifact_path(artifacts, artifact, true);
    writer->fd = -1;
    artifact->state = ARTIFACT_WRITING;
    call->state = writer;
    call->on_gone = on_gone;
    await_more(writer);
    *out = writer;
    return OK;
}

enum err artifact_upload_piece(struct api_call *call, struct slice piece)
{
    struct artifact_writer *writer = call->state;
    enum err err = writer ? OK : artifact_upload_begin(call, &writer);
    if (err)
        return err;
    if (writer->failed)
        return OK; /* the reply is in progress */
    writer->came += piece.len;
    err = multipart_feed(&writer->form, piece);
    if (!err)
        err = quotas_hold_piece(call, writer->pending.capacity + writer->writing.capacity);
    if (err) {
        fail_with(writer, err);
        return OK;
    }
    if (writer->pending.len > PENDING_MAX)
        http_body_pause(call->x);
    if (writer->pending.len)
        go_on(writer);
    return OK;
}

enum err artifact_upload(struct api_call *call)
{
    struct artifact_writer *writer = call->state;
    enum err err = writer ? OK : artifact_upload_begin(call, &writer);
    if (err)
        return err;
    call->busy = true;
    if (writer->failed)
        return OK;
    err = multipart_end(&writer->form);
    writer->whole = true;
    if (err)
        fail_with(writer, err);
    else
        go_on(writer);
    return OK;
}
