/* worker_routes.c - the routes of `trigger dev`, and of other workers with a secret key.
 *
 * Bodies are read by route, never by content type: the official client sends JSON as
 * text/plain. */
#include "api/workers/worker_routes.h"

#include "api/request/route.h"
#include "core/fleet/dev_sessions.h"

enum {
    NO_BODY = 4096,
    SMALL_BODY = 64 * 1024,
    DEBUG_BODY = 1024 * 1024,
    REGISTRATION_BODY = 8 * 1024 * 1024,
};

/* Replies to calls whose body is read and discarded. */
static enum err discard(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{}"));
    return OK;
}

/* Returns the text that the CLI prints at its start: there is nothing to announce. */
static enum err notification(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"notification\":null}"));
    return OK;
}

#define PROJECT "/api/v1/projects/{projectRef}"
#define DEV "/engine/v1/dev"
#define SNAPSHOT DEV "/runs/{runId}/snapshots/{snapshotId}"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v2/whoami",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = worker_whoami,
      .id = "whoami_v2", .summary = "The user of a personal token",
      .query = "projectRef?: string",
      .reply = "{userId: string, email: string, dashboardUrl: string, project?: {name: "
          "string, url: string, orgTitle: string}}" },
    { .method = HTTP_GET_, .path = "/api/v1/platform-notifications",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = notification,
      .id = "platform_notifications_v1",
      .summary = "The notice that the CLI shows when it starts: none",
      .reply = "{notification: null}" },
    { .method = HTTP_GET_, .path = PROJECT "/dev",
      .auth = AUTH_KEY | AUTH_PERSONAL, .body_limit = NO_BODY, .handle = worker_environment,
      .id = "get_dev_environment_v1", .summary = "The key of dev",
      .reply = "WorkerEnvironment" },
    { .method = HTTP_GET_, .path = PROJECT "/staging",
      .auth = AUTH_KEY | AUTH_PERSONAL, .body_limit = NO_BODY, .handle = worker_environment,
      .id = "get_staging_environment_v1", .summary = "The key of staging",
      .reply = "WorkerEnvironment" },
    { .method = HTTP_GET_, .path = PROJECT "/prod",
      .auth = AUTH_KEY | AUTH_PERSONAL, .body_limit = NO_BODY, .handle = worker_environment,
      .id = "get_prod_environment_v1", .summary = "The key of prod",
      .reply = "WorkerEnvironment" },
    { .method = HTTP_GET_, .path = PROJECT "/preview",
      .auth = AUTH_KEY | AUTH_PERSONAL, .body_limit = NO_BODY, .handle = worker_environment,
      .id = "get_preview_environment_v1", .summary = "The key of preview",
      .reply = "WorkerEnvironment" },
    { .method = HTTP_GET_, .path = PROJECT "/envvars",
      .auth = AUTH_KEY | AUTH_BUILD, .body_limit = NO_BODY, .handle = worker_variables,
      .id = "get_worker_variables_v1",
      .summary = "The variables that a worker starts with",
      .reply = "{variables: {*: string}}" },
    { .method = HTTP_POST_, .path = PROJECT "/background-workers",
      .auth = AUTH_KEY, .body_limit = REGISTRATION_BODY, .handle = worker_register,
      .on_body = worker_register_piece,
      .id = "register_worker_v1", .summary = "Register a version with its tasks",
      .body = "{metadata: {contentHash: string, tasks: {...}[], ...}, ...}",
      .reply = "{id: string, version: string, contentHash: string}",
      .also = "422 507" },
    { .method = HTTP_GET_, .path = PROJECT "/dev-status",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = worker_dev_status,
      .id = "get_dev_status_v1", .summary = "Whether a CLI serves dev",
      .reply = "{isConnected: boolean}" },
    { .method = HTTP_GET_, .path = PROJECT "/{env}/workers/current",
      .auth = AUTH_PERSONAL | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = worker_current,
      .id = "retrieve_current_worker_v1",
      .summary = "The current version, or the one that is named, and its tasks",
      .query = "version?: string",
      .reply = "{worker: {id: string, version: string, engine: string, sdkVersion?: "
          "string, cliVersion?: string, warnings?: VersionWarning[], tasks: WorkerTask[]}, "
          "urls: {runs: string}}" },
    { .method = HTTP_GET_, .path = DEV "/config",
      .auth = AUTH_KEY, .body_limit = NO_BODY, .handle = worker_config,
      .id = "worker_config_v1", .summary = "How to reach the engine",
      .reply = "{environmentId: string, dequeueIntervalWithRun: integer, "
          "dequeueIntervalWithoutRun: integer, maxConcurrentRuns: integer, engineUrl: "
          "string}" },
    { .method = HTTP_GET_, .path = DEV "/presence",
      .auth = AUTH_KEY, .body_limit = NO_BODY, .handle = worker_presence,
      .is_alone = true, .id = "worker_presence_v1", .summary = "Keep a stream open while the CLI is connected",
      .gives = "text/event-stream",
      .reply = "string" },
    { .method = HTTP_POST_, .path = DEV "/dequeue",
      .auth = AUTH_KEY | NEVER_STOPS, .body_limit = SMALL_BODY, .handle = worker_dequeue,
      .is_alone = true, .id = "worker_dequeue_v1", .summary = "Take the next run",
      .body = "{...}",
      .reply = "{dequeuedMessages: {...}[]}" },
    { .method = HTTP_POST_, .path = DEV "/disconnect",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = worker_disconnect,
      .id = "worker_disconnect_v1", .summary = "Return runs",
      .body = "{runFriendlyIds: string[], ...}",
      .reply = "{cancelled: integer, ...}" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/attempts/start",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = worker_start,
      .has_steps = true, .is_alone = true, .id = "worker_start_v1", .summary = "Start an attempt",
      .body = "{...}",
      .reply = "{...}",
      .also = "409" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/attempts/complete",
      .auth = AUTH_KEY | ENDS_ATTEMPT, .body_limit = WORKER_COMPLETION_BODY,
      .handle = worker_complete, .on_body = worker_complete_piece,
      .has_steps = true, .id = "worker_complete_v1", .summary = "Complete an attempt",
      .body = "{completion: {ok: boolean, ...}, ...}",
      .reply = "{result: {...}}",
      .also = "409 422" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/heartbeat",
      .auth = AUTH_KEY, .body_limit = SMALL_BODY, .handle = worker_heartbeat,
      .id = "worker_heartbeat_v1", .summary = "Send the heartbeat of an attempt",
      .body = "{...}",
      .reply = "{ok: boolean}" },
    { .method = HTTP_GET_, .path = DEV "/runs/{runId}/snapshots/latest",
      .auth = AUTH_KEY, .body_limit = NO_BODY, .handle = worker_latest,
      .id = "worker_latest_snapshot_v1", .summary = "The newest snapshot",
      .reply = "{execution: {...}}" },
    { .method = HTTP_POST_, .path = DEV "/runs/{runId}/logs/debug",
      .auth = AUTH_KEY, .body_limit = DEBUG_BODY, .handle = discard,
      .on_body = api_drop_body,
      .id = "worker_debug_log_v1", .summary = "Accepted and discarded",
      .body = "{...}",
      .reply = "{...}" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "WorkerTask", "{id: string, slug: string, filePath: string, triggerSource: string, "
                    "createdAt: datetime, payloadSchema?: {...}}" },
    { "VersionWarning", "{feature: string, names: string[], message: string}" },
    { "WorkerEnvironment",
      "{apiKey: string, name: string, apiUrl: string, projectId: string}" },
    { 0 },
};

const struct area workers_area = { .tag = "workers", .routes = routes, .schemas = schemas };
