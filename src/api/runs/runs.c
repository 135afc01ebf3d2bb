/* runs.c - the table of run routes, and the handlers of retrieve and cancel.
 *
 * A run is looked up in the caller's environment before its scopes are checked, because
 * the scopes depend on its task and tags. Runs of other environments are not found. */
#include "api/request/body_fields.h"
#include "api/request/quotas.h"
#include "api/request/route.h"
#include "api/runs/run_await.h"
#include "api/runs/run_changes.h"
#include "api/runs/run_counts.h"
#include "api/runs/run_list.h"
#include "api/runs/run_query.h"
#include "api/runs/run_reply.h"
#include "api/runs/run_result.h"
#include "base/mem.h"
#include "core/engine/run_commands.h"

struct run_op {
    struct api_call *call;
    struct run_read read;
    struct cancel cancel;
};

static struct run_op *op_create(struct api_call *call)
{
    struct run_op *op = mem_new(struct run_op);
    op->call = call;
    call->busy = true;
    return op;
}

/* ---- retrieve ---- */

static void on_retrieved(struct run_await *await, enum err status)
{
    struct api_call *call = await->call;
    if (!status)
        status = quotas_hold_run(call, &await->read);
    if (status)
        held_call_refuse(&await->held, status);
    else
        run_reply_begin(call, await->read.run, 0);
    free(await);
}

static enum err retrieve(struct api_call *call)
{
    struct run_await *await = mem_new(struct run_await);
    enum err refused = run_await_begin(call, await, on_retrieved);
    if (refused)
        free(await);
    return refused;
}

/* ---- cancel ---- */

static const char no_resource[] = "Resource not found";

static void on_canceled(struct command *command, enum err status)
{
    struct run_op *op = container_of(command, struct run_op, cancel.command);
    struct api_call *call = op->call;
    struct buf body = { 0 };
    if (status) {
        api_reply_refused(call, status, &command->why, no_resource);
    } else {
        buf_print(&body, "{\"id\":\"%s\"}", command->run->id);
        api_add_seq(call, command->seq);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    free(op);
}

static void begin_cancel(struct run_op *op)
{
    struct api_call *call = op->call;
    run_cancel(api_engine(call->api), call->env, call->params[0], &op->cancel, on_canceled);
}

static void on_run_to_cancel(struct run_read *read, enum err status)
{
    struct run_op *op = container_of(read, struct run_op, read);
    if (!status)
        status = api_check_run_scope(op->call, "write", read->run);
    if (status) {
        api_reply_refused(op->call, status, NULL, no_resource);
        free(op);
        return;
    }
    begin_cancel(op);
}

/* Cancels the run. A secret key may cancel any run, so the run is not read first. */
static enum err cancel(struct api_call *call)
{
    struct run_op *op = op_create(call);
    if (call->identity->kind == CREDENTIAL_SECRET_KEY)
        begin_cancel(op);
    else
        run_read_begin(call->env, call->params[0], &op->read, on_run_to_cancel);
    return OK;
}

/* ---- the table ---- */

enum {
    UNREAD_BODY = 65536, /* no body is expected; one that is sent is ignored */
    SMALL_BODY = 65536,
    TAGS_BODY = 20480,
    METADATA_BODY = 2097152,
    REPLAY_BODY = 3145728,
    KEY_OR_TOKEN = AUTH_KEY | AUTH_PUBLIC,
};

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/runs",
      .auth = KEY_OR_TOKEN, .follows = true, .body_limit = UNREAD_BODY,
      .handle = run_list,
      .id = "list_runs_v1", .summary = "List runs",
      .query = RUN_FILTER_QUERY ", page[size]?: integer(1..100), page[after]?: string, "
          "page[before]?: string",
      .reply = "ListRunsResult" },
    { .method = HTTP_GET_, .path = "/api/v1/runs/counts",
      .auth = KEY_OR_TOKEN, .follows = true, .body_limit = UNREAD_BODY,
      .handle = run_counts,
      .id = "count_runs_v1", .summary = "Count runs by status",
      .query = RUN_FILTER_QUERY,
      .reply = "RunCounts" },
    { .method = HTTP_GET_, .path = "/api/v1/projects/{projectRef}/runs",
      .auth = AUTH_PERSONAL, .body_limit = UNREAD_BODY, .handle = run_list_project,
      .id = "list_project_runs_v1", .summary = "List runs of a project",
      .query = RUN_FILTER_QUERY ", page[size]?: integer(1..100), page[after]?: string, "
          "page[before]?: string, filter[env]?: string",
      .reply = "ListRunsResult" },
    { .method = HTTP_GET_, .path = "/api/v3/runs/{runId}",
      .auth = KEY_OR_TOKEN, .body_limit = UNREAD_BODY, .handle = retrieve,
      .id = "retrieve_run_v3", .summary = "Retrieve a run, at once or when it has ended",
      .query = "wait?: string",
      .reply = "Run" },
    { .method = HTTP_GET_, .path = "/api/v1/runs/{runId}/result",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = UNREAD_BODY, .handle = run_result,
      .id = "retrieve_run_result_v1", .summary = "The output or error of a finished run",
      .query = "format?: 'json', wait?: string",
      .reply = "RunResult" },
    { .method = HTTP_GET_, .path = "/api/v1/runs/{runId}/children",
      .auth = KEY_OR_TOKEN, .body_limit = UNREAD_BODY, .handle = run_list_children,
      .id = "list_run_children_v1", .summary = "List the runs that a run has triggered",
      .query = RUN_FILTER_QUERY ", page[size]?: integer(1..100), page[after]?: string, "
          "page[before]?: string",
      .reply = "ListRunsResult" },
    { .method = HTTP_POST_, .path = "/api/v2/runs/{runId}/cancel",
      .auth = KEY_OR_TOKEN, .body_limit = UNREAD_BODY, .handle = cancel,
      .id = "cancel_run_v2", .summary = "Cancel a run",
      .reply = "RunId" },
    { .method = HTTP_POST_, .path = "/api/v1/runs/{runId}/replay",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = REPLAY_BODY, .handle = run_replay,
      .on_body = run_replay_take,
      .claims = true, .own_key = OWN_KEY_IN_BODY, .id = "replay_run_v1", .summary = "Replay a run",
      .body = "{payload?: any, payloadType?: 'application/json'|'application/super+json', "
          "metadata?: {...}, tags?: string|string[], queue?: string, concurrencyKey?: "
          "string|number, machine?: string, version?: string, region?: string|null, delay?: "
          "string|number|null, ttl?: string|number, idempotencyKey?: string, idempotencyKeyTTL?: "
          "string, maxAttempts?: integer(1..2147483647), maxDuration?: number, priority?: "
          "number}",
      .reply = "RunId",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v1/runs/{runId}/reschedule",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SMALL_BODY, .handle = run_put_off,
      .id = "reschedule_run_v1", .summary = "Reschedule a delayed run",
      .body = "{delay: string|number, ...}",
      .reply = "Run",
      .also = "409 422" },
    { .method = HTTP_POST_, .path = "/api/v1/runs/{runId}/tags",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = TAGS_BODY, .handle = run_tag,
      .id = "add_run_tags_v1", .summary = "Add tags to a run",
      .body = "{tags: string(1..128)|string(1..128)[], ...}",
      .reply = "{message: string}",
      .also = "422 507" },
    { .method = HTTP_GET_, .path = "/api/v1/runs/{runId}/metadata",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = UNREAD_BODY, .handle = run_metadata_get,
      .id = "get_run_metadata_v1", .summary = "Read the metadata of a run",
      .reply = "{metadata: {...}}" },
    { .method = HTTP_PUT_, .path = "/api/v1/runs/{runId}/metadata",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = METADATA_BODY, .handle = run_metadata_put,
      .on_body = body_fields_take,
      .claims = true, .id = "update_run_metadata_v1", .summary = "Replace or change the metadata of a run",
      .body = "{metadata?: {...}, operations?: MetadataOperation[], parentOperations?: "
          "MetadataOperation[], rootOperations?: MetadataOperation[], ...}",
      .reply = "{metadata: {...}}",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v1/idempotencyKeys/{key}/reset",
      .auth = KEY_OR_TOKEN, .body_limit = SMALL_BODY, .handle = run_free_key,
      .id = "reset_idempotency_key_v1", .summary = "Reset an idempotency key",
      .body = "{taskIdentifier: string, ...}",
      .reply = "{id: string}" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "RunStatus",
      "'PENDING_VERSION' |'WAITING_FOR_DEPLOY' |'DELAYED' |'QUEUED' |'DEQUEUED'"
      " |'EXECUTING' |'REATTEMPTING' |'FROZEN' |'WAITING' |'COMPLETED'"
      " |'CANCELED' |'FAILED' |'CRASHED' |'INTERRUPTED' |'SYSTEM_FAILURE'"
      " |'EXPIRED' |'TIMED_OUT'" },
    { "RunId", "{id: string}" },
    { "MetadataOperation",
      "{type: 'set'|'delete'|'append'|'remove'|'increment'|'update', key?: string,"
      " value?: any, ...}" },
    { "TriggerTask", "{payload?: any, context?: any, options?: TriggerOptions, ...}" },
    { "TriggerOptions",
      "{tags?: string|string[], delay?: string|number|null, ttl?: string|number,"
      " idempotencyKey?: string, idempotencyKeyTTL?: string, idempotencyKeyOptions?:"
      " {key: string, scope: 'run'|'attempt'|'global', ...}, queue?: {name?:"
      " string|null, ...}, concurrencyKey?: string|number, metadata?: any,"
      " maxAttempts?: integer, maxDuration?: number, machine?: string, priority?:"
      " number, payloadType?: string, parentRunId?: string, test?: boolean,"
      " lockToVersion?: string, region?: string|null, resumeParentOnCompletion?: boolean,"
      " payloadSize?: integer, metadataType?: string, externalDeploymentId?: string|null,"
      " debounce?: {key: string, delay: string, mode?: 'leading'|'trailing', maxDelay?:"
      " string, ...}, parentAttempt?: string|null, dependentAttempt?: string|null, "
      "parentBatch?:"
      " string|null, dependentBatch?: string|null, bulkActionId?: string|null, ...}" },
    { "RunItem",
      "{id: string, status: RunStatus, taskIdentifier: string, number?:"
      " integer, idempotencyKey?: string, version?: string, queue?: string,"
      " region?: string, ttl?: string, createdAt: datetime, updatedAt: datetime, queuedAt?:"
      " datetime, startedAt?: datetime, finishedAt?: datetime,"
      " delayedUntil?: datetime, expiredAt?: datetime, isQueued: boolean,"
      " isExecuting: boolean, isWaiting: boolean, isCompleted: boolean,"
      " isSuccess: boolean, isFailed: boolean, isCancelled: boolean, isTest:"
      " boolean, tags: string[], costInCents: number, baseCostInCents:"
      " number, durationMs: number, depth: integer, metadata?: {...},"
      " batchId?: string, attemptCount: integer, taskKind: 'STANDARD', env: {id: string, "
      "name: string, user?:"
      " string}}" },
    { "ListRunsResult", "{data: RunItem[], pagination: CursorPage}" },
    { "RunCounts", "{byStatus: {...}, total: integer}" },
    { "RelatedRun",
      "{id: string, status: RunStatus, taskIdentifier: string, number?: integer,"
      " idempotencyKey?: string, version?: string, queue?: string, region?: string, ttl?:"
      " string, createdAt: datetime, updatedAt: datetime, queuedAt?: datetime, startedAt?:"
      " datetime, finishedAt?: datetime, delayedUntil?: datetime, expiredAt?: datetime,"
      " isQueued: boolean, isExecuting: boolean, isWaiting: boolean, isCompleted:"
      " boolean, isSuccess: boolean, isFailed: boolean, isCancelled: boolean, isTest:"
      " boolean, tags: string[], costInCents: number, baseCostInCents: number,"
      " durationMs: number, depth: integer, metadata?: {...}, triggerFunction: string,"
      " batchId?: string}" },
    { "Run",
      "{id: string, status: RunStatus, taskIdentifier: string, number?: integer,"
      " idempotencyKey?: string, version?: string, queue?: string, region?: string, ttl?:"
      " string, createdAt: datetime, updatedAt: datetime, queuedAt?: datetime,"
      " startedAt?: datetime, finishedAt?: datetime, delayedUntil?: datetime,"
      " expiredAt?: datetime, isQueued: boolean, isExecuting: boolean,"
      " isWaiting: boolean, isCompleted: boolean, isSuccess: boolean, isFailed:"
      " boolean, isCancelled: boolean, isTest: boolean, tags: string[],"
      " costInCents: number, baseCostInCents: number, durationMs: number, depth:"
      " integer, metadata?: {...}, triggerFunction: string, batchId?: string,"
      " maxDurationSeconds?: integer, schedule?: RunSchedule, waitingFor?: RunWaiting, "
      "concurrencyKey?: string, concurrencyLimits?: string[], gates?: RunGate[], "
      "payload?: any, "
      "payloadPresignedUrl?: string,"
      " output?: any, outputPresignedUrl?: string, error?: {message?: string,"
      " ...}, attemptCount: integer, attempts: any[], relatedRuns: {root?:"
      " RelatedRun, parent?: RelatedRun, children: RelatedRun[]}}" },
    { "RunWaiting",
      "{reason: 'no_worker'|'version'|'storage_quota'|'queue_paused'|'queue_limit'"
      "|'concurrency_key'|'queue_total'|'limit_paused'|'limit'|'gate_paused'|'gate'"
      "|'environment_limit'|'rate'|'room'|'delay'|'retry'|'waitpoint', limitName?: string, "
      "limitKey?: string, since: datetime, until?: datetime, limit?: integer, "
      "running?: integer, reserved?: integer, ahead?: integer,"
      " task?: string, message: string}" },
    { "RunGate", "{queue: string, concurrencyKey?: string}" },
    { "RunSchedule", "{id: string, ...}" },
    { "RunResult",
      "{ok: boolean, id: string, taskIdentifier: string, output?: any,"
      " outputType?: string, outputPresignedUrl?: string, error?: {type: string, ...},"
      " usage?: {...}, ...}" },
    { 0 },
};

const struct area runs_area = {
    .tag = "runs", .is_for_users = true, .routes = routes, .schemas = schemas
};
