/* build_results.c - receives the result of a build, and serves the files that are kept.
 *
 *   complete, ok     ─► the index, written and synced ─► DEPLOYED ─► current ─► answered
 *   complete, failed ─► FAILED ─► answered
 *   A repetition meanwhile gets 503; afterwards it gets the same response.
 *
 *   archive: read in pieces, each when the previous one is sent
 *
 * The archive and the index are for the machines that execute the version. */
#include "api/artifacts/kept_files.h"
#include "api/deployments/build_calls.h"
#include "api/deployments/builds.h"
#include "api/deployments/deployment_calls.h"
#include "api/deployments/deployment_show.h"
#include "api/request/body_fields.h"
#include "base/json/json_tree.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"

enum {
    ERROR_BYTES_MAX = 256 * 1024,
    INDEX_BYTES_MAX = 8 << 20,
};

static const int64_t version_bytes_max = INT64_C(1) << 40;

/* ---- complete ---- */

struct completing {
    struct api_call *call;
    struct deployment *deployment;
    bool ok;
    bool writes;    /* deployment::completing was set by this call */
    unsigned build; /* the one that is complete */
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT];
    int64_t bytes; /* of the version's folder */
    struct bytes *runtime_version;
    struct bytes *error;
    struct kept_writing writing; /* of the index */
    struct deployment_command command;
    struct deployment_watcher watcher;
};

static void completing_free(struct completing *op)
{
    if (op->writes)
        op->deployment->completing = false;
    list_remove(&op->watcher.link);
    bytes_unref(op->runtime_version);
    bytes_unref(op->error);
    bytes_unref(op->writing.content);
    free(op);
}

static void build_completing_refuse(struct completing *op, enum err err)
{
    struct api_call *call = op->call;
    if (op->command.why.code)
        call->why = op->command.why;
    completing_free(op);
    api_reply_error(call, err);
}

/* Also replies for a version that is already current, if the builder repeats the call. */
static void reply_completed(struct api_call *call, const struct deployment *deployment)
{
    struct buf out = { 0 };
    buf_add_text(&out, "{\"ok\":true");
    members_add_text(&out, "status",
                     slice_of(deployment_status_name(deployment->row.status)));
    buf_add_char(&out, '}');
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
}

static void on_changed(struct deployment_watcher *watcher, struct deployment *deployment)
{
    struct completing *op = container_of(watcher, struct completing, watcher);
    struct api_call *call = op->call;
    if (!deployment_is_settled(deployment))
        return;
    completing_free(op);
    reply_completed(call, deployment);
}

static bool is_linked(const struct deployment *deployment)
{
    return deployment->row.status == DEPLOYMENT_DEPLOYING && show_worker_of(deployment);
}

static struct bytes *not_registered(void)
{
    struct deployment_error error = {
        .name = SLICE("BuildError"),
        .message = SLICE("indexing the bundle ended without registering its tasks")
    };
    return deployment_error_write(&error);
}

static enum err decide_complete(struct deployment_command *command,
                                const struct deployment *deployment,
                                struct deployment_row *next)
{
    struct completing *op = container_of(command, struct completing, command);
    int64_t now = loop_wall_ms(deployment->all->loop);
    if (!deployment_is_being_built(deployment->row.status) ||
        deployment->row.builds != op->build)
        return explain(&command->why, ERR_CONFLICT, "The deployment is %s",
                       deployment_status_name(deployment->row.status));
    if (!op->ok || !is_linked(deployment)) {
        deployment_row_end(next, DEPLOYMENT_FAILED,
                           op->ok ? not_registered() : bytes_ref(op->error), NULL, now);
        return OK;
    }
    next->status = DEPLOYMENT_DEPLOYED;
    next->deployed_at = next->ended_at = now;
    next->has_index = true;
    next->promotes = !next->skip_promotion;
    next->version_bytes = op->bytes;
    memcpy(next->architecture, op->architecture, MACHINE_TEXT);
    memcpy(next->libc, op->libc, MACHINE_TEXT);
    bytes_set(&next->runtime_version, op->runtime_version);
    return OK;
}

/* Watchers were called before this, so the call of a settled deployment gets its response
 * here. */
static void on_decided(struct deployment_command *command, struct deployment *deployment,
                       enum err status)
{
    struct completing *op = container_of(command, struct completing, command);
    if (status) {
        build_completing_refuse(op, status);
        return;
    }
    deployment_watch(deployment, &op->watcher);
    on_changed(&op->watcher, deployment);
}

static void decide(struct completing *op)
{
    op->command.decide = decide_complete;
    op->command.done = on_decided;
    op->watcher.changed = on_changed;
    deployment_command_begin(op->deployment, &op->command);
}

static void on_index(struct kept_writing *writing, enum err status)
{
    struct completing *op = container_of(writing, struct completing, writing);
    op->deployment->all->busy--;
    if (status)
        build_completing_refuse(op, status);
    else
        decide(op);
}

static void read_machine(struct slice body, const char *member, char text[MACHINE_TEXT])
{
    struct bytes *value = members_text(body, member);
    if (value && value->len < MACHINE_TEXT)
        snprintf(text, MACHINE_TEXT, "%s", value->data);
    bytes_unref(value);
}

static enum err check_hash(struct completing *op, struct slice body)
{
    struct bytes *hash = members_text(body, "sha256");
    bool same = hash && slice_is(bytes_slice(hash), op->deployment->row.archive_hash);
    bytes_unref(hash);
    return same ? OK
                : explain(&op->call->why, ERR_INVALID,
                          "sha256: differs from the archive of the job");
}

static enum err read_made(struct completing *op, struct body_fields *fields,
                          struct slice body)
{
    enum err err = check_hash(op, body);
    if (err)
        return err;
    read_machine(body, "architecture", op->architecture);
    read_machine(body, "libc", op->libc);
    op->runtime_version = members_text(body, "runtimeVersion");
    members_number(body, "bytes", &op->bytes);
    if (op->bytes < 0 || op->bytes > version_bytes_max)
        return explain(&op->call->why, ERR_INVALID,
                       "bytes: must be the size of the version's folder");
    op->writing.content = body_fields_bytes(fields, scan_member(body, "index"));
    if (!op->writing.content || op->writing.content->len > INDEX_BYTES_MAX)
        return explain(&op->call->why, ERR_INVALID,
                       "index: must be the text of index.json, of at most %d bytes",
                       INDEX_BYTES_MAX);
    return OK;
}

static enum err read_failed(struct completing *op, struct slice body)
{
    struct slice span = scan_member(body, "error");
    json_t *error = NULL;
    if (span.ptr && span.len <= ERROR_BYTES_MAX && scan_type(span) == SCAN_OBJECT)
        error = json_tree_read(span, 0, NULL);
    if (error)
        op->error = build_error_read(op->deployment, error);
    json_decref(error);
    return op->error ? OK
                     : explain(&op->call->why, ERR_INVALID,
                               "error: must be an object with a name and a message");
}

static enum err read_complete(struct completing *op, struct body_fields *fields,
                              struct slice body)
{
    int64_t attempt = 0;
    enum scan_type ok = scan_type(scan_member(body, "ok"));
    members_number(body, "attempt", &attempt);
    if (ok != SCAN_TRUE && ok != SCAN_FALSE)
        return explain(&op->call->why, ERR_INVALID, "ok: must be true or false");
    enum err err = build_check_hands(op->call, op->deployment, attempt);
    op->ok = ok == SCAN_TRUE;
    op->build = op->deployment->row.builds;
    if (err)
        return err;
    /* A repetition must not touch the index that the row will name. */
    if (op->deployment->completing)
        return explain(
            &op->call->why, ERR_STORE,
            "The result of the build is already being stored; try again in a moment");
    return op->ok ? read_made(op, fields, body) : read_failed(op, body);
}

static void build_completing_begin(struct completing *op)
{
    struct deployments *all = op->deployment->all;
    op->call->busy = true;
    build_touch(op->deployment);
    if (!op->ok) {
        decide(op);
        return;
    }
    op->writing.name =
        kept_file_name(op->deployment->env, op->deployment->row.id, ".index.json");
    op->writing.done = on_index;
    op->writes = op->deployment->completing = true;
    all->busy++;
    kept_writing_begin(all->files, &op->writing);
}

static enum err complete(struct api_call *call, struct deployment *deployment,
                         struct body_fields *fields, struct slice body)
{
    struct completing *op = mem_new(struct completing);
    op->call = call;
    op->deployment = deployment;
    list_init(&op->watcher.link);
    enum err refused = read_complete(op, fields, body);
    if (refused)
        completing_free(op);
    else
        build_completing_begin(op);
    return refused;
}

enum err build_complete(struct api_call *call)
{
    struct deployment *deployment = build_find_served(call);
    struct body_fields *fields;
    struct slice body;
    enum err refused = body_fields_end(call, &fields, &body);
    if (refused)
        return refused;
    if (!deployment)
        refused = explain(&call->why, ERR_NOT_FOUND, "Deployment not found");
    else if (deployment->row.status == DEPLOYMENT_DEPLOYED &&
             deployment_is_settled(deployment) && members_is_true(body, "ok"))
        reply_completed(call, deployment); /* the response was lost, so it was repeated */
    else
        refused = complete(call, deployment, fields, body);
    body_fields_free(fields);
    return refused;
}

/* ---- serving what is kept ---- */

static enum err not_kept(struct api_call *call)
{
    return explain(&call->why, ERR_NOT_FOUND, "The version is no longer kept");
}

struct file_sending {
    struct api_call *call;
    struct deployments *all;
    uint32_t env;
    char id[ID_MAX];
    struct kept_reading reading;
    bool begun, in_flight;
};

static void on_sending_gone(struct api_call *call)
{
    struct file_sending *op = call->state;
    kept_reading_cancel(&op->reading);
}

static void end_sending(struct file_sending *op, bool whole)
{
    struct exchange *x = op->call->x;
    op->call->on_gone = NULL;
    api_call_end(op->call);
    free(op);
    if (whole)
        http_stream_end(x);
    else
        http_stream_cut(x);
}

static void read_piece(struct file_sending *op)
{
    op->in_flight = true;
    op->reading.limit = op->call->x->method == HTTP_HEAD_ ? 0 : FILE_PIECE_BYTES;
    kept_reading_begin(op->all->files, &op->reading);
}

static void on_drained(struct api_call *call)
{
    struct file_sending *op = call->state;
    if (op->in_flight)
        return; /* on_piece continues */
    if (http_stream_write(call->x, SLICE("")))
        read_piece(op);
    else
        end_sending(op, false);
}

static void begin_sending(struct file_sending *op)
{
    struct api_call *call = op->call;
    op->begun = true;
    call->on_drained = on_drained;
    api_stream_begin_sized(call, (size_t)op->reading.size);
}

/* Explains a missing file. The version may have been dropped in between. If not, its file
 * was removed by other means: machines that have the version must not be informed that it
 * is no longer kept, because they would remove it too. */
static enum err explain_missing(const struct file_sending *op)
{
    const struct deployment *deployment =
        deployments_find(op->all, op->env, slice_of(op->id));
    if (!deployment || !deployment->row.archive_bytes)
        return not_kept(op->call);
    return explain(&op->call->why, ERR_STORE,
                   "The file of this version is missing in the gateway's storage");
}

static void on_piece(struct kept_reading *reading, enum err status)
{
    struct file_sending *op = container_of(reading, struct file_sending, reading);
    struct api_call *call = op->call;
    struct bytes *piece = op->reading.piece;
    op->in_flight = false;
    op->reading.piece = NULL;
    if (status && !op->begun) {
        enum err err = status == ERR_NOT_FOUND ? explain_missing(op) : status;
        free(op);
        call->state = NULL;
        call->on_gone = NULL;
        api_reply_error(call, err);
        return;
    }
    if (!op->begun)
        begin_sending(op);
    bool taken = !status && piece->len && call->x->method != HTTP_HEAD_ &&
                 http_stream_write_shared(call->x, piece);
    op->reading.offset += piece ? piece->len : 0;
    bytes_unref(piece);
    bool whole = op->reading.offset == op->reading.size || call->x->method == HTTP_HEAD_;
    if (!taken || whole)
        end_sending(op, whole && !status);
    else if (!http_stream_unsent(call->x))
        read_piece(op);
}

static enum err send_file(struct api_call *call, const struct deployment *deployment,
                          const char *ending, const char *type)
{
    struct file_sending *op = mem_new(struct file_sending);
    op->call = call;
    op->all = deployment->all;
    op->env = deployment->env;
    memcpy(op->id, deployment->row.id, sizeof(op->id));
    op->reading.name = kept_file_name(deployment->env, deployment->row.id, ending);
    op->reading.done = on_piece;
    api_add_header(call, "content-type", slice_of(type));
    call->busy = true;
    call->state = op;
    call->on_gone = on_sending_gone;
    read_piece(op);
    return OK;
}

enum err build_archive(struct api_call *call)
{
    const struct deployment *deployment = build_find_served(call);
    char tag[FILE_HASH_TEXT + 2];
    if (!deployment)
        return ERR_NOT_FOUND;
    if (!deployment->row.archive_bytes)
        return not_kept(call);
    snprintf(tag, sizeof(tag), "\"%s\"", deployment->row.archive_hash);
    api_add_header(call, "etag", slice_of(tag));
    return send_file(call, deployment, ".tar.gz", "application/gzip");
}

enum err build_index(struct api_call *call)
{
    const struct deployment *deployment = build_find_served(call);
    if (!deployment)
        return ERR_NOT_FOUND;
    if (!deployment->row.has_index)
        return not_kept(call);
    return send_file(call, deployment, ".index.json", "application/json; charset=utf-8");
}
