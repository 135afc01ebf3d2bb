/* artifact_routes.c - the routes of bundle uploads, and the handler that offers a URL.
 *
 *   POST /api/v1/artifacts {type, contentLength} ─► {artifactKey, uploadUrl, uploadFields}
 *   POST uploadUrl, the fields and then the file ─► artifact_upload.c
 *
 * Only finished bundles are accepted: to build from sources the gateway would have to
 * install all packages of a project and run its tools. */
#include <inttypes.h>

#include "accounts/auth/signed_url.h"
#include "api/artifacts/artifact_calls.h"
#include "api/artifacts/artifacts.h"
#include "api/artifacts/bundle_file.h"
#include "base/json/members.h"
#include "base/mem.h"

enum { OFFER_BODY = 4096 };

/* The limit of the route. A setting limits bundles, and an offer states the length of its
 * bundle. */
#define UPLOAD_BODY ((size_t)1 << 40)

static enum err check_type(struct api_call *call, const json_t *body)
{
    const char *type = json_string_value(json_object_get(body, "type"));
    if (type && !strcmp(type, "deployment_bundle"))
        return OK;
    if (!type || !strcmp(type, "deployment_context"))
        return explain(&call->why, ERR_INVALID,
                       "this gateway takes bundles: deploy without --native-build, or with "
                       "--native-build --local-bundle");
    return explain(&call->why, ERR_INVALID, "type: must be \"deployment_bundle\"");
}

static enum err read_length(struct api_call *call, const json_t *body, int64_t *length)
{
    const json_t *value = json_object_get(body, "contentLength");
    int64_t most = artifacts_bytes_max(api_artifacts(call->api));
    double number = json_number_value(value);
    if (!value || json_is_null(value))
        return explain(&call->why, ERR_INVALID,
                       "contentLength: is missing; a bundle may have up to %" PRId64
                       " bytes (setting deploy-bundle)",
                       most);
    if (number > (double)most)
        return explain(&call->why, ERR_INVALID,
                       "contentLength: the bundle has %.0f bytes, and at most %" PRId64
                       " are taken (setting deploy-bundle)",
                       number, most);
    if (!json_is_number(value) || number < 1 || number != (double)(int64_t)number)
        return explain(&call->why, ERR_INVALID,
                       "contentLength: must be a whole number of bytes, at least 1");
    *length = (int64_t)number;
    return OK;
}

static enum err read_offer(struct api_call *call, int64_t *length)
{
    json_t *body;
    enum err err = api_read_json(call, &body);
    if (err)
        return err;
    if (call->account->type == ENVIRONMENT_DEV)
        err = explain(&call->why, ERR_INVALID,
                      "A development environment has no deployments; use trigger dev");
    err = err ? err : check_type(call, body);
    err = err ? err : read_length(call, body, length);
    json_decref(body);
    return err;
}

static void add_url(struct api_call *call, const struct artifact *artifact, struct buf *out)
{
    char signature[URL_SIGNATURE_LEN + 1];
    struct buf name = { 0 };
    int64_t expires_s = artifact->expires_at / 1000;
    artifact_add_signed(&name, slice_of(artifact->key), artifact->length);
    url_sign(call->account, "POST", buf_slice(&name), expires_s, signature);
    api_base_url(call, out);
    buf_print(out,
              "/artifacts/v1/%s/%s?length=%" PRId64 "&expires=%" PRId64 "&signature=%s",
              call->account->id, artifact->key, artifact->length, expires_s, signature);
    buf_finish(&name);
}

static bool is_of_project(const void *owner, uint32_t env)
{
    const struct api_call *call = owner;
    return engine_share_quota(call->env, env);
}

static bool is_of_branches(const void *owner, uint32_t env)
{
    const struct api_call *call = owner;
    const struct account *other = accounts_by_number(api_accounts(call->api), env);
    return other && accounts_are_branches(call->account, other);
}

/* Checks the storage quota. Open uploads count as well, for all branches of the project. */
static enum err check_quota(struct api_call *call, const struct artifact_sharers *sharers,
                            size_t length)
{
    size_t open = artifacts_bytes(api_artifacts(call->api), sharers);
    return engine_check_quota(call->env, open + length, &call->why);
}

static void reply_offer(struct api_call *call, const struct artifact *artifact)
{
    struct buf out = { 0 }, url = { 0 };
    add_url(call, artifact, &url);
    buf_add_char(&out, '{');
    members_add_text(&out, "artifactKey", slice_of(artifact->key));
    members_add_text(&out, "uploadUrl", buf_slice(&url));
    buf_add_text(&out, ",\"uploadFields\":{");
    members_add_text(&out, "key", slice_of(artifact->key));
    buf_add_char(&out, '}');
    members_add_time(&out, "expiresAt", artifact->expires_at);
    buf_add_char(&out, '}');
    api_reply_json(call, 201, buf_slice(&out));
    buf_finish(&out);
    buf_finish(&url);
}

/* An offer that waits for the free space of the disk. */
struct offering {
    struct api_call *call;
    struct disk_asking asking;
    char key[ARTIFACT_KEY_MAX];
    bool has_left; /* its client; the offer is then of no use */
};

static enum err check_disk(const struct offering *op, struct failure *why)
{
    uint64_t reserved = artifacts_reserved(api_artifacts(op->call->api));
    if (op->asking.job.error)
        return explain(why, ERR_STORE,
                       "The free space on the gateway's disk is unknown: %s",
                       strerror(op->asking.job.error));
    if (op->asking.free >= reserved + DISK_LEAST_FREE)
        return OK;
    return explain(why, ERR_STORE_FULL,
                   "storage_full: the gateway's disk would have less than 1 GiB free after "
                   "the uploads that are open; try again when they are deployed");
}

static void on_gone(struct api_call *call)
{
    struct offering *op = call->state;
    op->has_left = true;
    file_job_cancel(&op->asking.job); /* has no effect once the job runs */
}

static void on_asked(struct file_job *job)
{
    struct offering *op = container_of(job, struct offering, asking.job);
    struct api_call *call = op->call;
    call->state = NULL;
    call->on_gone = NULL;
    struct artifacts *artifacts = api_artifacts(call->api);
    struct artifact *artifact =
        artifacts_find(artifacts, call->account->number, slice_of(op->key));
    enum err err = op->has_left ? ERR_CANCELED : check_disk(op, &call->why);
    free(op);
    if (!artifact)
        err = explain(&call->why, ERR_STORE, "The offer has expired; request a new one");
    if (!err) {
        reply_offer(call, artifact);
        return;
    }
    if (artifact)
        artifact_remove(artifacts, artifact);
    api_reply_error(call, err);
}

static enum err offer(struct api_call *call)
{
    struct artifacts *artifacts = api_artifacts(call->api);
    struct artifact_sharers sharers = { .of_project = is_of_project,
                                        .of_branches = is_of_branches,
                                        .owner = call };
    struct artifact *artifact;
    int64_t length;
    enum err err = read_offer(call, &length);
    err = err ? err : check_quota(call, &sharers, (size_t)length);
    if (!err)
        err = artifact_offer(artifacts, call->account->number, &sharers, length, &artifact,
                             &call->why);
    if (err)
        return err;
    struct offering *op = mem_new(struct offering);
    op->call = call;
    op->asking.folder = artifacts_folder(artifacts);
    memcpy(op->key, artifact->key, sizeof(op->key));
    call->busy = true;
    call->state = op;
    call->on_gone = on_gone;
    disk_asking_begin(engine_loop(api_engine(call->api)), &op->asking, on_asked);
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = "/api/v1/artifacts",
      .auth = AUTH_KEY, .body_limit = OFFER_BODY, .handle = offer,
      .id = "create_artifact_v1", .summary = "Where a bundle may be uploaded",
      .body = "{type?: string, contentType?: string, contentLength?: integer}",
      .status = 201,
      .reply = "{artifactKey: string, uploadUrl: string, uploadFields: {*: string}, "
          "expiresAt: datetime}",
      .also = "507" },
    { .method = HTTP_POST_, .path = "/artifacts/v1/{environment}/{key*}",
      .auth = AUTH_SIGNED | BODY_SLOW, .signed_form = SIGNED_ARTIFACT, .body_limit = UPLOAD_BODY,
      .handle = artifact_upload, .on_body = artifact_upload_piece,
      .id = "upload_artifact_v1", .summary = "Upload a bundle to its signed address",
      .query = "length: string, expires: string, signature: string",
      .takes = "multipart/form-data",
      .body = "{key: string, file: string}",
      .status = 204,
      .also = "415" },
    { 0 },
};
/* clang-format on */

const struct area artifacts_area = { .tag = "deployments",
                                     .is_for_users = true,
                                     .routes = routes };
