/* deployment_routes.c - the routes of deployments, for the CLI, the SDK and builders. */
#include "api/deployments/deployment_calls.h"
#include "api/request/body_fields.h"

enum {
    NO_BODY = 4096,
    SMALL_BODY = 64 * 1024,
    INITIALIZE_BODY = 1024 * 1024,
    REGISTRATION_BODY = 8 * 1024 * 1024,
    FAIL_BODY = 128 * 1024,
    BEAT_BODY = 512 * 1024, /* a piece of log, as JSON */
    COMPLETE_BODY = 16 * 1024 * 1024,
    ALL = AUTH_KEY | AUTH_PUBLIC,
};

/* Refuses: there is no registry, so nothing is pushed. */
static enum err refuse_registry(struct api_call *call)
{
    if (!deployment_of_call(call))
        return ERR_NOT_FOUND;
    return explain(&call->why, ERR_CONFLICT, "Registry not supported");
}

static enum err provider_status(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"status\":\"operational\",\"message\":\"\"}"));
    return OK;
}

#define DEPLOYMENTS "/api/v1/deployments"
#define ONE DEPLOYMENTS "/{deploymentId}"
#define PROJECT "/api/v1/projects/{projectRef}/{env}"
#define ACTIONS "/engine/v1/worker-actions"
#define BUILD ACTIONS "/builds/{deploymentId}"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = PROJECT "/deploy-settings",
      .auth = AUTH_KEY, .body_limit = NO_BODY, .handle = deployment_settings,
      .id = "deploy_settings_v1", .summary = "How the CLI should deploy",
      .reply = "{build_path: string}" },
    { .method = HTTP_POST_, .path = DEPLOYMENTS,
      .auth = AUTH_KEY, .awaited = { 503 }, .body_limit = INITIALIZE_BODY,
      .handle = deployment_initialize,
      .id = "initialize_deployment_v1",
      .summary = "Deploy a bundle; the response comes once it is built",
      .body = "{contentHash: string, type: 'MANAGED', artifactKey: string, isNativeBuild: "
          "boolean, fromBundle: boolean, runtime?: string, skipPromotion?: boolean, "
          "externalId?: string, force?: boolean, buildEnvVars?: {*: string}, gitMeta?: "
          "{...}, triggeredVia?: string, userId?: string, configFilePath?: string, "
          "isLocalBuild?: boolean, supportsInstanceBaseImages?: boolean, buildId?: string, "
          "initialStatus?: string, skipEnqueue?: boolean, selfHosted?: boolean}",
      .reply = "InitializedDeployment",
      .also = "409 422 507" },
    { .method = HTTP_GET_, .path = DEPLOYMENTS,
      .auth = ALL, .body_limit = NO_BODY, .handle = deployment_list,
      .id = "list_deployments_v1", .summary = "List deployments, newest first",
      .query = "page[size]?: integer(1..100), page[after]?: string, status?: string, "
          "period?: string, from?: string, to?: string",
      .reply = "{data: DeploymentItem[], pagination: {next?: string}}" },
    { .method = HTTP_GET_, .path = DEPLOYMENTS "/current",
      .auth = ALL, .body_limit = NO_BODY, .handle = deployment_current,
      .id = "retrieve_current_deployment_v1", .summary = "The current deployment, which new runs execute",
      .reply = "DeploymentItem",
      .also = "404" },
    { .method = HTTP_GET_, .path = DEPLOYMENTS "/latest",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = deployment_latest,
      .id = "retrieve_latest_deployment_v1", .summary = "The newest deployment",
      .reply = "Deployment",
      .also = "404" },
    { .method = HTTP_GET_, .path = ONE,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = deployment_retrieve,
      .id = "retrieve_deployment_v1", .summary = "Retrieve a deployment",
      .reply = "Deployment" },
    { .method = HTTP_GET_, .path = ONE "/logs",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = deployment_log,
      .id = "retrieve_deployment_logs_v1", .summary = "The log of its build, once it ended",
      .gives = "text/plain",
      .reply = "string" },
    { .method = HTTP_POST_, .path = ONE "/background-workers",
      .auth = AUTH_KEY | AUTH_BUILD, .body_limit = REGISTRATION_BODY,
      .handle = deployment_register, .on_body = deployment_register_piece,
      .id = "register_deployed_worker_v1",
      .summary = "Register the tasks of a version, with the key of its build",
      .body = "{metadata: {contentHash: string, tasks: {...}[], ...}, ...}",
      .reply = "{id: string, version: string, contentHash: string}",
      .also = "403 409 422 507" },
    { .method = HTTP_POST_, .path = ONE "/fail",
      .auth = AUTH_KEY | AUTH_BUILD, .body_limit = FAIL_BODY, .handle = deployment_fail,
      .id = "fail_deployment_v1", .summary = "Report that a deployment has failed",
      .body = "{error: DeploymentError}",
      .reply = "{id: string}" },
    { .method = HTTP_POST_, .path = ONE "/cancel",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = deployment_cancel,
      .id = "cancel_deployment_v1", .summary = "Cancel a deployment that is not final",
      .body = "{reason?: string}",
      .status = 204,
      .also = "409" },
    { .method = HTTP_POST_, .path = ONE "/progress",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = deployment_progress,
      .id = "progress_deployment_v1", .summary = "Refused: the gateway's builder does it",
      .body = "{...}",
      .status = 204,
      .also = "409" },
    { .method = HTTP_POST_, .path = DEPLOYMENTS "/{version}/promote",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = deployment_promote,
      .id = "promote_deployment_v1", .summary = "Promote a version",
      .query = "allowRollbacks?: string",
      .reply = "{id: string, version: string, shortCode: string}" },
    { .method = HTTP_POST_, .path = "/api/v3/deployments/{deploymentId}/finalize",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = deployment_finalize,
      .id = "finalize_deployment_v3", .summary = "Refused: the gateway finalizes itself",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/api/v2/deployments/{deploymentId}/finalize",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = deployment_finalize,
      .id = "finalize_deployment_v2", .summary = "Refused: the gateway finalizes itself",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = ONE "/finalize",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = deployment_finalize,
      .id = "finalize_deployment_v1", .summary = "Refused: the gateway finalizes itself",
      .body = "{...}",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = ONE "/generate-registry-credentials",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = refuse_registry,
      .id = "generate_registry_credentials_v1", .summary = "Refused: there is no registry",
      .reply = "{...}",
      .also = "409" },
    { .method = HTTP_GET_, .path = "/api/v1/remote-build-provider-status",
      .auth = AUTH_KEY | AUTH_PERSONAL, .body_limit = NO_BODY, .handle = provider_status,
      .id = "remote_build_provider_status_v1", .summary = "Whether builds are enabled: always",
      .reply = "{status: string, message: string}" },
    { .method = HTTP_POST_, .path = ACTIONS "/builds/dequeue",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = build_dequeue,
      .is_alone = true, .id = "dequeue_build_v1", .summary = "Take the next deployment to build",
      .body = "{instance?: string, architecture: string, libc: string, ...}",
      .reply = "{...}[]" },
    { .method = HTTP_POST_, .path = BUILD "/heartbeat",
      .auth = AUTH_WORKER, .body_limit = BEAT_BODY, .handle = build_heartbeat,
      .id = "heartbeat_build_v1", .summary = "Report that a build has started",
      .body = "{step?: 'INSTALLING' | 'BUILDING', log?: string, attempt?: integer, ...}",
      .reply = "{ok: boolean}",
      .also = "409" },
    { .method = HTTP_POST_, .path = BUILD "/complete",
      .auth = AUTH_WORKER, .body_limit = COMPLETE_BODY, .handle = build_complete,
      .on_body = body_fields_take_long,
      .id = "complete_build_v1", .summary = "Report that a build has finished",
      .body = "{ok: boolean, index?: string, sha256?: string, architecture?: string, libc?: "
          "string, bytes?: integer, runtimeVersion?: string, attempt?: integer, error?: "
          "DeploymentError, ...}",
      .reply = "{ok: boolean, status: string}",
      .also = "409" },
    { .method = HTTP_GET_, .path = ACTIONS "/deployments/{deploymentId}/archive",
      .auth = AUTH_WORKER, .body_limit = NO_BODY, .handle = build_archive,
      .is_alone = true, .id = "read_deployment_archive_v1", .summary = "The archive of a version",
      .gives = "application/gzip",
      .reply = "string" },
    { .method = HTTP_GET_, .path = ACTIONS "/deployments/{deploymentId}/index",
      .auth = AUTH_WORKER, .body_limit = NO_BODY, .handle = build_index,
      .is_alone = true, .id = "read_deployment_index_v1", .summary = "The index of a version",
      .reply = "{...}" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "DeploymentError",
      "{name: string, message: string, stack?: string, stderr?: string}" },
    { "InitializedDeployment",
      "{id: string, contentHash: string, shortCode: string, version: string, imageTag: "
      "string,"
      " imagePlatform: string, externalId?: string, outcome: 'created' | 'existing', "
      "isPromoted?: boolean, canceledDeployments?: {version: string, shortCode: "
      "string}[]}" },
    { "DeploymentItem",
      "{id: string, createdAt: datetime, shortCode: string, version: string, runtime: "
      "string "
      "| null, runtimeVersion: string | null, status: string, deployedAt?: datetime, git?: "
      "{...}, error?: DeploymentError, externalId?: string}" },
    { "Deployment",
      "{id: string, contentHash: string, shortCode: string, version: string, status: "
      "string, "
      "imageReference: string, imagePlatform: string, commitSHA?: string, externalId?: "
      "string, errorData?: DeploymentError, canceledReason?: string, worker?: {id: string, "
      "version: string, warnings?: VersionWarning[], tasks: {id: string, slug: string, "
      "filePath: string, exportName?: string}[]}}" },
    { 0 },
};

const struct area deployments_area = {
    .tag = "deployments", .is_for_users = true, .routes = routes, .schemas = schemas
};
