/* remote_deploy.c - deploys a folder that `npx trigger.dev deploy --dry-run` has made.
 *
 *   read build.json ─► pack ─► POST artifacts ─► upload as a form ─► POST deployments
 *   ─► poll until it is DEPLOYED, or has failed ─► which version is current now?
 *
 * The gateway responds to POST deployments when the build has ended or deploy-hold has
 * passed; in the second case the call is repeated a few times. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/archive/bundle_pack.h"
#include "server/cli/remote_session.h"
#include "supervisor/versions/manifest.h"

enum { BOUNDARY_LEN = 32, LOOK_MS = 1000 };

struct deploying {
    struct remote_session *session;
    struct manifest manifest;
    int bundle, form; /* unnamed files; -1: none */
    char boundary[BOUNDARY_LEN + 1];
    struct bytes *artifact; /* its key */
    struct bytes *url;      /* where to upload it */
    struct bytes *id, *version;
    bool existing; /* the version was there; nothing was built */
};

static bool remote_deploy_refuse(const struct deploying *deploying, const char *text)
{
    fprintf(deploying->session->err, "runcast: %s\n", text);
    return false;
}

static int open_nameless(void)
{
    FILE *file = tmpfile();
    int opened = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;
    if (file)
        fclose(file);
    return opened;
}

/* ---- the bundle ---- */

static bool read_file(const char *path, struct buf *out)
{
    struct stat found;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool right = file >= 0 && !fstat(file, &found) && S_ISREG(found.st_mode) &&
                 found.st_size <= MANIFEST_BYTES_MAX;
    while (right) {
        ssize_t got = read(file, buf_reserve(out, 1 << 16), 1 << 16);
        right = got >= 0;
        if (got <= 0)
            break;
        out->len += (size_t)got;
        right = out->len <= MANIFEST_BYTES_MAX;
    }
    if (file >= 0)
        close(file);
    return right;
}

static bool read_manifest(struct deploying *deploying)
{
    const char *folder = deploying->session->said->argument;
    struct failure why = { 0 };
    struct buf path = { 0 }, text = { 0 };
    buf_print(&path, "%s/build.json", folder);
    buf_add_char(&path, '\0');
    bool is_there = read_file(path.ptr, &text);
    if (!is_there)
        fprintf(deploying->session->err,
                "runcast: %s: cannot read build.json; name the folder that npx trigger.dev "
                "deploy --dry-run created (.trigger/tmp/build-…)\n",
                folder);
    bool right = is_there && !manifest_read(buf_slice(&text), &deploying->manifest, &why);
    if (is_there && !right)
        remote_deploy_refuse(deploying, why.text);
    buf_finish(&path);
    buf_finish(&text);
    return right;
}

static bool pack(struct deploying *deploying)
{
    struct remote_session *session = deploying->session;
    struct failure why = { 0 };
    deploying->bundle = open_nameless();
    if (deploying->bundle < 0)
        return remote_deploy_refuse(deploying,
                                    "cannot write temporary files; free some disk space");
    if (bundle_pack(session->said->argument, deploying->bundle, &session->limits, &why))
        return remote_deploy_refuse(deploying, why.text);
    return true;
}

/* ---- the upload ---- */

static uint64_t size_of(int file)
{
    struct stat found;
    return fstat(file, &found) ? 0 : (uint64_t)found.st_size;
}

static void add_part(const struct deploying *deploying, const char *name,
                     struct slice value, struct buf *out)
{
    buf_print(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%.*s\r\n",
              deploying->boundary, name, SLICE_ARG(value));
}

/* Adds the fields in their order, as the gateway requires. */
static void add_fields(const struct deploying *deploying, struct slice fields,
                       struct buf *out)
{
    struct slice key, value;
    for (struct scan_members each = scan_members(fields);
         scan_next_member(&each, &key, &value);) {
        struct bytes *text = members_text_of(value);
        char *name = mem_text(key);
        if (text)
            add_part(deploying, name, bytes_slice(text), out);
        free(name);
        bytes_unref(text);
    }
}

static bool write_all(int file, struct slice bytes)
{
    while (bytes.len) {
        ssize_t done = write(file, bytes.ptr, bytes.len);
        if (done < 0 && errno != EINTR)
            return false;
        bytes = slice_from(bytes, done > 0 ? (size_t)done : 0);
    }
    return true;
}

static bool copy_all(int from, int to, uint64_t len)
{
    off_t at = 0;
    while ((uint64_t)at < len) {
        ssize_t done = sendfile(to, from, &at, len - (uint64_t)at);
        if (done == 0 || (done < 0 && errno != EINTR))
            return false;
    }
    return true;
}

/* Writes multipart/form-data: the fields, then the file. */
static bool write_form(struct deploying *deploying, struct slice fields)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct buf head = { 0 }, tail = { 0 };
    text_random(deploying->boundary, BOUNDARY_LEN, letters);
    add_fields(deploying, fields, &head);
    buf_print(&head,
              "--%s\r\nContent-Disposition: form-data; name=\"file\"; "
              "filename=\"deployment.tar.gz\"\r\nContent-Type: application/gzip\r\n\r\n",
              deploying->boundary);
    buf_print(&tail, "\r\n--%s--\r\n", deploying->boundary);
    deploying->form = open_nameless();
    bool done = deploying->form >= 0 && write_all(deploying->form, buf_slice(&head)) &&
                copy_all(deploying->bundle, deploying->form, size_of(deploying->bundle)) &&
                write_all(deploying->form, buf_slice(&tail));
    buf_finish(&head);
    buf_finish(&tail);
    return done || remote_deploy_refuse(
                       deploying, "cannot write temporary files; free some disk space");
}

static bool offer(struct deploying *deploying)
{
    struct remote_session *session = deploying->session;
    struct buf body = { 0 };
    buf_print(&body,
              "{\"type\":\"deployment_bundle\",\"contentType\":\"application/gzip\","
              "\"contentLength\":%llu}",
              (unsigned long long)size_of(deploying->bundle));
    struct remote_call call = { .method = "POST",
                                .target = "/api/v1/artifacts",
                                .body = buf_slice(&body) };
    bool done = remote_ask(session->remote, &call);
    struct slice answer = bytes_slice(call.answer);
    if (!done) {
        remote_session_refuse(session, "the gateway rejected the bundle", &call);
    } else {
        deploying->artifact = members_text(answer, "artifactKey");
        deploying->url = members_text(answer, "uploadUrl");
        done =
            deploying->artifact && deploying->url
                ? write_form(deploying, scan_member(answer, "uploadFields"))
                : remote_deploy_refuse(
                      deploying,
                      "malformed response from the gateway: the upload address is missing");
    }
    remote_call_finish(&call);
    buf_finish(&body);
    return done;
}

static bool upload(struct deploying *deploying)
{
    struct remote_session *session = deploying->session;
    struct buf type = { 0 };
    char *url = mem_text(bytes_slice(deploying->url));
    struct remote_call call = { .target = url };
    buf_print(&type, "multipart/form-data; boundary=%s", deploying->boundary);
    bool done = remote_upload(session->remote, &call, deploying->form,
                              size_of(deploying->form), buf_slice(&type));
    if (!done)
        remote_session_refuse(session, "the upload", &call);
    remote_call_finish(&call);
    buf_finish(&type);
    free(url);
    return done;
}

/* ---- the deployment ---- */

static void fill_body(const struct deploying *deploying, struct buf *out)
{
    const struct said *said = deploying->session->said;
    const char *external_id = said_option(said, "--external-id");
    buf_add_char(out, '{');
    members_add_text(out, "type", SLICE("MANAGED"));
    members_add_bool(out, "isNativeBuild", true);
    members_add_bool(out, "fromBundle", true);
    members_add_text(out, "triggeredVia", SLICE("cli:runcast"));
    members_add_text(out, "artifactKey", bytes_slice(deploying->artifact));
    members_add_text(out, "contentHash", slice_of(deploying->manifest.content_hash));
    members_add_text(out, "runtime", slice_of(deploying->manifest.runtime));
    members_add_bool(out, "skipPromotion", said_option(said, "--skip-promotion"));
    if (external_id)
        members_add_text(out, "externalId", slice_of(external_id));
    buf_add_char(out, '}');
}

static bool initialize(struct deploying *deploying)
{
    struct remote_session *session = deploying->session;
    struct buf body = { 0 };
    fill_body(deploying, &body);
    struct remote_call call = { .method = "POST",
                                .target = "/api/v1/deployments",
                                .body = buf_slice(&body) };
    bool done = remote_ask(session->remote, &call);
    struct bytes *outcome = NULL;
    if (!done) {
        remote_session_refuse(session, "nothing was deployed", &call);
    } else {
        deploying->id = members_text(bytes_slice(call.answer), "id");
        deploying->version = members_text(bytes_slice(call.answer), "version");
        outcome = members_text(bytes_slice(call.answer), "outcome");
        done = deploying->id && deploying->version;
        if (!done)
            remote_deploy_refuse(
                deploying, "malformed response from the gateway: the version is missing");
    }
    deploying->existing = outcome && slice_is(bytes_slice(outcome), "existing");
    bytes_unref(outcome);
    remote_call_finish(&call);
    buf_finish(&body);
    return done;
}

static void tell_failure(const struct deploying *deploying, struct slice answer,
                         struct slice status)
{
    struct slice error = scan_member(answer, "errorData");
    struct bytes *message =
        scan_type(error) == SCAN_OBJECT ? members_text(error, "message") : NULL;
    struct bytes *lines =
        scan_type(error) == SCAN_OBJECT ? members_text(error, "stderr") : NULL;
    FILE *err = deploying->session->err;
    fputs("runcast: version ", err);
    remote_session_show(err, bytes_slice(deploying->version));
    fputs(" is ", err);
    remote_session_show(err, status);
    fputs(message ? ": " : "", err);
    remote_session_show(err, bytes_slice(message));
    fputs(lines ? "\n" : "", err);
    remote_session_show(err, bytes_slice(lines));
    fputc('\n', err);
    bytes_unref(message);
    bytes_unref(lines);
}

/* Returns true if the build is in progress. If not, *done: it has succeeded. */
static bool look(const struct deploying *deploying, const char *target, bool *done)
{
    struct remote_session *session = deploying->session;
    struct remote_call call = { .target = target };
    bool goes_on = false;
    *done = false;
    if (!remote_ask(session->remote, &call)) {
        remote_session_refuse(session, "cannot read the state of the build", &call);
    } else {
        static const char *const ends[] = { "FAILED", "CANCELED", "TIMED_OUT" };
        struct bytes *text = members_text(bytes_slice(call.answer), "status");
        struct slice status = bytes_slice(text);
        *done = slice_is(status, "DEPLOYED");
        goes_on = status.len && !*done;
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
            if (slice_is(status, ends[i]))
                goes_on = false;
        if (!goes_on && !*done)
            tell_failure(deploying, bytes_slice(call.answer), status);
        bytes_unref(text);
    }
    remote_call_finish(&call);
    return goes_on;
}

/* The last POST deployments may have returned before the build ended. */
static bool wait_for_end(const struct deploying *deploying)
{
    struct buf target = { 0 };
    bool done;
    buf_print(&target, "/api/v1/deployments/%.*s", SLICE_ARG(bytes_slice(deploying->id)));
    buf_add_char(&target, '\0');
    while (look(deploying, target.ptr, &done))
        remote_pause(LOOK_MS);
    buf_finish(&target);
    return done;
}

static bool tell_result(const struct deploying *deploying)
{
    struct remote_session *session = deploying->session;
    struct slice version = bytes_slice(deploying->version);
    char place[160], *current = NULL;
    if (!remote_session_current(session, &current))
        return false;
    remote_session_place(session, place);
    bool is_current = slice_is(version, current);
    if (deploying->existing)
        fprintf(session->out,
                "version %.*s of %s already has this external id: nothing was built\n",
                SLICE_ARG(version), place);
    else if (is_current)
        fprintf(session->out, "version %.*s is deployed, and the current one of %s\n",
                SLICE_ARG(version), place);
    else
        fprintf(session->out,
                "version %.*s is deployed; the current one of %s is %s; runcast promote "
                "%.*s makes this one current\n",
                SLICE_ARG(version), place, *current ? current : "none", SLICE_ARG(version));
    free(current);
    return true;
}

bool remote_deploy(struct remote_session *session)
{
    struct deploying deploying = { .session = session, .bundle = -1, .form = -1 };
    bool done = read_manifest(&deploying) && pack(&deploying) && offer(&deploying) &&
                upload(&deploying);
    if (done) {
        fprintf(session->err, "uploaded %llu bytes; the version is being built\n",
                (unsigned long long)size_of(deploying.bundle));
        done = initialize(&deploying) && (deploying.existing || wait_for_end(&deploying)) &&
               tell_result(&deploying);
    }
    manifest_finish(&deploying.manifest);
    if (deploying.bundle >= 0)
        close(deploying.bundle);
    if (deploying.form >= 0)
        close(deploying.form);
    bytes_unref(deploying.artifact);
    bytes_unref(deploying.url);
    bytes_unref(deploying.id);
    bytes_unref(deploying.version);
    return done;
}
